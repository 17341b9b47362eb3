# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Who has a GPU open, and which container may open it: from /proc, without NVML.

NVML names only processes with memory on the GPU. A monitoring agent, a display server or the
persistence daemon holds the node without any, and blocks MIG changes and resets all the same.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field

from ..process_kinds import kind_of
from . import files
from .model import Holder
from .nodes import NVIDIA_MAJOR

# docker-ID.scope, libpod-ID.scope, cri-containerd-ID.scope, crio-ID.scope, and the plain /docker/ID
# of the cgroupfs driver; LXC and systemd-nspawn use names. libpod-conmon-ID is the monitor, which
# runs outside the container.
_CONTAINER = re.compile(
    r"(?:^|[/:])(?!libpod-conmon-|crio-conmon-)(?:[a-z]+(?:-[a-z]+)*-)?([0-9a-f]{64})(?:\.scope)?(?=/|$)"
    r"|/lxc\.payload\.([^/]+)|/machine-([^/]+)\.scope",
    re.MULTILINE,
)


@dataclass(frozen=True)
class Sight:
    """Holders by device index. ``complete`` is False when some processes could not be looked at."""

    holders: dict[int, list[Holder]]
    complete: bool


@dataclass
class _Sandbox:
    """A container, or another mount namespace whose /dev is its own: its processes so far."""

    container: str | None
    pids: list[int] = field(default_factory=list)
    opened: set[int] = field(default_factory=set)


@dataclass
class _Search:
    """What one walk over the processes collects."""

    numbers: dict[int, int]
    root: str
    holders: dict[int, list[Holder]]
    # By container, or by mount namespace where the control group tells of no container: that of
    # a rootless engine without control groups, for one.
    sandboxes: dict[str, _Sandbox] = field(default_factory=dict)
    complete: bool = True


def find(minors: Mapping[int, int], root: str = "/") -> dict[int, list[Holder]]:
    """The holders of each device; ``minors`` maps the minor of a node to the device's index."""
    return look(minors, root).holders


def look(minors: Mapping[int, int], root: str = "/") -> Sight:
    """As :func:`find`, and whether all processes could be looked at: only root may."""
    numbers = {os.makedev(NVIDIA_MAJOR, minor): index for minor, index in minors.items()}
    search = _Search(numbers, root, {index: [] for index in minors.values()})
    if numbers:
        own_namespace = _mount_namespace(os.path.join(root, "proc/self"))
        processes = _processes(root)
        # Mounted with hidepid, /proc shows a user his own processes and not even init.
        search.complete = 1 in processes
        for pid in processes:
            _look_at(pid, search, own_namespace)
        # What was forked meanwhile may have the open node of a parent that ended.
        for pid in sorted(set(_processes(root)) - set(processes)):
            _look_at(pid, search, own_namespace)
        _add_granted(minors, search)
    return Sight(search.holders, search.complete)


def container_of(cgroup: str) -> str | None:
    """The container a /proc/PID/cgroup names; of nested ones the outermost, which is ours."""
    match = _CONTAINER.search(cgroup)
    return next((group for group in match.groups() if group), None) if match else None


def describe(pid: int, root: str = "/", used_mib: int | None = None) -> Holder:
    """A process as a holder, whatever told that it is one."""
    directory = os.path.join(root, "proc", str(pid))
    container = container_of(files.text(os.path.join(directory, "cgroup")))
    name = _name(directory)
    return Holder(pid, name, kind_of(name, container), container, used_mib)


def _look_at(pid: int, search: _Search, own_namespace: str | None) -> None:
    directory = os.path.join(search.root, "proc", str(pid))
    opened = _open_devices(directory, search)
    namespace = _mount_namespace(directory)
    if not opened and namespace == own_namespace:
        return  # neither a holder nor in a container
    holder = describe(pid, search.root)
    for index in sorted(opened):
        search.holders[index].append(holder)
    key = holder.container
    if key is None and namespace != own_namespace and _has_own_dev(directory, search.root):
        key = namespace
    if key is not None:
        sandbox = search.sandboxes.setdefault(key, _Sandbox(holder.container))
        sandbox.pids.append(pid)
        sandbox.opened |= opened


def _open_devices(directory: str, search: _Search) -> set[int]:
    """Indices of the devices a process has open, also by O_PATH or from another namespace."""
    opened: set[int] = set()
    try:
        links = _descriptors(directory)
    except PermissionError:
        search.complete = False
        return opened
    except OSError:
        return opened  # it is gone
    for link in links:
        try:
            target = os.readlink(link)
            # stat would wait for a dead network file system: only what may be a node is asked.
            if target.startswith("/dev/") or "nvidia" in target:
                index = search.numbers.get(_character_device(link) or 0)
                if index is not None:
                    opened.add(index)
        except PermissionError:
            # Root without CAP_SYS_PTRACE, in a container: the names are shown, their targets not.
            search.complete = False
            break
        except OSError:
            continue
    return opened


def _descriptors(directory: str) -> list[str]:
    """The paths of a process's open files. Raises OSError."""
    files_of = os.path.join(directory, "fd")
    found = os.listdir(files_of)
    tasks = os.path.join(directory, "task")
    # The first thread of a process may have ended before the others: its files show nothing then.
    if not found and os.path.isdir(tasks) and os.stat(tasks).st_nlink > 3:
        directories = [os.path.join(tasks, thread, "fd") for thread in os.listdir(tasks)]
        return [os.path.join(one, name) for one in directories for name in files.names(one)]
    return [os.path.join(files_of, name) for name in found]


def _has_own_dev(directory: str, root: str) -> bool:
    """Is its /dev another than the host's? A service with a private /tmp shares that one."""
    try:
        own = os.path.join(directory, "root/dev")
        return not os.path.samefile(own, os.path.join(root, "dev"))
    except OSError:
        return False


def _add_granted(minors: Mapping[int, int], search: _Search) -> None:
    """Sandboxes that see the node in their own /dev and have it not open now."""
    for sandbox in search.sandboxes.values():
        for minor, index in minors.items():
            if index in sandbox.opened:
                continue
            # The first process may be a zombie by now, which shows no root: any of them will do.
            for pid in sandbox.pids:
                directory = os.path.join(search.root, "proc", str(pid))
                node = os.path.join(directory, "root/dev", f"nvidia{minor}")
                if search.numbers.get(_character_device(node) or 0) == index:
                    holder = Holder(pid, _name(directory), "granted", sandbox.container)
                    search.holders[index].append(holder)
                    break


def _processes(root: str) -> list[int]:
    """Process ids in rising order."""
    numbers = map(files.number, files.names(os.path.join(root, "proc")))
    return sorted(number for number in numbers if number is not None)


def _mount_namespace(directory: str) -> str | None:
    try:
        return os.readlink(os.path.join(directory, "ns/mnt"))
    except OSError:
        return None


def _character_device(path: str) -> int | None:
    """The number of a character device, None for anything else."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_rdev if stat.S_ISCHR(status.st_mode) else None


def _name(directory: str) -> str:
    """A process's name; cmdline would take the memory lock of a process that may hang."""
    return files.text(os.path.join(directory, "comm")) or "?"
