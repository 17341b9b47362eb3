# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The machine's command line: the tree, and what may not differ between freeze and resume."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.steadygpu.host.tests.lab import machine

BOOT = machine.Boot(Path("/i/vmlinuz"), Path("/i/initrd.img"), ("nowatchdog",))


def test_eight_end_points_two_behind_each_of_four_switches() -> None:
    tree = machine.pcie_tree()
    ends = [word for word in tree if word.startswith("pci-testdev")]
    ports = [word for word in tree if word.startswith("xio3130-downstream")]
    assert len(ends) == len(ports) == 8
    for switch in ("00", "01", "10", "11"):
        assert sum(f"bus=up{switch}," in port for port in ports) == 2


def test_each_numa_node_has_its_own_expander_with_room_for_its_buses() -> None:
    expanders = [word for word in machine.pcie_tree() if word.startswith("pxb-pcie")]
    assert ["numa_node=0" in word for word in expanders] == [True, False]
    assert ["bus_nr=32" in word for word in expanders] == [True, False]


def test_chassis_numbers_are_unique() -> None:
    chassis = [
        part
        for word in machine.pcie_tree()
        for part in word.split(",")
        if part.startswith("chassis=")
    ]
    assert len(chassis) == len(set(chassis)) == 12


def test_a_resumed_machine_differs_from_the_frozen_one_only_in_where_it_reads() -> None:
    hardware = machine.hardware("tcg")
    frozen = machine.command(hardware, BOOT, Path("/a/disk.qcow2"), 2201)
    resumed = machine.command(hardware, BOOT, Path("/b/disk.qcow2"), 2202, Path("/f/memory.state"))
    assert resumed[: len(hardware) + 1] == frozen[: len(hardware) + 1]
    # A reboot from within starts the kernel again, so a resumed machine needs it as well.
    assert "-kernel" in resumed
    assert resumed[-2:] == ["-incoming", "exec:cat < /f/memory.state"]


@pytest.mark.parametrize("accelerator", ["tcg", "kvm"])
def test_the_accelerator_is_part_of_the_hardware(accelerator: str) -> None:
    argv = machine.hardware(accelerator)
    assert argv[argv.index("-accel") + 1].split(",")[0] == accelerator


def test_odd_cache_paths_are_quoted_for_qemu_and_for_the_shell() -> None:
    argv = machine.command([], BOOT, Path("/a,b/disk.qcow2"), 2201, Path("/my cache/memory.state"))
    assert any(word.endswith("file=/a,,b/disk.qcow2") for word in argv)
    assert argv[-1] == "exec:cat < '/my cache/memory.state'"


def test_ssh_is_reachable_from_this_machine_only() -> None:
    argv = machine.command([], BOOT, Path("/d"), 2201)
    assert "user,id=user,hostfwd=tcp:127.0.0.1:2201-:22" in argv
