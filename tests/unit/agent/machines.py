# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Machines to draw: as facts know them, with PCI paths, and as a bare matrix does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ansible_collections.steadygpu.host.plugins.module_utils.topology.levels import pcie_level
from ansible_collections.steadygpu.host.plugins.module_utils.topology.model import (
    Gpu,
    Machine,
    Nic,
    Node,
)
from ansible_collections.steadygpu.host.plugins.module_utils.topology.remarks import remarked


def from_paths(
    gpus: Sequence[Gpu],
    nics: Sequence[Nic] = (),
    nodes: Sequence[Node] = (),
    nvlinks: dict[tuple[int, int], int] | None = None,
    nvswitches: int = 0,
) -> Machine:
    """A machine as the facts of a host give it: levels follow from paths, NVLinks come before."""
    links = nvlinks or {}
    levels = [
        [
            "X"
            if i == j
            else f"NV{links[min(i, j), max(i, j)]}"
            if (min(i, j), max(i, j)) in links
            else _level(one, other)
            for j, other in enumerate(gpus)
        ]
        for i, one in enumerate(gpus)
    ]
    return remarked(
        Machine(
            source="this host",
            gpus=tuple(gpus),
            levels=tuple(map(tuple, levels)),
            nics=tuple(nics),
            nic_levels=tuple(tuple(_level(nic, gpu) for gpu in gpus) for nic in nics),
            nodes=tuple(nodes),
            nvswitches=nvswitches,
        )
    )


def _level(one: Gpu | Nic, other: Gpu | Nic) -> str:
    return pcie_level(
        one.pci_path,
        other.pci_path,
        one.numa_nodes[0] if one.numa_nodes else None,
        other.numa_nodes[0] if other.numa_nodes else None,
    )


def all_pairs(gpus: Sequence[int], count: int) -> dict[tuple[int, int], int]:
    """``count`` NVLinks between each two of ``gpus``."""
    return {(i, j): count for i in gpus for j in gpus if i < j}


def dgx_a100(**changes: object) -> Machine:
    """Two switch levels above each pair of GPUs, a network adapter beside each GPU."""
    gpus, nics = [], []
    for index in range(8):
        node = (3, 1, 7, 5)[index // 2]
        root = f"0000:{0x20 * (index // 2):02x}"
        above = (f"{root}:01.1", f"{root}:02.0", f"{root}:03.{index % 2}", f"{root}:04.{index % 2}")
        gpus.append(
            Gpu(
                f"GPU{index}",
                model="NVIDIA A100-SXM4-40GB",
                pci_address=f"0000:{0x20 * (index // 2) + 7 + index % 2:02x}:00.0",
                pci_path=(*above, f"{root}:05.{index % 2}", f"{root}:07.{index % 2}"),
                numa_nodes=(node,),
                cpus=f"{16 * node}-{16 * node + 15}",
                memory_mib=40960,
            )
        )
        nics.append(
            Nic(
                f"ibp{index}s0",
                pci_path=(*above, f"{root}:06.{index % 2}", f"{root}:08.{index % 2}"),
                numa_nodes=(node,),
                rdma=(f"mlx5_{index}",),
            )
        )
    nodes = [Node(number, f"{16 * number}-{16 * number + 15}", 128 * 1024) for number in range(8)]
    machine = from_paths(gpus, nics, nodes, all_pairs(range(8), 12), nvswitches=6)
    return replace(machine, **changes)  # type: ignore[arg-type]


def with_mig() -> Machine:
    """A DGX A100 with two GPUs cut into slices."""
    machine = dgx_a100()
    cut = {0: ("3g.20gb", "2g.10gb", "1c.2g.10gb"), 5: ("1g.5gb",) * 7}
    gpus = tuple(replace(gpu, mig=cut.get(i, ())) for i, gpu in enumerate(machine.gpus))
    return replace(machine, gpus=gpus)


def b200_with_a_lost_gpu() -> Machine:
    """Eight B200, one has no NVLink and one has two thirds of them."""
    gpus = [
        Gpu(
            f"GPU{i}",
            model="NVIDIA B200",
            pci_address=f"0000:{0x11 * (i + 1):02x}:00.0",
            pci_path=(f"0000:{0x11 * (i + 1) - 1:02x}:01.0", f"0000:{0x11 * (i + 1):02x}:00.0"),
            numa_nodes=(i // 4,),
            cpus=("0-55,112-167", "56-111,168-223")[i // 4],
            memory_mib=183359,
        )
        for i in range(8)
    ]
    links = all_pairs([i for i in range(8) if i != 5], 18)
    links.update({pair: 12 for pair in links if 2 in pair})
    return from_paths(gpus, nvlinks=links)


def single_t4() -> Machine:
    """The smallest machine."""
    gpu = Gpu(
        "GPU0",
        model="Tesla T4",
        pci_address="0000:00:1e.0",
        pci_path=("0000:00:1e.0",),
        numa_nodes=(0,),
        cpus="0-7",
        memory_mib=15360,
    )
    return from_paths([gpu], nodes=[Node(0, "0-7", 31 * 1024)])


def grace_hopper() -> Machine:
    """One GPU beside its CPU."""
    gpu = Gpu(
        "GPU0",
        model="NVIDIA GH200 480GB",
        pci_address="0009:01:00.0",
        pci_path=("0009:00:00.0", "0009:01:00.0"),
        numa_nodes=(0,),
        cpus="0-71",
        memory_mib=97871,
        mig=("1g.12gb", "2g.24gb", "4g.48gb"),
    )
    nic = Nic("enP5p3s0", pci_path=("0005:00:00.0", "0005:03:00.0"), numa_nodes=(0,))
    return from_paths([gpu], [nic], [Node(0, "0-71", 491520)])


def flat_vm() -> Machine:
    """Eight GPUs and their network adapters on the root bus of a virtual machine."""
    gpus = [
        Gpu(
            f"GPU{i}",
            model="NVIDIA L40S",
            pci_address=f"0000:00:{i + 5:02x}.0",
            pci_path=(f"0000:00:{i + 5:02x}.0",),
            memory_mib=46068,
        )
        for i in range(8)
    ]
    nics = [Nic(f"eth{i}", pci_path=(f"0000:00:{i + 16:02x}.0",)) for i in range(2)]
    return from_paths(gpus, nics)


def workstation() -> Machine:
    """Two bridged cards below one switch, a third beside it, a network card of two functions."""
    switch = ("0000:00:01.0", "0000:01:00.0")
    gpus = [
        Gpu(
            f"GPU{i}",
            model="NVIDIA GeForce RTX 3090",
            pci_address=path[-1],
            pci_path=path,
            numa_nodes=(0,),
            cpus="0-31",
            memory_mib=24576,
        )
        for i, path in enumerate(
            (
                (*switch, "0000:02:00.0", "0000:03:00.0"),
                (*switch, "0000:02:01.0", "0000:04:00.0"),
                ("0000:40:01.0", "0000:41:00.0"),
            )
        )
    ]
    nics = [
        Nic(f"eno1np{i}", pci_path=("0000:40:03.0", f"0000:42:00.{i}"), numa_nodes=(0,))
        for i in (0, 1)
    ]
    return from_paths(gpus, nics, [Node(0, "0-31", 262144)], {(0, 1): 4})


EVERY = {
    "dgx-a100": dgx_a100,
    "mig": with_mig,
    "b200-lost": b200_with_a_lost_gpu,
    "t4": single_t4,
    "gh200": grace_hopper,
    "flat-vm": flat_vm,
    "workstation": workstation,
}
