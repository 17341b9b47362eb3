# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What real machines showed that a simple reader gets wrong; one test each.

Most are recorded machines. The others are described in public reports of such hosts and are
built here from one that was recorded.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.topology import (
    affinity,
    facts,
    remarks,
    smi_matrix,
)
from ansible_collections.steadygpu.host.plugins.module_utils.topology.model import Machine
from ansible_collections.steadygpu.host.tests.unit.module_utils.topology.recorded import (
    STYLES,
    Recorded,
    by_name,
    table,
)


def picture(machine: Recorded, style: str = "tabs", columns: int = 3) -> Machine:
    return smi_matrix.parse(STYLES[style](table(machine, columns)))


def nodes(machine: Machine) -> list[tuple[int, ...]]:
    return [gpu.numa_nodes for gpu in machine.gpus]


def test_the_numa_column_of_a_vm_is_a_range() -> None:
    found = picture(by_name("8xV100 VM"))
    assert nodes(found) == [(0, 1)] * 8
    assert [(node.number, node.cpus) for node in found.nodes] == [(0, ""), (1, "")]


@pytest.mark.parametrize(
    ("name", "on"),
    [
        ("8xB200, 4 NUMA", [(0,), (0,), (1,), (1,), (2,), (2,), (), ()]),
        ("8xB200, 6 NUMA", [(0,), (0,), (2,), (2,), (3,), (3,), (5,), (5,)]),
        ("DGX A100", [(3,), (3,), (1,), (1,), (7,), (7,), (5,), (5,)]),
    ],
    ids=["4-nodes", "6-nodes", "8-nodes"],
)
def test_gpus_are_not_on_nodes_0_and_1_only(name: str, on: list[tuple[int, ...]]) -> None:
    found = picture(by_name(name))
    assert nodes(found) == on
    assert [node.number for node in found.nodes] == sorted({number for one in on for number in one})


def test_gpus_are_spread_unevenly_over_nodes() -> None:
    numa: list[str | None] = ["0", "0", "0", "1", "2", "2", "3", "3"]
    found = picture(replace(by_name("8xB200, 6 NUMA"), numa=numa))
    on = nodes(found)
    assert [on.count((number,)) for number in range(4)] == [3, 1, 2, 2]


def test_a_cpu_list_is_strided() -> None:
    found = picture(by_name("strided"))
    assert [gpu.cpus for gpu in found.gpus] == [
        *("6,14,22,30", "4,12,20,28", "7,15,23,31", "5,13,21,29")
    ]
    assert [(node.number, node.cpus) for node in found.nodes] == [
        *((1, "4,12,20,28"), (3, "6,14,22,30"), (5, "5,13,21,29"), (7, "7,15,23,31"))
    ]


def test_an_old_driver_prints_no_numa_column() -> None:
    found = picture(by_name("DGX-2"), columns=1)
    assert nodes(found) == [()] * 16
    assert found.nodes == ()
    assert found.gpus[0].cpus == "0-23,48-71"


def test_a_table_is_indented() -> None:
    found = picture(by_name("2 GPU desktop"), style="indented")
    assert found.levels == (("X", "NODE"), ("NODE", "X"))


def bridged(machine: Recorded, pairs: list[tuple[int, int]], word: str) -> Recorded:
    """The machine with NVLink between these pairs, and SYS or NODE by NUMA between all others."""
    matrix = [
        [
            "X" if i == j else "NODE" if machine.numa[i] == machine.numa[j] else "SYS"
            for j in range(machine.size)
        ]
        for i in range(machine.size)
    ]
    for one, other in pairs:
        matrix[one][other] = matrix[other][one] = word
    return replace(machine, matrix=matrix, nics={})


def nearest(machine: Machine) -> list[int]:
    """The nearest other GPU of each one."""
    rows = affinity.derived(machine.levels)
    return [
        max((j for j in range(len(row)) if j != i), key=lambda j, row=row: row[j] or 0)
        for i, row in enumerate(rows)
    ]


def test_bridges_do_not_join_neighbours() -> None:
    """8 A100 PCIe, bridges on 0-2, 1-3, 4-5 and 6-7: a pair is not two numbers in a row."""
    pairs = [(0, 2), (1, 3), (4, 5), (6, 7)]
    found = picture(bridged(by_name("all SYS"), pairs, "NV12"))
    assert nearest(found) == [2, 3, 0, 1, 5, 4, 7, 6]
    assert remarks.weakened(found) == {}


def test_the_members_of_a_pair_are_on_different_sockets() -> None:
    """NVLink is nearer than a shared NUMA node."""
    pairs = [(i, i + 4) for i in range(4)]
    found = picture(bridged(by_name("all SYS"), pairs, "NV4"))
    assert nearest(found) == [4, 5, 6, 7, 0, 1, 2, 3]
    assert all(found.gpus[i].numa_nodes != found.gpus[j].numa_nodes for i, j in pairs)


@pytest.mark.parametrize("gpus", [1, 4], ids=["gh200", "four-gh200"])
def test_memory_of_a_gpu_is_no_node_to_run_on(gpus: int) -> None:
    """Each GH200 has one node with CPUs and eight of its GPU's memory: 9 nodes, or 36."""
    numa = [
        {"node": i, "cpus": f"{72 * i}-{72 * i + 71}", "memory_mib": 480000, "kind": "cpu"}
        for i in range(gpus)
    ]
    numa += [
        {"node": gpus + i, "cpus": "", "memory_mib": 0, "kind": "memory"} for i in range(8 * gpus)
    ]
    found = facts.machine(
        {
            "devices": [{"index": i, "numa_node": i} for i in range(gpus)],
            "links": [["X" if i == j else "NV6" for j in range(gpus)] for i in range(gpus)],
            "numa_nodes": numa,
        }
    )
    assert len(numa) == 9 * gpus
    assert [node.number for node in found.nodes] == list(range(gpus))
    assert nodes(found) == [(i,) for i in range(gpus)]


def test_a_b200_that_lost_all_its_nvlinks_is_the_farthest_from_all() -> None:
    whole = by_name("8xB200, 6 NUMA")
    matrix = [
        ["SYS" if 2 in (i, j) and i != j else word for j, word in enumerate(row)]
        for i, row in enumerate(whole.matrix)
    ]
    found = picture(replace(whole, matrix=matrix))
    rows = affinity.derived(found.levels)
    assert all(
        min(range(8), key=lambda j, row=row: row[j] or 0) == 2 for row in rows[:2] + rows[3:]
    )
    assert list(remarks.weakened(found)) == [2]
    assert "GPU2 has no NVLink where the others have 18" in found.remarks[0]
