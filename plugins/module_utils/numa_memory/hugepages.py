# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Huge pages of each NUMA node: what is there, what may be taken, how it comes back at boot.

The kernel reserves them from memory that is free, so what running work needs must be left. Files:
the kernel's admin-guide/mm/hugetlbpage.rst.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence

from ..hardware import files
from ..settings.files import header
from ..settings.model import NUMBER, UNSUPPORTED, Target
from .model import ALL_NODES, HugePagesWish, NodeMemory, NodePages, NumaError

# Read before most services start, when memory is not yet in pieces. See tmpfiles.d(5): "w!" is for
# boot alone, since packages run systemd-tmpfiles when they are installed.
BOOT_FILE = "/etc/tmpfiles.d/steadygpu-hugepages.conf"
_NODES = "/sys/devices/system/node"
_NODE = re.compile(r"node([0-9]{1,9})")
_SIZE = re.compile(r"hugepages-([0-9]{1,12})kB")
_FIELD = re.compile(r"^Node \d+ (\S+?):\s+(\d{1,18}) kB", re.MULTILINE)
_STATUS = re.compile(r"^HugetlbPages:\s+(\d{1,18}) kB", re.MULTILINE)


def read_nodes(root: str = "/") -> dict[int, NodeMemory]:
    """The NUMA nodes that have memory; {} on a kernel without NUMA."""
    directory = _below(root, _NODES)
    found = {}
    for name in files.names(directory):
        match = _NODE.fullmatch(name)
        if match:
            node = _read_node(int(match.group(1)), os.path.join(directory, name))
            if node.total_kib:
                found[node.node] = node
    return found


def _read_node(number: int, directory: str) -> NodeMemory:
    fields = {
        name: int(value)
        for name, value in _FIELD.findall(files.text(os.path.join(directory, "meminfo")))
    }
    pages = {}
    for name in files.names(os.path.join(directory, "hugepages")):
        match = _SIZE.fullmatch(name)
        if match:
            base = os.path.join(directory, "hugepages", name)
            total = files.number(files.text(os.path.join(base, "nr_hugepages"))) or 0
            free = files.number(files.text(os.path.join(base, "free_hugepages"))) or 0
            pages[int(match.group(1))] = NodePages(total, max(0, total - free))
    return NodeMemory(number, fields.get("MemTotal", 0), _available(fields), pages)


def _available(fields: Mapping[str, int]) -> int:
    """What could be given without swapping: the kernel says it for the whole machine only.

    As its own estimate does, half of the page cache and of reclaimable slabs counts as needed.
    """
    cache = fields.get("Active(file)", 0) + fields.get("Inactive(file)", 0)
    return fields.get("MemFree", 0) + (cache + fields.get("SReclaimable", 0)) // 2


def spread(
    wishes: Iterable[HugePagesWish], nodes: Mapping[int, NodeMemory]
) -> tuple[HugePagesWish, ...]:
    """The wishes with each node named. One that names a node goes before one for all."""
    found: dict[tuple[int, int], HugePagesWish] = {}
    for wish in sorted(wishes, key=lambda one: one.node):
        named = sorted(nodes) if wish.node == ALL_NODES else [wish.node]
        for node in named or [0]:
            found[node, wish.size_kib] = HugePagesWish(node, wish.size_kib, wish.count)
    return tuple(found[key] for key in sorted(found))


def targets(wishes: Sequence[HugePagesWish], nodes: Mapping[int, NodeMemory]) -> tuple[Target, ...]:
    """How each is read back; what this machine cannot have says why. Raises NumaError."""
    return tuple(_target(wish, nodes) for wish in wishes)


def _target(wish: HugePagesWish, nodes: Mapping[int, NodeMemory]) -> Target:
    name = name_of(wish.size_kib, wish.node)
    wanted = str(wish.count)
    node = nodes.get(wish.node)
    if not nodes:
        why = "this machine shows no NUMA nodes (no /sys/devices/system/node)"
        return Target(name, UNSUPPORTED, "", wanted, why)
    if node is None and len(nodes) == 1:
        why = (
            f"this machine shows only NUMA node {next(iter(nodes))}, as a virtual machine does "
            "that hides its host's nodes"
        )
        return Target(name, UNSUPPORTED, "", wanted, why)
    if node is None:
        there = ", ".join(map(str, nodes))
        raise NumaError(f"hugepages: there is no NUMA node {wish.node} here, only {there}")
    if wish.size_kib not in node.pages:
        there = ", ".join(f"{size} kB" for size in sorted(node.pages)) or "none at all"
        why = f"this CPU and kernel have no huge pages of {wish.size_kib} kB, they have {there}"
        return Target(name, UNSUPPORTED, "", wanted, why)
    note = (
        f"where memory is in pieces, the kernel gives fewer: ask for fewer, or reserve them before "
        f"anything runs, by hugepagesz={_short(wish.size_kib)} hugepages={wish.node}:{wish.count} "
        "in the boot loader"
    )
    return Target(name, NUMBER, path_of(wish.size_kib, wish.node), wanted, note)


def refusals(
    wishes: Sequence[HugePagesWish], nodes: Mapping[int, NodeMemory], keep_free_percent: int
) -> list[str]:
    """Why the pages must not be taken, or given back, one sentence for each node. Pure."""
    said = []
    for node in nodes.values():
        here = [w for w in wishes if w.node == node.node and w.size_kib in node.pages]
        for wish in here:
            used = node.pages[wish.size_kib].used
            if wish.count < used:
                said.append(
                    f"{name_of(wish.size_kib, node.node)}: there would be {wish.count}, and {used} "
                    f"of {node.pages[wish.size_kib].total} are in use"
                )
        more = sum((w.count - node.pages[w.size_kib].total) * w.size_kib for w in here)
        spare = node.available_kib - node.total_kib * keep_free_percent // 100
        if more > 0 and more > spare:
            said.append(
                f"NUMA node {node.node}: the huge pages would take {_mib(more)} more MiB, and it "
                f"has {_mib(node.available_kib)} MiB available, of which {keep_free_percent} % of "
                f"its {_mib(node.total_kib)} MiB must stay for running work; that leaves "
                f"{_mib(max(0, spare))} MiB. Ask for fewer, or stop what uses the memory"
            )
    return said


def users(root: str = "/") -> list[str]:
    """Processes that have huge pages, as ``NAME (pid 12, 64 MiB)``."""
    found = []
    directory = os.path.join(root, "proc")
    for pid in filter(str.isdecimal, files.names(directory)):
        match = _STATUS.search(files.text(os.path.join(directory, pid, "status")))
        if match and match.group(1) != "0":
            name = files.text(os.path.join(directory, pid, "comm"))
            found.append(f"{name} (pid {pid}, {_mib(int(match.group(1)))} MiB)")
    return found


def boot_text(wishes: Sequence[HugePagesWish], nodes: Mapping[int, NodeMemory]) -> str | None:
    """The file that reserves them at boot; None where there is nothing to reserve."""
    lines = [
        f"w! {path_of(wish.size_kib, wish.node)} - - - - {wish.count}\n"
        for wish in wishes
        if wish.node in nodes and wish.size_kib in nodes[wish.node].pages
    ]
    return header("numa") + "".join(lines) if lines else None


def name_of(size_kib: int, node: int) -> str:
    """As a person knows it."""
    return f"hugepages-{size_kib}kB node {node}"


def path_of(size_kib: int, node: int) -> str:
    """The file of the kernel."""
    return f"{_NODES}/node{node}/hugepages/hugepages-{size_kib}kB/nr_hugepages"


def _short(size_kib: int) -> str:
    return f"{size_kib >> 20}G" if size_kib >= 1 << 20 else f"{size_kib >> 10}M"


def _mib(kib: int) -> int:
    return kib // 1024


def _below(root: str, path: str) -> str:
    return os.path.join(root, path.lstrip("/"))
