# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""May a limit be lowered under the tasks that use it? Pure.

The kernel applies a lower memory.max at once: it reclaims what it can, then the OOM killer
takes processes inside. Under a pids.max below the number of tasks no task dies, but none can be
made. Memory that lies on a node which is no longer allowed is moved to another one
(admin-guide/cgroup-v2.rst).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .effective import Machine
from .properties import Percent, Setting
from .quantities import format_indices, format_size


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


@dataclass(frozen=True)
class TaskUse:
    """The tasks of a slice with all that is below it, and what they may use now.

    ``tasks_max`` is the limit in force, None for no limit; ``quota`` the CPUs of time that it may
    use, None for no limit; ``cpus`` and ``memory_nodes`` are empty where the kernel does not say.
    """

    tasks: int
    tasks_max: int | None = None
    quota: float | None = None
    cpus: tuple[int, ...] = ()
    memory_nodes: tuple[int, ...] = ()


def squeeze_fault(
    name: str, settings: Mapping[str, Setting], use: MemoryUse, machine: Machine
) -> str | None:
    """Why MemoryMax must not be lowered now, or None."""
    wanted = _wanted_amount(settings.get("MemoryMax"), machine.memory_bytes)
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
    wanted = _wanted_amount(settings.get("MemoryHigh"), machine.memory_bytes)
    if wanted is None or not _squeezes(wanted, use.high, use):
        return None
    return (
        f"MemoryHigh={settings['MemoryHigh'].lines[0]} is below what {name} uses now: "
        f"{_spelled(use)}. Nothing is killed, but its tasks are throttled until the kernel has "
        "reclaimed the rest."
    )


def crowding_fault(
    name: str, settings: Mapping[str, Setting], use: TaskUse, machine: Machine
) -> str | None:
    """Why TasksMax or AllowedMemoryNodes must not be narrowed now, or None."""
    if not use.tasks:
        return None
    limit = settings.get("TasksMax")
    wanted = _wanted_amount(limit, machine.tasks_max)
    lowers = wanted is not None and (use.tasks_max is None or wanted < use.tasks_max)
    if limit and wanted is not None and lowers and wanted < use.tasks:
        return (
            f"TasksMax={limit.lines[0]} is below the {use.tasks} tasks that {name} has now: "
            "none of them could start another one. Wanted a larger TasksMax, fewer tasks, or "
            "`below_current_use: true` when they may fail"
        )
    nodes = settings.get("AllowedMemoryNodes")
    if nodes:
        lost = _lost(nodes, use.memory_nodes)
        if lost:
            return (
                f"AllowedMemoryNodes={nodes.lines[0]} takes node {format_indices(lost)} from the "
                f"{use.tasks} tasks in {name}: the kernel would move their memory, and kill where "
                "the other nodes are full. Run again when they have ended, or set "
                "`below_current_use: true`"
            )
    return None


def slowing_warning(name: str, settings: Mapping[str, Setting], use: TaskUse) -> str | None:
    """What fewer CPUs do to the tasks inside, or None. They lose time, nothing else."""
    if not use.tasks:
        return None
    told = []
    quota = settings.get("CPUQuota")
    if quota and isinstance(quota.value, Percent):
        wanted = quota.value.value / 100
        if use.quota is None or wanted < use.quota - 0.01:
            former = "no limit" if use.quota is None else f"{use.quota * 100:.6g}%"
            told.append(f"CPUQuota={quota.lines[0]} (it was {former})")
    cpus = settings.get("AllowedCPUs")
    lost = _lost(cpus, use.cpus) if cpus else []
    if cpus and lost:
        told.append(f"AllowedCPUs={cpus.lines[0]} (CPU {format_indices(lost)} less)")
    if not told:
        return None
    return "{} gives the {} tasks in {} less CPU time from now on.".format(
        " and ".join(told), use.tasks, name
    )


def _lost(setting: Setting, now: tuple[int, ...]) -> list[int]:
    wanted = setting.value if isinstance(setting.value, tuple) else ()
    return [number for number in now if number not in wanted]


def _wanted_amount(setting: Setting | None, whole: int) -> int | None:
    if setting is None:
        return None
    if isinstance(setting.value, Percent):
        return int(whole * setting.value.value / 100)
    return setting.value if isinstance(setting.value, int) else None


def _squeezes(wanted: int, in_force: int | None, use: MemoryUse) -> bool:
    """Is this a lower limit than the one in force, and less than is used?"""
    return wanted < use.current and (in_force is None or wanted < in_force)


def _spelled(use: MemoryUse) -> str:
    text = f"{_mebibytes(use.current)} of memory"
    if use.file_cache:
        text += f" ({_mebibytes(use.file_cache)} of it page cache, which is dropped first)"
    if use.swap:
        text += f" and {_mebibytes(use.swap)} of swap"
    return text


def _mebibytes(amount: int) -> str:
    return f"{amount / (1 << 20):.0f}M"
