# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Two sources beside each other, hidden trees and lost NVLinks."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.topology import remarks, smi_matrix
from ansible_collections.steadygpu.host.plugins.module_utils.topology.compare import (
    disagreements,
    flat,
)
from ansible_collections.steadygpu.host.plugins.module_utils.topology.model import Gpu, Machine
from ansible_collections.steadygpu.host.tests.unit.module_utils.topology.recorded import (
    IDS,
    MACHINES,
    Recorded,
    by_name,
    table,
)

# Two of the 18 hide their tree; both are virtual machines, of which one is called so.
_FLAT = {by_name("8xV100 VM").name}


def picture(machine: Recorded) -> Machine:
    return smi_matrix.parse("\n".join(table(machine)))


def test_tp_004_a_vm_that_shows_phb_everywhere_is_told() -> None:
    """TP-004 (NVIDIA/nccl-tests#86, NVIDIA/nccl#1843): the hypervisor hides switches and NUMA."""
    found = smi_matrix.parse(
        "\tGPU0\tGPU1\tGPU2\tGPU3\tNIC0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n"
        "GPU0\t X \tPHB\tPHB\tPHB\tPHB\t0-47\t0\tN/A\nGPU1\tPHB\t X \tPHB\tPHB\tPHB\t0-47\t0\tN/A\n"
        "GPU2\tPHB\tPHB\t X \tPHB\tPHB\t0-47\t0\tN/A\nGPU3\tPHB\tPHB\tPHB\t X \tPHB\t0-47\t0\tN/A\n"
        "NIC0\tPHB\tPHB\tPHB\tPHB\t X \n"
    )
    assert flat(found) == (
        "every PCIe path is PHB (one NUMA node): the machine looks virtual and hides its switches. "
        "NCCL needs the real layout (NCCL_TOPO_FILE) to choose GPU and NIC pairs well"
    )
    assert found.remarks == (flat(found),)


@pytest.mark.parametrize("machine", MACHINES, ids=IDS)
def test_only_a_hidden_tree_is_called_flat(machine: Recorded) -> None:
    assert (flat(picture(machine)) is not None) == (machine.name in _FLAT)


@pytest.mark.parametrize("machine", MACHINES, ids=IDS)
def test_no_recorded_machine_has_lost_links(machine: Recorded) -> None:
    """Bridged pairs, meshes and mixed workstations are whole as they are."""
    assert remarks.weakened(picture(machine)) == {}


def b200(links_of_gpu2: str) -> Recorded:
    """8 B200 of which GPU2 shows this word to all others, as in a public report."""
    machine = by_name("8xB200, 4 NUMA nodes")
    matrix = [
        [links_of_gpu2 if 2 in (i, j) and i != j else word for j, word in enumerate(row)]
        for i, row in enumerate(machine.matrix)
    ]
    return replace(machine, matrix=matrix)


@pytest.mark.parametrize(
    ("word", "has"),
    [("SYS", "has no NVLink"), ("NV4", "has at most 4 NVLinks to another GPU")],
)
def test_a_b200_that_lost_its_nvlinks_is_kept_out_of_sets(word: str, has: str) -> None:
    found = picture(b200(word))
    assert remarks.weakened(found) == {
        2: f"GPU2 {has} where the others have 18: keep it out of sets of several GPUs, and look at "
        "nvidia-smi nvlink -s and the kernel log"
    }
    assert found.remarks == tuple(remarks.weakened(found).values())


def test_a_display_card_beside_linked_gpus_has_lost_nothing() -> None:
    found = picture(b200("SYS"))
    models = ["T1000" if i == 2 else "B200" for i in range(8)]
    gpus = tuple(replace(gpu, model=model) for gpu, model in zip(found.gpus, models))
    assert remarks.weakened(replace(found, gpus=gpus)) == {}


def test_a_source_without_levels_says_nothing_of_lost_links() -> None:
    machine = picture(by_name("8xB200, 4 NUMA nodes"))
    row = ("X" if j == 2 else None for j in range(8))
    levels = tuple(tuple(row) if i == 2 else one for i, one in enumerate(machine.levels))
    assert remarks.weakened(replace(machine, levels=levels)) == {}


def two(
    source: str, word: str | None, first: str | None = None, second: str | None = None
) -> Machine:
    return Machine(
        source,
        (Gpu("GPU0", pci_address=first), Gpu("GPU1", pci_address=second)),
        (("X", word), (word, "X")),
    )


def test_sources_are_compared_gpu_by_gpu_and_not_place_by_place() -> None:
    """NCCL's file may count GPUs in another order: their addresses tell which is which."""
    one = Machine(
        "sysfs",
        tuple(Gpu(f"GPU{i}", pci_address=f"0000:0{i}:00.0") for i in range(3)),
        (("X", "PIX", "SYS"), ("PIX", "X", "SYS"), ("SYS", "SYS", "X")),
    )
    other = Machine(
        "file",
        tuple(Gpu(f"GPU{i}", pci_address=f"0000:0{2 - i}:00.0") for i in range(3)),
        (("X", "SYS", "SYS"), ("SYS", "X", "PHB"), ("SYS", "PHB", "X")),
    )
    assert disagreements(one, other) == ["GPU0 and GPU1: PIX by sysfs, PHB by file"]


def test_what_a_source_does_not_say_is_no_disagreement() -> None:
    assert disagreements(two("a", None), two("b", "PHB")) == []
    assert disagreements(two("a", "PHB"), two("b", "PHB")) == []


def test_one_board_is_one_switch_to_the_bus() -> None:
    assert disagreements(two("sysfs", "PIX"), two("NVML", "INTERNAL")) == []
    assert disagreements(two("sysfs", "PXB"), two("NVML", "INTERNAL")) == [
        "GPU0 and GPU1: PXB by sysfs, INTERNAL by NVML"
    ]


def test_other_gpus_are_said_before_any_level() -> None:
    assert disagreements(two("a", "PHB"), Machine("b", (), ())) == [
        "a shows 2 GPUs, b 0: compare two pictures of one machine"
    ]
    one, other = two("a", "PHB", "0000:01:00.0", "0000:02:00.0"), two("b", "PHB", "1", "2")
    assert disagreements(one, other) == ["a and b name different GPUs by PCI address or UUID"]


def test_a_numa_node_that_differs_is_told() -> None:
    gpus = (Gpu("GPU0", numa_nodes=(0,)), Gpu("GPU1", numa_nodes=(1,)))
    one = replace(two("sysfs", "SYS"), gpus=gpus)
    other = replace(two("hwloc", "SYS"), gpus=(gpus[0], Gpu("GPU1", numa_nodes=(0, 1))))
    assert disagreements(one, other) == ["GPU1: NUMA node 1 by sysfs, 0,1 by hwloc"]
