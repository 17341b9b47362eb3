# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The words of ``nvidia-smi topo -m``, their order, and the rule behind the PCIe ones. Pure.

X self · NV# that many NVLinks · PIX one PCIe switch · PXB several switches, no host bridge ·
PHB one host bridge · NODE host bridges of one NUMA node · SYS across nodes. Source: the legend
nvidia-smi prints; NVML's numbers are nvml.h's nvmlGpuTopologyLevel_t.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import takewhile

# Nearest first. INTERNAL is two GPUs on one board, which nvidia-smi prints as PSB or PIX.
PCIE_LEVELS = ("INTERNAL", "PIX", "PXB", "PHB", "NODE", "SYS")
NVML_LEVELS = {0: "INTERNAL", 10: "PIX", 20: "PXB", 30: "PHB", 40: "NODE", 50: "SYS"}
SELF = "X"
_NVLINKS = re.compile(r"NV([0-9]{1,3})")

# Below a shared port each device of one switch has its downstream port and itself.
_BELOW_ONE_SWITCH = 2


def nvlinks(word: str) -> int:
    """12 for ``NV12``, 0 for every other word."""
    match = _NVLINKS.fullmatch(word)
    return int(match.group(1)) if match else 0


def is_level(word: str) -> bool:
    """Is this a word a matrix may hold?"""
    return word == SELF or word in PCIE_LEVELS or nvlinks(word) > 0


def pcie_level(
    one: Sequence[str], other: Sequence[str], one_node: int | None, other_node: int | None
) -> str | None:
    """PIX, PXB, PHB, NODE or SYS from two PCI paths (root port first) and NUMA nodes.

    None where they do not tell: a path is unknown ([]) and the nodes are not two, or the firmware
    names a node for one device only. Where it names none for both, the host has one.
    """
    shared = shared_steps(one, other)
    if shared:
        below = max(len(one), len(other)) - shared
        return "PIX" if below <= _BELOW_ONE_SWITCH else "PXB"
    bridge = _host_bridge(one)
    if bridge is not None and bridge == _host_bridge(other):
        return "PHB"
    if one_node == other_node:
        return "NODE" if one and other else None
    return None if one_node is None or other_node is None else "SYS"


def shared_steps(one: Sequence[object], other: Sequence[object]) -> int:
    """How many steps two ways down a tree have in common from its root."""
    return len(list(takewhile(lambda pair: pair[0] == pair[1], zip(one, other))))


def _host_bridge(path: Sequence[str]) -> str | None:
    """Domain and bus of the root port: one host bridge owns one root bus."""
    return path[0].rpartition(":")[0] if path else None
