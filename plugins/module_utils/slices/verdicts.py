# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is said of each property of a slice: it holds, it does not, or it does nothing. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..settings.model import DIFFERS, EFFECTIVE, INERT
from ..settings.model import Setting as Verdict
from .effective import FILES, Machine, Reading, inert
from .properties import Percent, Setting
from .quantities import format_size

_PROTECTIONS = ("MemoryMin", "MemoryLow")


def judge(
    name: str,
    control_group: str,
    settings: Mapping[str, Setting],
    readings: Sequence[Reading],
    machine: Machine,
    outvoted: Mapping[str, str],
    above: Mapping[str, tuple[str, int]],
) -> list[Verdict]:
    """One verdict for each reading.

    ``outvoted`` are the properties that a drop-in of somebody else sets, ``above`` the least
    protection of the slices above, as :func:`.reader.protection_above` has it.
    """
    found = []
    for reading in readings:
        verdict, reason = (EFFECTIVE, "") if reading.ok else (DIFFERS, reading.hint)
        unheeded = inert({reading.key: settings[reading.key]}, machine)
        bound = _bound_above(settings[reading.key], machine, above)
        if reading.key in outvoted:
            verdict, reason = INERT, f"{outvoted[reading.key]}, which wins over the unit file"
        elif unheeded or reading.idle:
            verdict, reason = INERT, unheeded or reading.idle
        elif reading.ok and bound:
            verdict, reason = INERT, bound
        source = f"/sys/fs/cgroup{control_group}/{reading.file or FILES[reading.key]}"
        title = f"{name} {reading.key}"
        found.append(Verdict(title, reading.wanted, reading.seen, verdict, reason, source))
    return found


def _bound_above(
    setting: Setting, machine: Machine, above: Mapping[str, tuple[str, int]]
) -> str | None:
    """Why a protection is not all that it says: a group never gets more than those above it."""
    if setting.key not in _PROTECTIONS or FILES[setting.key] not in above:
        return None
    value = setting.value
    if isinstance(value, Percent):
        value = int(machine.memory_bytes * value.value / 100)
    whose, amount = above[FILES[setting.key]]
    if not isinstance(value, int) or amount >= value:
        return None
    return (
        f"{whose} above it has {setting.key}={format_size(amount)}, and no slice is protected "
        f"beyond those above it: wanted at least as much there"
    )
