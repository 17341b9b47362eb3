# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Device nodes. Symlinks to /dev/null stand for nodes: making real ones needs root."""

from __future__ import annotations

import os
from pathlib import Path

from ansible_collections.steadygpu.host.plugins.module_utils.hardware import nodes

DEVICES = "Character devices:\n  1 mem\n195 nvidia\n511 nvidia-uvm\n\nBlock devices:\n511 other\n"


def _character_device(host, path: str) -> None:
    target = Path(host.root, path)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.symlink_to("/dev/null")


def test_missing_nodes_are_told_with_the_number_they_should_have(host):
    host.write("proc/devices", DEVICES)
    found = {node.path: node for node in nodes.read_nodes([0], host.root)}
    assert (found["/dev/nvidia0"].major, found["/dev/nvidia0"].minor) == (195, 0)
    assert (found["/dev/nvidiactl"].major, found["/dev/nvidiactl"].minor) == (195, 255)
    assert (found["/dev/nvidia-uvm"].major, found["/dev/nvidia-uvm"].minor) == (511, 0)
    assert not any(node.exists for node in found.values())


def test_existing_nodes_show_their_own_number(host):
    _character_device(host, "dev/nvidia0")
    _character_device(host, "dev/nvidia-caps/nvidia-cap1")
    null = os.stat("/dev/null").st_rdev
    found = {node.path: node for node in nodes.read_nodes([0], host.root)}
    assert found["/dev/nvidia0"].exists
    assert found["/dev/nvidia0"].major == os.major(null)
    assert found["/dev/nvidia-caps/nvidia-cap1"].exists


def test_a_plain_file_in_the_place_of_a_node_does_not_count(host):
    host.write("dev/nvidia0", "")
    found = {node.path: node for node in nodes.read_nodes([0], host.root)}
    assert not found["/dev/nvidia0"].exists


def test_without_devices_only_what_exists_is_listed(host):
    assert nodes.read_nodes([], host.root) == []
    _character_device(host, "dev/nvidiactl")
    assert [node.path for node in nodes.read_nodes([], host.root)] == ["/dev/nvidiactl"]


def test_majors_of_block_devices_are_not_taken():
    assert nodes.parse_majors(DEVICES) == {"mem": 1, "nvidia": 195, "nvidia-uvm": 511}
