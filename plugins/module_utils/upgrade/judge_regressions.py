# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the other runc or containerd is known to break and this one does not. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..checks.model import Severity
from ..checks.versions import matrix
from ..checks.versions.regressions import REGRESSIONS, Regression
from .model import INFO, WARNING, Host, Item, Move

# What Docker itself does otherwise has judges of its own.
_COMPONENTS = ("containerd", "runc")


def regressions(host: Host, move: Move, packages: Mapping[str, str]) -> Iterator[Item]:
    """Rows of the table that begin to hold. ``packages`` are those after the change."""
    exposed = _exposed(host)
    for row in REGRESSIONS:
        if row.component not in _COMPONENTS:
            continue
        before = host.installed.get(row.component) or move.before.get(row.component, "")
        after = packages.get(row.component) or move.after.get(row.component, "")
        if after and row.covers(after) and not (before and row.covers(before)):
            known = exposed.get(row.only)
            if known is not False:
                yield _item(row, known is True, f"{row.component} {before or '?'} to {after}")


def _exposed(host: Host) -> dict[str, bool | None]:
    """What a row asks of the host: is it so? None where that is not known."""
    driver = host.info.get("CgroupDriver")
    return {
        "": True,
        "lxc": host.in_lxc,
        "swarm": host.in_swarm,
        "systemd_driver": None if driver is None else driver == "systemd",
        "cgroup_v1": host.cgroup_version == 1,
    }


def _item(row: Regression, is_exposed: bool, seen: str) -> Item:
    grave = is_exposed and row.severity >= Severity.WARNING
    only = "" if is_exposed else f" It matters where {matrix.ONLY[row.only]}."
    return Item(
        row.id,
        WARNING if grave else INFO,
        row.title,
        seen,
        row.reason + only,
        row.fix,
        "; ".join(row.sources) or "docs/versions.md",
    )
