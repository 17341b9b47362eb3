# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""CPUs, memory, disks' schedulers, SELinux and kernel settings, as the kernel shows them."""

from __future__ import annotations

import glob
import os
import re
from typing import Any

from . import files

# The settings that rules judge.
SYSCTLS = (
    "kernel.sched_rt_period_us",
    "kernel.sched_rt_runtime_us",
    "kernel.numa_balancing",
    "vm.overcommit_memory",
    "vm.swappiness",
    "vm.zone_reclaim_mode",
)


def read(root: str = "/") -> dict[str, Any]:
    """``cpus``, ``memory_mib``, ``nodes``, ``io``, ``selinux`` …; None: not known.

    ``vendors`` are those of display devices and accelerators on the PCI bus: ``nvidia``, ``amd``,
    ``intel``, ``habana``.
    """
    return {
        "vendors": _vendors(root),
        "cpus": _line(root, "sys/devices/system/cpu/online"),
        "memory_mib": _memory_mib(root),
        "nodes": _nodes(root),
        "io": {"iocost": _iocost(root), "bfq": _bfq(root)},
        "selinux": _selinux(root),
        "sysctl": _sysctls(root),
    }


# PCI vendor ids (pci.ids), and the classes of GPUs: display devices and processing accelerators.
_VENDORS = {"0x10de": "nvidia", "0x1002": "amd", "0x8086": "intel", "0x1da3": "habana"}
_GPU_CLASSES = ("0x03", "0x12")


def _vendors(root: str) -> list[str]:
    found = set()
    for path in glob.glob(os.path.join(root, "sys/bus/pci/devices/*")):
        if files.text(os.path.join(path, "class")).startswith(_GPU_CLASSES):
            vendor = files.text(os.path.join(path, "vendor")).strip()
            found.add(_VENDORS.get(vendor, ""))
    return sorted(found - {""})


def _line(root: str, path: str) -> str | None:
    return files.text(os.path.join(root, path)).strip() or None


def _memory_mib(root: str) -> int | None:
    match = re.search(r"^MemTotal:\s+(\d+) kB", _line(root, "proc/meminfo") or "", re.MULTILINE)
    return int(match.group(1)) // 1024 if match else None


def _nodes(root: str) -> dict[str, str]:
    found = {}
    for path in sorted(glob.glob(os.path.join(root, "sys/devices/system/node/node[0-9]*"))):
        if os.path.exists(os.path.join(path, "cpulist")):
            cpus = files.text(os.path.join(path, "cpulist"))
            found[os.path.basename(path)[len("node") :]] = cpus.strip()
    return found


def _iocost(root: str) -> list[str]:
    """The disks, by name, on which io.weight is honoured through iocost (admin-guide/cgroup-v2)."""
    enabled = []
    for line in (_line(root, "sys/fs/cgroup/io.cost.qos") or "").splitlines():
        number, _blank, rest = line.partition(" ")
        if "enable=1" in rest.split():
            link = os.path.join(root, "sys/dev/block", number)
            enabled.append(os.path.basename(os.path.realpath(link)))
    return sorted(enabled)


def _bfq(root: str) -> list[str]:
    found = []
    for path in sorted(glob.glob(os.path.join(root, "sys/block/*/queue/scheduler"))):
        if "[bfq]" in files.text(path):
            found.append(path.split(os.sep)[-3])
    return found


def _selinux(root: str) -> str | None:
    """``enforcing``, ``permissive`` or ``disabled``: no file system of it, no SELinux."""
    enforce = _line(root, "sys/fs/selinux/enforce")
    return {None: "disabled", "1": "enforcing", "0": "permissive"}.get(enforce)


def _sysctls(root: str) -> dict[str, str]:
    found = {}
    for name in SYSCTLS:
        value = _line(root, "proc/sys/" + name.replace(".", "/"))
        if value is not None:
            found[name] = value
    return found
