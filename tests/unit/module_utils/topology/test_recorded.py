# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The recorded machines built as devices: our own rule finds the levels nvidia-smi printed.

The PCI paths are ours, the shortest tree that fits: the recorded words tell which GPUs share a
host bridge, the NUMA column where each one is. NVLinks are direct, or through NVSwitch where
every pair has the same number.
"""

from __future__ import annotations

from dataclasses import asdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.steadygpu.host.plugins.module_utils.hardware import links
from ansible_collections.steadygpu.host.plugins.module_utils.hardware.model import (
    Device,
    NvLink,
    NvLinkPeer,
)
from ansible_collections.steadygpu.host.plugins.module_utils.topology import (
    compare,
    facts,
    lists,
    smi_matrix,
)
from ansible_collections.steadygpu.host.plugins.module_utils.topology.levels import nvlinks
from ansible_collections.steadygpu.host.tests.unit.module_utils.topology.recorded import (
    IDS,
    MACHINES,
    Recorded,
    by_name,
    table,
)

# nvidia-smi printed SYS for GPUs of one NUMA node; the rule says NODE. See the test below.
_ODD = by_name("all SYS").name
_FIT = [machine for machine in MACHINES if machine.name != _ODD]


def devices(machine: Recorded) -> list[Device]:
    """One device a GPU, with the paths and peers that the recorded words ask for."""
    return [
        Device(
            index=i,
            name=machine.name,
            pci_address=path(machine, i)[-1],
            pci_path=path(machine, i),
            numa_node=node(machine, i),
            cpus=machine.cpus[i],
            nvlink=peers(machine, i),
        )
        for i in range(machine.size)
    ]


def path(machine: Recorded, i: int) -> list[str]:
    """Root port and GPU; GPUs that are PHB to each other, by others too, share a root bus."""
    group = {i}
    while True:
        more = {j for one in group for j, word in enumerate(machine.matrix[one]) if word == "PHB"}
        if more <= group:
            break
        group |= more
    return [f"0000:{16 * min(group) + 1:02x}:{i:02x}.0", f"0000:{16 * i + 2:02x}:00.0"]


def node(machine: Recorded, i: int) -> int | None:
    numbers = lists.numbers(machine.numa[i] or "") or ()
    return numbers[0] if len(numbers) == 1 else None


def peers(machine: Recorded, i: int) -> NvLink | None:
    counts = [nvlinks(word) for word in machine.matrix[i]]
    others = counts[:i] + counts[i + 1 :]
    if not any(others):
        return None
    if machine.size > 2 and len(set(others)) == 1:
        found = [NvLinkPeer(n, "switch", None, "up") for n in range(others[0])]
    else:
        found = [
            NvLinkPeer(n, "gpu", path(machine, j)[-1], "up")
            for j, count in enumerate(counts)
            for n in range(count)
        ]
    return NvLink(len(found), 3, found)


@pytest.mark.parametrize("machine", _FIT, ids=[one.name for one in _FIT])
def test_our_rule_gives_the_recorded_levels(machine: Recorded) -> None:
    assert links.matrix(devices(machine)) == machine.matrix


@pytest.mark.parametrize("machine", _FIT, ids=[one.name for one in _FIT])
def test_facts_and_ticket_agree(machine: Recorded) -> None:
    found = devices(machine)
    gpu = {
        "devices": [asdict(one) for one in found],
        "links": links.matrix(found),
        "numa_nodes": [],
    }
    ours = facts.machine(gpu)
    ticket = smi_matrix.parse("\n".join(table(machine)))
    assert [list(row) for row in ours.levels] == machine.matrix
    assert compare.disagreements(ours, ticket) == []


def test_eight_4090_all_sys_disagree_within_each_socket() -> None:
    """The driver says SYS for all pairs of this server, the PCI tree NODE for those of a socket."""
    machine = by_name("all SYS")
    found = devices(machine)
    gpu = {"devices": [asdict(one) for one in found], "links": links.matrix(found)}
    told = compare.disagreements(
        facts.machine(gpu, "sysfs"), smi_matrix.parse("\n".join(table(machine)))
    )
    assert len(told) == 12
    assert told[0] == "GPU0 and GPU1: NODE by sysfs, SYS by nvidia-smi topo -m"
    assert not any("GPU3 and GPU4" in text for text in told)


@given(machine=st.sampled_from(_FIT), data=st.data())
def test_a_link_that_is_down_on_one_side_never_raises_a_level(
    machine: Recorded, data: st.DataObject
) -> None:
    found = devices(machine)
    linked = [one for one in found if one.nvlink]
    if not linked:
        return
    hurt = data.draw(st.sampled_from(linked))
    before = links.matrix(found)
    hurt.nvlink.peers.pop()  # type: ignore[union-attr]
    after = links.matrix(found)
    for i in range(machine.size):
        for j in range(machine.size):
            assert nvlinks(after[i][j]) <= nvlinks(before[i][j])
            assert after[i][j] == after[j][i]


def test_all_eighteen_machines_are_here() -> None:
    assert len(MACHINES) == len(set(IDS)) == 18
