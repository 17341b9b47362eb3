# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Two pictures of one machine side by side, and a picture that hides what it should show. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from .levels import SELF, nvlinks
from .model import Gpu, Machine

# With two GPUs there is one pair, and one level is all it can have.
_ENOUGH_GPUS = 3


def disagreements(one: Machine, other: Machine) -> list[str]:
    """Where two sources differ on a machine: a sentence for each, GPU by GPU, then pair by pair.

    GPUs are matched by PCI address, else UUID, where both sources have them, else by their
    place. What a source does not say is no disagreement.
    """
    if len(one.gpus) != len(other.gpus):
        return [
            f"{one.source} shows {len(one.gpus)} GPUs, {other.source} {len(other.gpus)}: compare "
            "two pictures of one machine"
        ]
    theirs = _matched(one.gpus, other.gpus)
    if theirs is None:
        return [f"{one.source} and {other.source} name different GPUs by PCI address or UUID"]
    return [*_of_nodes(one, other, theirs), *_of_levels(one, other, theirs)]


def flat(machine: Machine) -> str | None:
    """Why the PCIe tree looks hidden, as in a virtual machine; None where it does not.

    One word for every PCIe path of several GPUs, and no NUMA node that tells them apart. Two
    GPUs under one host bridge are an ordinary desktop and are not flat.
    """
    words = set(_pcie_words(machine))
    nodes = {gpu.numa_nodes for gpu in machine.gpus}
    spread = any(len(numbers) > 1 for numbers in nodes)
    if len(machine.gpus) < _ENOUGH_GPUS or len(words) != 1 or len(nodes) != 1:
        return None
    word = words.pop()
    # One switch, or one host bridge a GPU in one node, is real hardware when the node is known.
    if word != "PHB" and not (spread and word in ("NODE", "SYS")):
        return None
    where = "no GPU is tied to one NUMA node" if spread or nodes == {()} else "one NUMA node"
    return (
        f"every PCIe path is {word} ({where}): the machine looks virtual and hides its switches. "
        "NCCL needs the real layout (NCCL_TOPO_FILE) to choose GPU and NIC pairs well"
    )


def _pcie_words(machine: Machine) -> Iterator[str]:
    for row in (*machine.levels, *machine.nic_levels):
        for word in row:
            if word is not None and word != SELF and not nvlinks(word):
                yield word


def _matched(ours: tuple[Gpu, ...], theirs: tuple[Gpu, ...]) -> list[int] | None:
    """For each of our GPUs the place of the same one over there."""
    for keys in (
        ([gpu.pci_address for gpu in ours], [gpu.pci_address for gpu in theirs]),
        ([gpu.uuid for gpu in ours], [gpu.uuid for gpu in theirs]),
    ):
        here, there = keys
        if None not in here and None not in there:
            return [there.index(key) for key in here] if set(here) == set(there) else None
    return list(range(len(ours)))


def _of_nodes(one: Machine, other: Machine, theirs: list[int]) -> Iterator[str]:
    for i, gpu in enumerate(one.gpus):
        twin = other.gpus[theirs[i]]
        if gpu.numa_nodes and twin.numa_nodes and gpu.numa_nodes != twin.numa_nodes:
            node, twin_node = _numbers(gpu.numa_nodes), _numbers(twin.numa_nodes)
            yield (f"{gpu.name}: NUMA node {node} by {one.source}, {twin_node} by {other.source}")


def _of_levels(one: Machine, other: Machine, theirs: list[int]) -> Iterator[str]:
    for i, row in enumerate(one.levels):
        for j in range(i):
            word, twin = row[j], other.levels[theirs[i]][theirs[j]]
            if word is not None and twin is not None and not _same(word, twin):
                pair = f"{one.gpus[j].name} and {one.gpus[i].name}"
                yield f"{pair}: {word} by {one.source}, {twin} by {other.source}"


def _same(word: str, twin: str) -> bool:
    """Two GPUs of one board share its switch: what is INTERNAL to NVML is PIX on the bus."""
    return word == twin or {word, twin} == {"INTERNAL", "PIX"}


def _numbers(nodes: tuple[int, ...]) -> str:
    return ",".join(str(number) for number in nodes)
