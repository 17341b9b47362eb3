# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The picture of a machine in an NCCL topology file. Pure.

NCCL's tree knows no host bridges: everything below one CPU that shares no switch is one step
apart, which NCCL calls PHB. So PHB here may be the NODE of ``nvidia-smi topo -m``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from . import lists, nvlinks
from .levels import shared_steps
from .model import Gpu, Machine, Nic, Node
from .nccl_xml import Cpu, NcclTree, NvLink, Pci
from .remarks import remarked

SOURCE = "NCCL topology file"

# What a link ends at when a VM, or a fabric of many hosts, does not show its switches.
_UNSEEN = re.compile(r"f{4,}:ff:ff\.\d")
_DISPLAY = "0x03"
_NETWORK = "0x02"


@dataclass(frozen=True)
class _Place:
    """One function of the tree: the CPU it hangs below and the chain down to it."""

    cpu: Cpu
    chain: tuple[Pci, ...]

    @property
    def function(self) -> Pci:
        return self.chain[-1]

    @property
    def nodes(self) -> tuple[int, ...]:
        number = self.cpu.numaid
        return () if number is None or number < 0 else (number,)

    @property
    def key(self) -> str:
        """Its address to compare by, told apart from that of another host in one dump."""
        return self.key_of(self.function.busid)

    def key_of(self, busid: str) -> str:
        """NCCL writes ``0000:`` and CUDA ``00000000:`` before a bus."""
        domain, _colon, rest = busid.lower().partition(":")
        return f"{self.cpu.host_hash or ''}/{domain.lstrip('0')}:{rest}"

    @property
    def links(self) -> tuple[NvLink, ...]:
        """The NVLinks of its GPU; a GPU split for MPS lists them in every part."""
        return self.function.gpus[0].nvlinks if self.function.gpus else ()


def machine(
    tree: NcclTree, source: str = SOURCE, classes: Mapping[str, str] | None = None
) -> Machine:
    """The picture of a file.

    ``classes`` are PCI classes by address (``0x030200``) for a file that leaves them out; NCCL
    then asks sysfs, and so may the caller.
    """
    places = [_Place(cpu, chain) for cpu, chain in tree.functions()]
    known = {one.function.busid: _class(one.function, classes or {}) for one in places}
    gpus = _ordered([one for one in places if known[one.function.busid].startswith(_DISPLAY)])
    nics = [one for one in places if known[one.function.busid].startswith(_NETWORK)]
    pcie = [[_level(one, other) for other in gpus] for one in gpus]
    picture = Machine(
        source=source,
        gpus=tuple(_gpu(one, i) for i, one in enumerate(gpus)),
        levels=nvlinks.matrix([one.key for one in gpus], pcie, _direct(gpus), _to_switches(gpus)),
        nics=tuple(_nic(one) for one in nics),
        nic_levels=tuple(tuple(_level(nic, gpu) for gpu in gpus) for nic in nics),
        nodes=_nodes(tree),
        nvswitches=len(_switches(gpus)),
        remarks=tuple(_remarks(tree, gpus, known)),
    )
    return remarked(picture, judge_tree=False)


def _class(function: Pci, classes: Mapping[str, str]) -> str:
    """A PCI class as written; a function that holds a GPU or an adapter shows it by that."""
    if function.gpus:
        return "0x030000"
    if function.nics:
        return "0x020000"
    return (function.pci_class or classes.get(function.busid) or "").lower()


def _ordered(gpus: Sequence[_Place]) -> list[_Place]:
    """By CUDA device number where the file has them all, else as the driver numbers: by address."""
    numbers = [one.function.gpus[0].dev if one.function.gpus else None for one in gpus]
    if None in numbers or len(set(numbers)) != len(numbers):
        return sorted(gpus, key=lambda one: one.function.busid.lower())
    ranked = sorted(zip(numbers, range(len(gpus))), key=lambda pair: pair[0] or 0)
    return [gpus[place] for _number, place in ranked]


def _gpu(place: _Place, number: int) -> Gpu:
    return Gpu(
        name=f"GPU{number}",
        pci_address=place.function.busid.lower(),
        pci_path=tuple(function.busid.lower() for function in place.chain),
        numa_nodes=place.nodes,
        cpus=_cpus(place.cpu) or None,
    )


def _nic(place: _Place) -> Nic:
    names = tuple(net.name for nic in place.function.nics for net in nic.nets if net.name)
    busid = place.function.busid.lower()
    return Nic(
        name=names[0] if names else busid,
        pci_address=busid,
        pci_path=tuple(function.busid.lower() for function in place.chain),
        numa_nodes=place.nodes,
        rdma=names,
    )


def _level(one: _Place, other: _Place) -> str | None:
    """PIX, PXB, PHB or SYS; None between hosts, which only NVLink joins."""
    if one.cpu.host_hash != other.cpu.host_hash:
        return None
    if one.cpu is not other.cpu:
        return "SYS"
    shared = shared_steps(one.chain, other.chain)
    if not shared:
        return "PHB"
    # Here a switch is one step: below the shared one, a device next to another is one away.
    return "PIX" if max(len(one.chain), len(other.chain)) - shared <= 1 else "PXB"


def _direct(gpus: Sequence[_Place]) -> dict[str, dict[str, int]]:
    """Links to other GPUs. A link to itself (one shipped file has them) joins nothing."""
    found: dict[str, dict[str, int]] = {}
    for one in gpus:
        counts = found.setdefault(one.key, {})
        for link in one.links:
            target = one.key_of(link.target)
            if not link.to_switch and target != one.key:
                counts[target] = counts.get(target, 0) + (link.count or 0)
    return found


def _to_switches(gpus: Sequence[_Place]) -> dict[str, int]:
    return {one.key: sum(link.count or 0 for link in one.links if link.to_switch) for one in gpus}


def _switches(gpus: Sequence[_Place]) -> set[str]:
    """The NVSwitches that have an address."""
    return {
        one.key_of(link.target)
        for one in gpus
        for link in one.links
        if link.to_switch and not _UNSEEN.fullmatch(link.target.lower())
    }


def _nodes(tree: NcclTree) -> tuple[Node, ...]:
    found: dict[int, str] = {}
    for cpu in tree.cpus:
        if cpu.numaid is not None and cpu.numaid >= 0:
            found.setdefault(cpu.numaid, _cpus(cpu))
    return tuple(Node(number, found[number]) for number in sorted(found))


def _cpus(cpu: Cpu) -> str:
    try:
        return lists.text_of(lists.of_mask(cpu.affinity)) if cpu.affinity else ""
    except ValueError:
        return ""


def _remarks(tree: NcclTree, gpus: Sequence[_Place], known: Mapping[str, str]) -> list[str]:
    found = []
    unknown = [busid for busid, pci_class in known.items() if not pci_class]
    if unknown:
        found.append(
            f"{len(unknown)} PCI functions have no class in the file, so GPUs and NICs cannot be "
            "told apart; NCCL reads the class from sysfs of the host the file is for"
        )
    if gpus and not any(one.function.gpus for one in gpus):
        found.append(
            "the file leaves NVLinks to NCCL, which asks the driver: the levels are those of PCIe"
        )
    if any(one.key_of(link.target) == one.key for one in gpus for link in one.links):
        found.append("the file has NVLinks from a GPU to itself; they join nothing")
    if tree.unread:
        found.append("tags that were not read: " + ", ".join(tree.unread))
    return found
