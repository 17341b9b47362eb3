# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What systemd and the kernel have of a slice's quota and burst."""

from __future__ import annotations

import os

from .. import cgroups, units
from . import guard, model

_ASKED = (
    "ActiveState",
    "FragmentPath",
    "ControlGroup",
    "CPUQuotaPerSecUSec",
    "CPUQuotaPeriodUSec",
)


def read(name: str, root: str = "/") -> model.Seen:
    """The slice ``name`` as it is now. Raises OSError."""
    said = units.show(name, _ASKED)
    active = said.get("ActiveState") == "active"
    asked_us, asked_period_us = model.asked_quota(
        said.get("CPUQuotaPerSecUSec", ""), said.get("CPUQuotaPeriodUSec", "")
    )
    group = said.get("ControlGroup", "") if active else ""
    quota_us, period_us, has_cpu_max = _cpu_max(group, root) if group else (None, 100_000, False)
    return model.Seen(
        slice=name,
        # To systemd each name of a slice is loaded; one that nobody wrote has no file.
        known=active or bool(said.get("FragmentPath")),
        control_group=group,
        has_cpu_max=has_cpu_max,
        quota_us=quota_us,
        period_us=period_us,
        burst_us=guard.read(group, root) if group else None,
        asked_us=asked_us,
        asked_period_us=asked_period_us,
    )


def path_of(control_group: str, name: str = guard.FILE) -> str:
    """A file of a group as the host sees it."""
    return os.path.join(cgroups.directory(control_group, "/"), name)


def predicted_group(name: str) -> str:
    """Where systemd makes the group of a slice: its dashes nest (systemd.slice(5))."""
    words = name[: -len(".slice")].split("-")
    parts = ["-".join(words[:count]) + ".slice" for count in range(1, len(words) + 1)]
    return "/" + "/".join(parts)


def _cpu_max(group: str, root: str) -> tuple[int | None, int, bool]:
    text = cgroups.read_files(group, ["cpu.max"], root)["cpu.max"]
    words = (text or "").split()
    if len(words) != 2 or not words[1].isdigit():
        return None, 100_000, False
    return (int(words[0]) if words[0].isdigit() else None), int(words[1]), True
