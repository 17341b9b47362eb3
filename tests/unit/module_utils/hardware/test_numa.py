# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""NUMA nodes from sysfs."""

from __future__ import annotations

from ansible_collections.steadygpu.host.plugins.module_utils.hardware import numa
from ansible_collections.steadygpu.host.plugins.module_utils.hardware.host_model import HugePages


def test_nodes_in_numeric_order_with_memory_in_mib(host):
    for node, cpus in ((10, "2-3"), (2, "0-1"), (11, "")):
        host.write(f"sys/devices/system/node/node{node}/cpulist", f"{cpus}\n")
        host.write(
            f"sys/devices/system/node/node{node}/meminfo",
            f"Node {node} MemTotal:        1027072 kB\nNode {node} MemFree:  5 kB\n",
        )
    host.write("sys/devices/system/node/possible", "0-11\n")
    nodes = numa.read_nodes(host.root)
    assert [(one.node, one.cpus, one.memory_mib) for one in nodes] == [
        (2, "0-1", 1003),
        (10, "2-3", 1003),
        (11, "", 1003),
    ]


def test_a_kernel_without_numa(host):
    assert numa.read_nodes(host.root) == []


def test_memory_of_a_gpu_is_no_node_to_run_on(host):
    """GH200: node 1 is the GPU's memory, which has no CPUs."""
    for node, cpus in ((0, "0-71"), (1, "")):
        host.write(f"sys/devices/system/node/node{node}/cpulist", f"{cpus}\n")
    assert [one.kind for one in numa.read_nodes(host.root)] == ["cpu", "memory"]


def test_memory_that_is_not_told_is_unknown(host):
    host.write("sys/devices/system/node/node0/cpulist", "0\n")
    assert numa.read_nodes(host.root)[0].memory_mib is None


def test_huge_pages_of_each_size(host):
    for size, total, free in ((1048576, 4, 1), (2048, 512, 512)):
        directory = f"sys/devices/system/node/node0/hugepages/hugepages-{size}kB"
        host.write(directory + "/nr_hugepages", f"{total}\n")
        host.write(directory + "/free_hugepages", f"{free}\n")
    (node,) = numa.read_nodes(host.root)
    assert node.hugepages == [HugePages(2048, 512, 512), HugePages(1048576, 4, 1)]
