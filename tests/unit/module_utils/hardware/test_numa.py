# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""NUMA nodes from sysfs."""

from __future__ import annotations

from ansible_collections.steadygpu.host.plugins.module_utils.hardware import numa


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
