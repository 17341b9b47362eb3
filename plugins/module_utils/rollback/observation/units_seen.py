# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Units as systemd has them: all of them in one question."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from ...engine.services import parse_show
from ...hardware import files
from ...process import run
from ...units import file_states
from ..model import RollbackError, UnitState

# Whom a change of ours may reload, restart, enable or give a drop-in.
FOREIGN = (
    "docker.service",
    "docker.socket",
    "containerd.service",
    "nvidia-persistenced.service",
    "nvidia-fabricmanager.service",
    "nvidia-cdi-refresh.path",
    "nvidia-cdi-refresh.service",
)
_DIRECTORY = "etc/systemd/system"
_OURS = (".service", ".path", ".timer", ".socket")
_PROPERTIES = ("LoadState", "ActiveState", "UnitFileState", "DropInPaths")


def names(root: str = "/") -> list[str]:
    """The units to look at: :data:`FOREIGN`, ours, and the slices that are defined in /etc."""
    found = [
        name
        for name in files.names(os.path.join(root, _DIRECTORY))
        if name.endswith(".slice") or (name.startswith("steadygpu-") and name.endswith(_OURS))
    ]
    # A template is no unit: systemctl refuses to show it.
    return [*FOREIGN, *(name for name in found if "@." not in name)]


def read(wanted: Sequence[str], deadline_s: float) -> dict[str, UnitState]:
    """The state of each unit; one that does not exist has the ``LoadState`` ``not-found``.

    Raises RollbackError when systemd does not answer, CommandMissingError without systemctl.
    """
    if not wanted:
        return {}
    done = run(["systemctl", "show", "--property=" + ",".join(_PROPERTIES), *wanted], deadline_s)
    # systemd answers in the order asked, also for an alias, which has another Id.
    answers = [answer for answer in parse_show(done.stdout) if answer]
    if len(answers) != len(wanted):
        raise RollbackError(
            f"systemctl told of {len(answers)} units instead of {len(wanted)}: {done.said}. "
            "Is systemd the init of this host, and does it answer? Try: systemctl status"
        )
    found = dict(zip(wanted, answers))
    for name, enabled in _enabled_since(found, deadline_s).items():
        found[name]["UnitFileState"] = enabled
    return {name: state(name, answer) for name, answer in found.items()}


def _enabled_since(found: Mapping[str, Mapping[str, str]], deadline_s: float) -> dict[str, str]:
    """What ``is-enabled`` reads from the links of units that are disabled as far as systemd knows.

    What ``show`` says is as old as systemd's last daemon-reload.
    """
    names = [
        name
        for name, answer in found.items()
        if answer.get("LoadState") == "loaded" and answer.get("UnitFileState") == "disabled"
    ]
    return file_states(names, deadline_s)


def state(name: str, properties: dict[str, str]) -> UnitState:
    """The state from what ``systemctl show`` printed of one unit. Pure."""
    return UnitState(
        load=properties.get("LoadState", "not-found"),
        active=_active(name, properties.get("ActiveState", "inactive")),
        enabled=properties.get("UnitFileState", ""),
        drop_ins=tuple(properties.get("DropInPaths", "").split()),
    )


def _active(name: str, told: str) -> str:
    # A slice is active while somebody runs in it; nobody starts or stops one, and who did would
    # end everybody in it.
    if name.endswith(".slice"):
        return ""
    # A service that reads its configuration again serves meanwhile.
    return "active" if told in ("reloading", "refreshing") else told
