# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""NUMA nodes of the host with their huge pages, from sysfs."""

from __future__ import annotations

import os
import re

from ..atomic import read_text
from .host_model import HugePages, NumaNode

_NODE = re.compile(r"node(\d+)$")
_HUGEPAGES = re.compile(r"hugepages-(\d+)kB$")
_TOTAL = re.compile(r"MemTotal:\s+(\d+) kB")


def read_nodes(root: str = "/") -> list[NumaNode]:
    """Every node with its CPUs and memory; [] on a kernel without NUMA."""
    directory = os.path.join(root, "sys/devices/system/node")
    try:
        names = os.listdir(directory)
    except FileNotFoundError:
        return []
    numbers = sorted(int(match.group(1)) for match in map(_NODE.match, names) if match)
    return [_read_node(number, os.path.join(directory, f"node{number}")) for number in numbers]


def _read_node(number: int, directory: str) -> NumaNode:
    total = _TOTAL.search(read_text(os.path.join(directory, "meminfo")) or "")
    cpus = (read_text(os.path.join(directory, "cpulist")) or "").strip()
    return NumaNode(
        node=number,
        cpus=cpus,
        memory_mib=int(total.group(1)) // 1024 if total else None,
        kind="cpu" if cpus else "memory",
        hugepages=_read_hugepages(os.path.join(directory, "hugepages")),
    )


def _read_hugepages(directory: str) -> list[HugePages]:
    try:
        names = os.listdir(directory)
    except FileNotFoundError:
        return []
    sizes = sorted(int(match.group(1)) for match in map(_HUGEPAGES.match, names) if match)
    return [
        HugePages(
            size,
            total=_count(os.path.join(directory, f"hugepages-{size}kB", "nr_hugepages")),
            free=_count(os.path.join(directory, f"hugepages-{size}kB", "free_hugepages")),
        )
        for size in sizes
    ]


def _count(path: str) -> int | None:
    text = (read_text(path) or "").strip()
    return int(text) if text.isdigit() else None
