# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The topology matrix against what nvidia-smi printed on real machines.

The expected matrices and NUMA columns are facts re-typed from public reports of
``nvidia-smi topo -m``; the source is named at each. The PCI paths are ours: the
shortest tree that fits the matrix.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.steadygpu.host.plugins.module_utils.hardware import links
from ansible_collections.steadygpu.host.plugins.module_utils.hardware.model import (
    Device,
    NvLink,
    NvLinkPeer,
)


def gpu(
    index: int,
    path: list[str],
    numa_node: int | None = 0,
    peers: tuple[NvLinkPeer, ...] = (),
) -> Device:
    return Device(
        index,
        pci_address=path[-1] if path else None,
        pci_path=path,
        numa_node=numa_node,
        nvlink=NvLink(len(peers), 3, list(peers)) if peers else None,
    )


def root_port(bus: int, slot: int = 1) -> list[str]:
    """A GPU of its own root port on the host bridge of ``bus``."""
    return [f"0000:{bus:02x}:{slot:02x}.0", f"0000:{bus + slot:02x}:00.0"]


def to_gpu(link: int, address: str, state: str = "up") -> NvLinkPeer:
    return NvLinkPeer(link, "gpu", address, state)


def to_switches(count: int) -> tuple[NvLinkPeer, ...]:
    return tuple(NvLinkPeer(link, "switch", "0000:c0:00.0", "up") for link in range(count))


def test_four_a100_pcie_with_one_bridged_pair():
    """github.com/NVIDIA/k8s-device-plugin/issues/436."""
    paths = [root_port(0x10), root_port(0x30), root_port(0x80), root_port(0xB0)]
    bridge = [
        tuple(to_gpu(link, paths[1][-1]) for link in range(12)),
        tuple(to_gpu(link, paths[0][-1]) for link in range(12)),
        (),
        (),
    ]
    devices = [gpu(i, paths[i], numa_node=i // 2, peers=bridge[i]) for i in range(4)]
    assert links.matrix(devices) == [
        ["X", "NV12", "SYS", "SYS"],
        ["NV12", "X", "SYS", "SYS"],
        ["SYS", "SYS", "X", "NODE"],
        ["SYS", "SYS", "NODE", "X"],
    ]


def test_mixed_workstation_with_five_gpus():
    """github.com/noonghunna/club-3090/issues/46."""
    devices = [
        gpu(0, root_port(0x80), numa_node=1),
        gpu(1, root_port(0x00, 1)),
        gpu(2, root_port(0x00, 2)),
        gpu(3, root_port(0x40, 1)),
        gpu(4, root_port(0x40, 2)),
    ]
    assert links.matrix(devices) == [
        ["X", "SYS", "SYS", "SYS", "SYS"],
        ["SYS", "X", "PHB", "NODE", "NODE"],
        ["SYS", "PHB", "X", "NODE", "NODE"],
        ["SYS", "NODE", "NODE", "X", "PHB"],
        ["SYS", "NODE", "NODE", "PHB", "X"],
    ]


def test_hybrid_cube_mesh_counts_the_links_of_each_pair():
    """First four GPUs of an 8xV100-SXM2: OneFlow models, wide_and_deep report."""
    counts = [[0, 1, 2, 1], [1, 0, 1, 2], [2, 1, 0, 2], [1, 2, 2, 0]]
    paths = [root_port(0x10 * (i + 1)) for i in range(4)]
    devices = [
        gpu(
            i,
            paths[i],
            peers=tuple(
                to_gpu(10 * j + n, paths[j][-1]) for j in range(4) for n in range(counts[i][j])
            ),
        )
        for i in range(4)
    ]
    assert links.matrix(devices) == [
        ["X", "NV1", "NV2", "NV1"],
        ["NV1", "X", "NV1", "NV2"],
        ["NV2", "NV1", "X", "NV2"],
        ["NV1", "NV2", "NV2", "X"],
    ]


def test_nvswitch_joins_all_pairs_whatever_their_numa_node():
    """DGX A100: NV12 between all of eight GPUs (github.com/NVIDIA/nccl/issues/1505)."""
    devices = [
        gpu(
            i,
            root_port(0x10 * (i + 1)),
            numa_node=(3, 3, 1, 1, 7, 7, 5, 5)[i],
            peers=to_switches(12),
        )
        for i in range(8)
    ]
    assert {cell for row in links.matrix(devices) for cell in row} == {"X", "NV12"}


def test_a_switch_pair_has_the_links_of_its_weaker_side():
    one = gpu(0, root_port(0x10), peers=to_switches(12))
    other = gpu(1, root_port(0x20), peers=to_switches(9))
    assert links.between(one, other) == "NV9"


def test_links_that_are_down_do_not_count():
    paths = [root_port(0x10), root_port(0x20)]
    one = gpu(0, paths[0], peers=(to_gpu(0, paths[1][-1]), to_gpu(1, paths[1][-1], "down")))
    other = gpu(1, paths[1], peers=(to_gpu(0, paths[0][-1]), to_gpu(1, paths[0][-1])))
    assert links.between(one, other) == "NV1"


def test_virtual_machine_with_one_host_bridge():
    """8xV100 VM: PHB wherever no NVLink joins a pair (public notes)."""
    one, other = gpu(0, ["0000:00:05.0"]), gpu(1, ["0000:00:06.0"], numa_node=1)
    assert links.between(one, other) == "PHB"


def test_one_switch_is_pix_and_a_cascade_is_pxb():
    switch = ["0000:20:00.0", "0000:21:00.0"]
    near = gpu(0, [*switch, "0000:22:00.0", "0000:23:00.0"])
    beside = gpu(1, [*switch, "0000:22:01.0", "0000:24:00.0"])
    cascaded = gpu(2, [*switch, "0000:22:02.0", "0000:25:00.0", "0000:26:00.0", "0000:27:00.0"])
    assert links.between(near, beside) == "PIX"
    assert links.between(near, cascaded) == "PXB"


def test_two_gpus_nobody_could_name_are_not_joined_by_links_without_a_far_end():
    lost = NvLinkPeer(0, "gpu", None, "up")
    assert links.between(gpu(0, [], 0, (lost,)), gpu(1, [], 1, (lost,))) == "SYS"


@st.composite
def machines(draw: st.DrawFn) -> list[Device]:
    """Any GPUs on a few buses, switches and nodes with any links, consistent or not."""
    count = draw(st.integers(1, 6))
    steps = st.sampled_from(["a", "b", "c"])
    paths = [
        [*draw(st.lists(steps, max_size=3)), f"0000:{index + 1:02x}:00.0"] for index in range(count)
    ]
    addresses = [path[-1] for path in paths]
    peer = st.builds(
        NvLinkPeer,
        link=st.integers(0, 17),
        type=st.sampled_from(["gpu", "switch", "cpu", "unknown"]),
        pci_address=st.one_of(st.none(), st.sampled_from(addresses)),
        state=st.sampled_from(["up", "down"]),
    )
    return [
        gpu(
            index,
            path,
            draw(st.one_of(st.none(), st.integers(0, 1))),
            tuple(draw(st.lists(peer, max_size=4))),
        )
        for index, path in enumerate(paths)
    ]


@given(machines())
def test_the_matrix_is_symmetric_with_x_only_on_the_diagonal(devices):
    matrix = links.matrix(devices)
    for row in range(len(devices)):
        for column in range(len(devices)):
            assert matrix[row][column] == matrix[column][row]
            assert (matrix[row][column] == "X") == (row == column)


@given(machines())
def test_every_cell_is_a_word_of_the_legend(devices):
    for cell in (cell for row in links.matrix(devices) for cell in row):
        assert cell in {None, "X", "PIX", "PXB", "PHB", "NODE", "SYS"} or cell[2:].isdigit()


@pytest.mark.parametrize("numa_node", [None, 0])
def test_hosts_that_name_no_numa_node_have_one(numa_node):
    one, other = gpu(0, root_port(0x10), numa_node), gpu(1, root_port(0x20), numa_node)
    assert links.between(one, other) == "NODE"


@pytest.mark.parametrize(
    ("one", "other", "word"),
    [
        (([], None), ([], None), None),
        (([], 0), ([], 0), None),
        ((root_port(0x10), 0), ([], None), None),
        ((root_port(0x10), 0), (root_port(0x20), None), None),
        (([], 0), ([], 1), "SYS"),
    ],
    ids=["hidden", "hidden-one-node", "lost", "half-named", "two-nodes"],
)
def test_what_nothing_tells_is_unknown_and_not_near(one, other, word):
    assert links.between(gpu(0, *one), gpu(1, *other)) == word
