# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""May memory be lowered under the tasks that use it? Pure.

The kernel applies a lower memory.max at once: it reclaims what it can, then the OOM killer
takes processes inside (admin-guide/cgroup-v2.rst).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .effective import Machine
from .properties import Percent, Setting
from .quantities import format_size


@dataclass(frozen=True)
class MemoryUse:
    """The memory of a slice with all that is below it, in bytes.

    ``file_cache`` is the part of ``current`` that is page cache; ``high`` and ``maximum`` are
    the limits in force, None for no limit.
    """

    current: int
    swap: int = 0
    file_cache: int = 0
    high: int | None = None
    maximum: int | None = None


def squeeze_fault(
    name: str, settings: Mapping[str, Setting], use: MemoryUse, machine: Machine
) -> str | None:
    """Why MemoryMax must not be lowered now, or None."""
    wanted = _wanted_bytes(settings.get("MemoryMax"), machine)
    if wanted is None or not _squeezes(wanted, use.maximum, use):
        return None
    return (
        f"MemoryMax={settings['MemoryMax'].lines[0]} is below what {name} uses now: "
        f"{_spelled(use)}; wanted at most {format_size(wanted)}. The kernel would apply it at "
        "once and may kill processes inside. Stop or move some of them, choose a larger "
        "MemoryMax, or set `below_current_use: true` when they may be killed"
    )


def squeeze_warning(
    name: str, settings: Mapping[str, Setting], use: MemoryUse, machine: Machine
) -> str | None:
    """What a lowered MemoryHigh does to the tasks inside, or None."""
    wanted = _wanted_bytes(settings.get("MemoryHigh"), machine)
    if wanted is None or not _squeezes(wanted, use.high, use):
        return None
    return (
        f"MemoryHigh={settings['MemoryHigh'].lines[0]} is below what {name} uses now: "
        f"{_spelled(use)}. Nothing is killed, but its tasks are throttled until the kernel has "
        "reclaimed the rest."
    )


def _squeezes(wanted: int, in_force: int | None, use: MemoryUse) -> bool:
    """Is this a lower limit than the one in force, and less than is used?"""
    return wanted < use.current and (in_force is None or wanted < in_force)


def _wanted_bytes(setting: Setting | None, machine: Machine) -> int | None:
    if setting is None:
        return None
    if isinstance(setting.value, Percent):
        return int(machine.memory_bytes * setting.value.value / 100)
    return setting.value if isinstance(setting.value, int) else None


def _spelled(use: MemoryUse) -> str:
    text = f"{_mebibytes(use.current)} of memory"
    if use.file_cache:
        text += f" ({_mebibytes(use.file_cache)} of it page cache, which is dropped first)"
    if use.swap:
        text += f" and {_mebibytes(use.swap)} of swap"
    return text


def _mebibytes(amount: int) -> str:
    return f"{amount / (1 << 20):.0f}M"
