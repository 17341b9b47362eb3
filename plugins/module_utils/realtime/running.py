# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Who would lose CPU time: real-time tasks, and who lives on the CPUs of a partition."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from .. import cgroups
from ..hardware import files
from ..hardware.holders import container_of
from ..slices.quantities import QuantityError, format_indices, parse_indices

_FIFO, _RR, _DEADLINE = 1, 2, 6
_NAMES = {_FIFO: "SCHED_FIFO", _RR: "SCHED_RR", _DEADLINE: "SCHED_DEADLINE"}
# PF_KTHREAD of include/linux/sched.h, as in the flags of /proc/PID/stat (proc(5)).
_KERNEL_THREAD = 0x00200000


@dataclass
class OnCpus:
    """Who lives on some CPUs: by a cpuset, by its affinity alone, or a container without either."""

    groups: list[str] = field(default_factory=list)
    pinned: list[str] = field(default_factory=list)
    containers: list[str] = field(default_factory=list)


def real_time(root: str = "/") -> list[str]:
    """Real-time tasks that are not the kernel's, in words, each process once."""
    found: dict[int, str] = {}
    for pid in _pids(root):
        tasks = os.path.join(root, "proc", str(pid), "task")
        for task in files.names(tasks):
            seen = _policy(files.text(os.path.join(tasks, task, "stat")))
            if seen is not None:
                name, policy, priority = seen
                rank = "" if policy == _DEADLINE else f" {priority}"
                found.setdefault(pid, f"{name} (pid {pid}, {_NAMES[policy]}{rank})")
    return [found[pid] for pid in sorted(found)]


def on_cpus(cpus: Iterable[int], ours: str, root: str = "/") -> OnCpus:
    """Who may run on ``cpus`` now, but for what lives in the group ``ours``."""
    taken = frozenset(cpus)
    seen = OnCpus()
    top = cgroups.directory("/", root)
    for directory, children, _files in os.walk(top):
        below = os.path.relpath(directory, top)
        group = "/" if below == "." else f"/{below}"
        if group == ours:
            children.clear()
            continue
        own = _indices(files.text(os.path.join(directory, "cpuset.cpus")))
        if own and own & taken and group != "/":
            seen.groups.append(f"{group} (cpuset.cpus {format_indices(own)})")
            children.clear()
            continue
        if own and group != "/" and not _effective(directory) & taken:
            # It and all below it have other CPUs.
            children.clear()
            continue
        container = container_of(group)
        events = files.text(os.path.join(directory, "cgroup.events")) if container else ""
        if container and events.startswith("populated 1"):
            seen.containers.append(container[:12])
            children.clear()
    seen.pinned = _pinned(taken, ours, root)
    return seen


def _effective(directory: str) -> frozenset[int]:
    """What a group really has: its parent's where its own cannot be had."""
    return _indices(files.text(os.path.join(directory, "cpuset.cpus.effective")))


def _pinned(taken: frozenset[int], ours: str, root: str) -> list[str]:
    """Processes with a thread whose affinity leaves it nothing but ``taken``, each once."""
    found = []
    for pid in _pids(root):
        place = os.path.join(root, "proc", str(pid))
        threads = _pinned_threads(place, taken)
        if not threads or _is_kernels(place):
            continue
        group = cgroups.of_process(pid, root) or ""
        if group != ours and not group.startswith(ours + "/"):
            name = files.text(os.path.join(place, "comm"))
            cpus = format_indices(frozenset().union(*threads.values()))
            told = "" if str(pid) in threads else f", {len(threads)} of its threads"
            found.append(f"{name} (pid {pid}{told}, CPUs {cpus})")
    return found


def _pinned_threads(place: str, taken: frozenset[int]) -> dict[str, frozenset[int]]:
    """The threads with nothing but ``taken``; the first one need not be among them."""
    found = {}
    tasks = os.path.join(place, "task")
    for task in files.names(tasks):
        text = files.text(os.path.join(tasks, task, "status"))
        match = re.search(r"^Cpus_allowed_list:\s*(\S+)", text, re.MULTILINE)
        allowed = _indices(match.group(1)) if match else frozenset()
        if allowed and allowed <= taken:
            found[task] = allowed
    return found


def _is_kernels(place: str) -> bool:
    fields = _fields(files.text(os.path.join(place, "stat")))
    return fields is not None and bool(int(fields[1][6]) & _KERNEL_THREAD)


def _policy(stat: str) -> tuple[str, int, int] | None:
    """(name, policy, priority) of a real-time task that is not the kernel's, else None."""
    fields = _fields(stat)
    if fields is None:
        return None
    name, rest = fields
    # Behind the name: field 3 of proc(5) is rest[0], so flags (9), rt_priority (40), policy (41).
    if int(rest[6]) & _KERNEL_THREAD or int(rest[38]) not in _NAMES:
        return None
    return name, int(rest[38]), int(rest[37])


def _fields(stat: str) -> tuple[str, list[str]] | None:
    """The name, which may hold blanks and brackets, and the fields behind it."""
    start, end = stat.find("("), stat.rfind(")")
    rest = stat[end + 1 :].split()
    if start < 0 or end < start or len(rest) < 39:
        return None
    if not all(rest[index].lstrip("-").isdigit() for index in (6, 37, 38)):
        return None
    return stat[start + 1 : end], rest


def _pids(root: str) -> list[int]:
    return sorted(int(name) for name in files.names(os.path.join(root, "proc")) if name.isdigit())


def _indices(text: str) -> frozenset[int]:
    try:
        return frozenset(parse_indices(text))
    except QuantityError:
        return frozenset()
