# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""NUMA nodes of the host with their huge pages, from sysfs."""

from __future__ import annotations

import os
import re

from . import files
from .host_model import HugePages, NumaNode

_NODE = re.compile(r"node([0-9]{1,9})\Z")
_HUGEPAGES = re.compile(r"hugepages-([0-9]{1,12})kB\Z")
_TOTAL = re.compile(r"MemTotal:\s+([0-9]{1,18}) kB")


def read_nodes(root: str = "/") -> list[NumaNode]:
    """Every node with its CPUs and memory; [] on a kernel without NUMA."""
    directory = os.path.join(root, "sys/devices/system/node")
    matches = map(_NODE.match, files.names(directory))
    numbers = sorted(int(match.group(1)) for match in matches if match)
    return [_read_node(number, os.path.join(directory, f"node{number}")) for number in numbers]


def _read_node(number: int, directory: str) -> NumaNode:
    total = _TOTAL.search(files.text(os.path.join(directory, "meminfo")))
    cpus = files.text(os.path.join(directory, "cpulist"))
    return NumaNode(
        node=number,
        cpus=cpus,
        memory_mib=int(total.group(1)) // 1024 if total else None,
        kind="cpu" if cpus else "memory",
        hugepages=_read_hugepages(os.path.join(directory, "hugepages")),
    )


def _read_hugepages(directory: str) -> list[HugePages]:
    matches = map(_HUGEPAGES.match, files.names(directory))
    sizes = sorted(int(match.group(1)) for match in matches if match)
    return [
        HugePages(
            size,
            total=_count(directory, size, "nr_hugepages"),
            free=_count(directory, size, "free_hugepages"),
        )
        for size in sizes
    ]


def _count(directory: str, size: int, name: str) -> int | None:
    return files.number(files.text(os.path.join(directory, f"hugepages-{size}kB", name)))
