# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Control groups as the kernel shows them: version, controllers, and files of one group."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

from .atomic import read_text

MOUNT = "sys/fs/cgroup"


@dataclass(frozen=True)
class CgroupInfo:
    """``version`` is 2 for the unified hierarchy, 1 for legacy and hybrid, None without any.

    ``controllers`` are those of the root: what limits this host can enforce at all.
    """

    version: int | None
    controllers: list[str]


def read_cgroups(root: str = "/") -> CgroupInfo:
    """Which hierarchy is mounted under ``root``.

    ``cgroup.controllers`` at the mount point itself exists only on the unified hierarchy;
    hybrid hosts have it one level down and put every controller we need in version 1.
    """
    unified = read_text(os.path.join(root, MOUNT, "cgroup.controllers"))
    if unified is not None:
        return CgroupInfo(2, unified.split())
    if os.path.isdir(os.path.join(root, MOUNT)):
        legacy = parse_proc_cgroups(read_text(os.path.join(root, "proc/cgroups")) or "")
        return CgroupInfo(1, legacy) if legacy else CgroupInfo(None, [])
    return CgroupInfo(None, [])


def parse_proc_cgroups(text: str) -> list[str]:
    """Enabled controllers of ``/proc/cgroups`` (name, hierarchy, count, enabled)."""
    rows = (line.split() for line in text.splitlines() if not line.startswith("#"))
    return [row[0] for row in rows if len(row) == 4 and row[3] == "1"]


def directory(control_group: str, root: str = "/") -> str:
    """The directory of a group named as systemd does: ``/ai.slice/ai-workload.slice``."""
    return os.path.join(root, MOUNT, control_group.lstrip("/"))


def read_files(control_group: str, names: Sequence[str], root: str = "/") -> dict[str, str | None]:
    """The stripped content of files such as ``cpu.max``; None for one that is not there."""
    values = {}
    for name in names:
        text = read_text(os.path.join(directory(control_group, root), name))
        values[name] = text.strip() if text is not None else None
    return values


def of_process(pid: int, root: str = "/") -> str | None:
    """The version 2 group of a process, or None when it is gone or has none."""
    text = read_text(os.path.join(root, "proc", str(pid), "cgroup")) or ""
    for line in text.splitlines():
        hierarchy, _colon, rest = line.partition(":")
        if hierarchy == "0":
            return rest.partition(":")[2]
    return None
