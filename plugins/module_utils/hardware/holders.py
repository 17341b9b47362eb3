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
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from ..atomic import read_text
from .model import Holder
from .nodes import NVIDIA_MAJOR

# The kernel keeps 15 characters of a program's name (TASK_COMM_LEN).
_KINDS = {
    "Xorg": "display",
    "X": "display",
    "Xorg.bin": "display",
    "Xwayland": "display",
    "gnome-shell": "display",
    "kwin_wayland": "display",
    "kwin_x11": "display",
    "gdm-wayland-ses": "display",
    "sddm-greeter": "display",
    "sway": "display",
    "weston": "display",
    "nvidia-persiste": "persistence",
    "nv-hostengine": "dcgm",
    "dcgm-exporter": "dcgm",
    "dcgmi": "dcgm",
}
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
class _Search:
    """What one walk over the processes collects."""

    numbers: dict[int, int]
    root: str
    holders: dict[int, list[Holder]]
    # One process of each container, with the devices the container's processes have open.
    containers: dict[str, tuple[int, set[int]]] = field(default_factory=dict)
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
        for pid in _processes(root):
            _look_at(pid, search, own_namespace)
        _add_granted(minors, search)
    return Sight(search.holders, search.complete)


def kind_of(name: str, container: str | None) -> str:
    """process, display, persistence, dcgm or container, by the kernel's name of a process."""
    return _KINDS.get(name, "container" if container else "process")


def container_of(cgroup: str) -> str | None:
    """The container a /proc/PID/cgroup names; of nested ones the outermost, which is ours."""
    match = _CONTAINER.search(cgroup)
    return next((group for group in match.groups() if group), None) if match else None


def describe(pid: int, root: str = "/", used_mib: int | None = None) -> Holder:
    """A process as a holder, whatever told that it is one."""
    directory = os.path.join(root, "proc", str(pid))
    name = (_text(os.path.join(directory, "comm")) or "?").strip()
    container = container_of(_text(os.path.join(directory, "cgroup")) or "")
    return Holder(pid, name, kind_of(name, container), container, used_mib)


def _look_at(pid: int, search: _Search, own_namespace: str | None) -> None:
    directory = os.path.join(search.root, "proc", str(pid))
    opened = _open_devices(directory, search)
    if not opened and _mount_namespace(directory) == own_namespace:
        return  # neither a holder nor in a container
    holder = describe(pid, search.root)
    for index in sorted(opened):
        search.holders[index].append(holder)
    if holder.container is not None:
        search.containers.setdefault(holder.container, (pid, set()))[1].update(opened)


def _open_devices(directory: str, search: _Search) -> set[int]:
    """Indices of the devices a process has open, also by O_PATH or from another namespace."""
    opened: set[int] = set()
    try:
        names = os.listdir(os.path.join(directory, "fd"))
    except PermissionError:
        search.complete = False
        return opened
    except OSError:
        return opened  # it is gone
    for name in names:
        link = os.path.join(directory, "fd", name)
        try:
            target = os.readlink(link)
            # stat would wait for a dead network file system: only what may be a node is asked.
            if target.startswith("/dev/") or "nvidia" in target:
                index = search.numbers.get(_character_device(link) or 0)
                if index is not None:
                    opened.add(index)
        except OSError:
            continue
    return opened


def _add_granted(minors: Mapping[int, int], search: _Search) -> None:
    """Containers that see the node in their own /dev and have it not open now."""
    for container, (pid, opened) in search.containers.items():
        directory = os.path.join(search.root, "proc", str(pid))
        for minor, index in minors.items():
            node = os.path.join(directory, "root/dev", f"nvidia{minor}")
            if index in opened or search.numbers.get(_character_device(node) or 0) != index:
                continue
            name = (_text(os.path.join(directory, "comm")) or "?").strip()
            search.holders[index].append(Holder(pid, name, "granted", container))


def _processes(root: str) -> Iterator[int]:
    """Process ids in rising order."""
    try:
        names = os.listdir(os.path.join(root, "proc"))
    except FileNotFoundError:
        return
    yield from sorted(int(name) for name in names if name.isdigit())


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


def _text(path: str) -> str | None:
    """A file of comm or cgroup; cmdline takes the memory lock of a process that may hang."""
    try:
        return read_text(path)
    except OSError:
        return None
