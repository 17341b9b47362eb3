# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The PCIe tree of a machine: what a picture shows under each NUMA node. Pure.

Where the source has PCI paths, they are the tree. Where it has only the words of a matrix, the
tree is what the words prove: all that are PIX to each other are on one switch, PXB below one
root port, PHB below one host bridge. NVLinks hide the word between two GPUs; a network adapter
that is PXB to both still proves that they share switches. What nothing proves is not drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Union

from ansible_collections.steadygpu.host.plugins.module_utils.topology.levels import PCIE_LEVELS
from ansible_collections.steadygpu.host.plugins.module_utils.topology.model import (
    Gpu,
    Machine,
    Nic,
)

HOST_BRIDGE = "bridge"
SWITCH = "switch"

# The topology files that clouds ship for NCCL give the switches a virtual machine hides addresses
# of their own, and know no host bridge above them.
_MADE_UP = "ffff:"

_PIX, _PXB, _PHB = (PCIE_LEVELS.index(word) for word in ("PIX", "PXB", "PHB"))


@dataclass(frozen=True)
class Leaf:
    """A device: the GPU or, where ``nic``, the network adapter with this index."""

    index: int
    nic: bool = False

    @property
    def rank(self) -> tuple[bool, int]:
        """GPUs stand before network adapters."""
        return self.nic, self.index


@dataclass(frozen=True)
class Branch:
    """A host bridge or a PCIe switch and what hangs below it."""

    kind: str
    label: str
    children: tuple[Part, ...]

    @property
    def rank(self) -> tuple[bool, int]:
        """That of the first device below it."""
        return min(child.rank for child in self.children)


Part = Union[Leaf, Branch]


@dataclass(frozen=True)
class Panel:
    """One NUMA node, or devices that share something else where no node is known."""

    title: str
    detail: str
    children: tuple[Part, ...]

    @property
    def leaves(self) -> list[Leaf]:
        """Its devices from left to right."""
        return leaves(self.children)


def leaves(parts: Iterable[Part]) -> list[Leaf]:
    """The devices of ``parts`` from left to right."""
    found: list[Leaf] = []
    for part in parts:
        found += [part] if isinstance(part, Leaf) else leaves(part.children)
    return found


def panels(machine: Machine) -> list[Panel]:
    """The machine's panels, that of the first GPU first; those without a GPU last."""
    homes: dict[str, list[Leaf]] = {}
    for index, gpu in enumerate(machine.gpus):
        homes.setdefault(_home(gpu), []).append(Leaf(index))
    for index, nic in enumerate(machine.nics):
        homes.setdefault(_nic_home(machine, index, nic), []).append(Leaf(index, nic=True))
    made = [
        Panel(home, _detail(machine, found), _ordered(_tree(machine, found)))
        for home, found in homes.items()
    ]
    return sorted(made, key=lambda panel: min(leaf.rank for leaf in panel.leaves))


def without_bars(panel: Panel) -> Panel:
    """The panel with its devices side by side; a lone host bridge moves into its detail."""
    words = [panel.detail] if panel.detail else []
    if [part for part in panel.children if isinstance(part, Branch)]:
        words.append("one host bridge")
    return replace(panel, detail=" · ".join(words), children=tuple(panel.leaves))


def is_flat(panel: Panel) -> bool:
    """Is there at most one host bridge and no switch?"""
    branches = [part for part in panel.children if isinstance(part, Branch)]
    inner = [child for branch in branches for child in branch.children if isinstance(child, Branch)]
    switches = [branch for branch in branches if branch.kind == SWITCH]
    return not inner and not switches and (not branches or len(panel.children) == 1)


def _home(device: Gpu | Nic) -> str:
    nodes = device.numa_nodes
    if nodes:
        return f"NUMA node{'s' * (len(nodes) > 1)} {_ranges(nodes)}"
    cpus = device.cpus if isinstance(device, Gpu) else None
    return f"CPUs {cpus}" if cpus else "NUMA node unknown"


def _nic_home(machine: Machine, index: int, nic: Nic) -> str:
    """Its own node, or that of the nearest GPU if they share one."""
    if nic.numa_nodes:
        return _home(nic)
    words = machine.nic_levels[index] if index < len(machine.nic_levels) else ()
    near = [
        (PCIE_LEVELS.index(word), gpu)
        for gpu, word in enumerate(words)
        if word in PCIE_LEVELS and word != "SYS"
    ]
    if near:
        return _home(machine.gpus[min(near)[1]])
    return "Far from every GPU" if "SYS" in words else "NUMA node unknown"


def _detail(machine: Machine, found: Sequence[Leaf]) -> str:
    gpus = [machine.gpus[leaf.index] for leaf in found if not leaf.nic]
    numbers = {
        number
        for leaf in found
        for number in (machine.nics if leaf.nic else machine.gpus)[leaf.index].numa_nodes
    }
    nodes = [node for node in machine.nodes if node.number in numbers]
    cpus = [node.cpus for node in nodes if node.cpus]
    if not cpus and numbers:
        cpus = sorted({gpu.cpus for gpu in gpus if gpu.cpus})[:1]
    words = [f"CPUs {','.join(cpus)}"] if cpus else []
    memory = [node.memory_mib for node in nodes]
    if memory and None not in memory:
        words.append(f"{sum(size or 0 for size in memory) / 1024:.0f} GiB")
    return " · ".join(words)


def _ranges(numbers: Sequence[int]) -> str:
    ordered = sorted(numbers)
    if len(ordered) > 1 and ordered[-1] - ordered[0] == len(ordered) - 1:
        return f"{ordered[0]}–{ordered[-1]}"  # noqa: RUF001 -- a range, in a picture
    return ", ".join(map(str, ordered))


def _tree(machine: Machine, found: Sequence[Leaf]) -> list[Part]:
    path = _path_of(machine)
    with_path = [leaf for leaf in found if path(leaf)]
    if not with_path:
        return _proven(machine, found)
    parts: list[Part] = [leaf for leaf in found if not path(leaf)]
    for bridge, below in _grouped(with_path, lambda leaf: _root_bus(path(leaf))).items():
        hanging = _below(below, 0, path)
        if bridge.startswith(_MADE_UP):
            parts += hanging
        else:
            parts.append(Branch(HOST_BRIDGE, f"host bridge {bridge}", hanging))
    return parts


def _path_of(machine: Machine) -> Callable[[Leaf], tuple[str, ...]]:
    def path(leaf: Leaf) -> tuple[str, ...]:
        return (machine.nics if leaf.nic else machine.gpus)[leaf.index].pci_path

    return path


def _root_bus(path: Sequence[str]) -> str:
    return path[0].rpartition(":")[0]


def _below(
    found: Sequence[Leaf], depth: int, path: Callable[[Leaf], tuple[str, ...]]
) -> tuple[Part, ...]:
    """What hangs at ``depth`` of the paths: a port that several devices share is a switch."""
    parts: list[Part] = []
    for below in _grouped(found, lambda leaf: (path(leaf)[depth:] or ("",))[0]).values():
        parts += _part(below, depth, path)
    return tuple(parts)


def _part(
    below: Sequence[Leaf], depth: int, path: Callable[[Leaf], tuple[str, ...]]
) -> Sequence[Part]:
    tails = [path(leaf)[depth:] for leaf in below]
    shared = 0
    while all(len(tail) > shared + 1 for tail in tails) and len({t[shared] for t in tails}) == 1:
        shared += 1
    slots = {path(leaf)[-1].rpartition(".")[0] for leaf in below}
    if len(slots) == 1 or not shared:
        return below  # one device, the functions of one card, or what a broken source says
    port = tails[0][shared - 1]
    label = "PCIe switch" if port.startswith(_MADE_UP) else f"PCIe switch {port}"
    return [Branch(SWITCH, label, _below(below, depth + shared, path))]


def _proven(machine: Machine, found: Sequence[Leaf]) -> list[Part]:
    """The tree that the words of the matrix prove."""
    bridges: list[Part] = []
    for phb in _joined(machine, found, _PHB):
        roots: list[Part] = []
        for pxb in _joined(machine, phb, _PXB):
            switches: list[Part] = []
            for pix in _joined(machine, pxb, _PIX):
                switches += _branch(SWITCH, "PCIe switch", pix)
            roots += _branch(SWITCH, "PCIe switches", switches)
        bridges += _branch(HOST_BRIDGE, "host bridge", roots)
    return bridges


def _branch(kind: str, label: str, below: Sequence[Part]) -> Sequence[Part]:
    """No bar above a single thing: that would claim what no word says."""
    return below if len(below) == 1 else [Branch(kind, label, _ordered(below))]


def _joined(machine: Machine, found: Sequence[Leaf], level: int) -> list[list[Leaf]]:
    """``found`` in groups whose members are connected by words of ``level`` or nearer."""
    groups = [[leaf] for leaf in found]
    for number, one in enumerate(found):
        for other in found[number + 1 :]:
            if _near(machine, one, other, level):
                first = next(group for group in groups if one in group)
                second = next(group for group in groups if other in group)
                if first is not second:
                    first += second
                    groups.remove(second)
    return groups


def _near(machine: Machine, one: Leaf, other: Leaf, level: int) -> bool:
    if one.nic and other.nic:
        return False  # the words between network adapters are not kept
    if one.nic or other.nic:
        nic, gpu = (one.index, other.index) if one.nic else (other.index, one.index)
        rows = machine.nic_levels
        word = rows[nic][gpu] if nic < len(rows) and gpu < len(rows[nic]) else None
    else:
        word = machine.levels[one.index][other.index]
    return word in PCIE_LEVELS and PCIE_LEVELS.index(word) <= level


def _grouped(found: Sequence[Leaf], key: Callable[[Leaf], str]) -> dict[str, list[Leaf]]:
    groups: dict[str, list[Leaf]] = {}
    for leaf in found:
        groups.setdefault(key(leaf), []).append(leaf)
    return groups


def _ordered(parts: Iterable[Part]) -> tuple[Part, ...]:
    return tuple(sorted(parts, key=lambda part: part.rank))
