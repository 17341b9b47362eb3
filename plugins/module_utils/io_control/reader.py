# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Disks of a host, and the disks that a path lies on. Every reader takes the root of the tree."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable

from .. import cgroups
from ..atomic import read_text
from .model import ALL, SCHEDULERS, Disk, IoError, Kernel

_BLOCK = "sys/class/block"
_IDENTITIES = ("wwid", "device/wwid", "serial", "device/serial")
_CHOICE = re.compile(r"\[([^\]]+)\]")


def read_kernel(root: str = "/") -> Kernel:
    """What the running kernel can do for IO weights."""
    groups = cgroups.read_cgroups(root)
    if groups.version != 2:
        return Kernel(False, "this host does not use cgroup v2 alone, and only that has io.weight")
    if "io" not in groups.controllers:
        return Kernel(
            False,
            "the io controller is missing (/sys/fs/cgroup/cgroup.controllers): look for "
            "cgroup_disable=io on the kernel command line",
        )
    text = cgroups.read_files("/", ["io.cost.qos"], root)["io.cost.qos"]
    lines = [line.split() for line in (text or "").splitlines() if line.strip()]
    return Kernel(text is not None, None, {words[0]: " ".join(words[1:]) for words in lines})


def all_disks(root: str = "/") -> list[Disk]:
    """Every disk with a device behind it and something on it."""
    return [
        read_disk(name, root)
        for name in _names(os.path.join(root, "sys/block"))
        if _is_disk(name, root)
    ]


def resolve(given: str, root: str = "/") -> list[Disk]:
    """The disks behind ``*``, the name of a block device, a device file, or any other path.

    A partition counts as its disk, a loop device as the disk of its file, and a logical volume, an
    array or an encrypted device as all disks below it. Raises IoError for what lies on none.
    """
    if given == ALL:
        return all_disks(root)
    name = _block_name(given, root)
    found: dict[str, Disk] = {}
    for disk, through in _below(name, (), root):
        way = tuple(one for one in through if one != disk)
        found.setdefault(disk, read_disk(disk, root, way))
    if not found:
        raise IoError(
            f"{given} is {name}, and no disk of this host is behind it: wanted a disk, or a "
            "path on one"
        )
    return list(found.values())


def read_disk(name: str, root: str = "/", through: tuple[str, ...] = ()) -> Disk:
    """One disk as the kernel shows it; ``through`` is what lies between it and what was asked."""
    directory = os.path.join(root, _BLOCK, name)
    text = read_text(os.path.join(directory, "queue/scheduler")) or ""
    listed = tuple(text.replace("[", "").replace("]", "").split())
    chosen = _CHOICE.search(text)
    identity = None
    for attribute in _IDENTITIES:
        value = (read_text(os.path.join(directory, attribute)) or "").strip()
        # udev matches by shell patterns, and a serial of blanks or zeros is none.
        if value.strip("0 .") and not re.search(r'[*?\[\]|"\\]', value):
            identity = (attribute, value)
            break
    more = [one for one in SCHEDULERS if one not in listed and has_module(one, root)]
    return Disk(
        name=name,
        number=(read_text(os.path.join(directory, "dev")) or "").strip(),
        scheduler=chosen.group(1) if chosen else None,
        schedulers=(*listed, *more) if chosen else (),
        identity=identity,
        through=through,
        rotates=(read_text(os.path.join(directory, "queue/rotational")) or "").strip() == "1",
    )


def has_module(scheduler: str, root: str = "/") -> bool:
    """Can the running kernel load this scheduler? It does by itself when one is chosen."""
    release = (read_text(os.path.join(root, "proc/sys/kernel/osrelease")) or "").strip()
    names = {"kyber": "kyber-iosched.ko"}
    wanted = names.get(scheduler, f"{scheduler}.ko")
    for table in ("modules.dep", "modules.builtin"):
        text = read_text(os.path.join(root, "lib/modules", release, table)) or ""
        if re.search(rf"/{re.escape(wanted)}(\.[a-z0-9]+)?(:|$)", text, re.MULTILINE):
            return True
    return False


def _is_disk(name: str, root: str) -> bool:
    directory = os.path.join(root, _BLOCK, name)
    size = (read_text(os.path.join(directory, "size")) or "0").strip()
    hidden = (read_text(os.path.join(directory, "hidden")) or "0").strip()
    has_device = os.path.exists(os.path.join(directory, "device"))
    return has_device and size != "0" and hidden == "0" and not name.startswith("sr")


def _block_name(given: str, root: str) -> str:
    if "/" not in given:
        if not os.path.isdir(os.path.join(root, _BLOCK, given)):
            disks = ", ".join(disk.name for disk in all_disks(root))
            raise IoError(f"{given} is no block device of this host: wanted one of {disks}")
        return given
    path = os.path.join(root, given.lstrip("/"))
    # A directory that is yet to come, such as /var/lib/docker, will lie where its parent does.
    while not given.startswith("/dev/") and not os.path.exists(path) and path != root:
        path = os.path.dirname(path)
    try:
        status = os.stat(path)
    except OSError as error:
        raise IoError(
            f"{given}: {error.strerror}. Wanted a block device or a path on one"
        ) from error
    number = status.st_rdev if stat.S_ISBLK(status.st_mode) else status.st_dev
    link = os.path.join(root, "sys/dev/block", f"{os.major(number)}:{os.minor(number)}")
    if not os.path.exists(link):
        raise IoError(
            f"{given} lies on a file system without a block device of its own (tmpfs, overlay, "
            "btrfs, a network): wanted the disk itself"
        )
    return os.path.basename(os.path.realpath(link))


def _below(name: str, through: tuple[str, ...], root: str) -> Iterable[tuple[str, tuple[str, ...]]]:
    """The disks below a block device, each with the names on the way."""
    directory = os.path.realpath(os.path.join(root, _BLOCK, name))
    way = (*through, name)
    if len(way) > 12:
        return
    if os.path.exists(os.path.join(directory, "partition")):
        yield from _below(os.path.basename(os.path.dirname(directory)), way, root)
        return
    backing = read_text(os.path.join(directory, "loop/backing_file"))
    slaves = _names(os.path.join(directory, "slaves"))
    if backing is not None:
        yield from _below(_block_name(backing.strip(), root), way, root)
    elif slaves:
        for one in slaves:
            yield from _below(one, way, root)
    elif _is_disk(name, root):
        yield name, way


def _names(directory: str) -> list[str]:
    try:
        return sorted(os.listdir(directory))
    except (FileNotFoundError, NotADirectoryError):
        return []
