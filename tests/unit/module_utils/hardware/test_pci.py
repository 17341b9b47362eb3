# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The PCI bus as sysfs shows it."""

from __future__ import annotations

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.hardware import pci
from ansible_collections.steadygpu.host.plugins.module_utils.hardware.host_model import PcieLink

CHAIN = ["0000:20:00.0", "0000:21:00.0", "0000:22:00.0", "0000:23:00.0"]


def test_a_gpu_behind_a_switch_is_found_with_its_chain_and_numa_node(host):
    host.pci(CHAIN, numa_node=1, cpus="2-3", kernel_driver="nvidia")
    (gpu,) = pci.read_display_devices(host.root)
    assert gpu.address == "0000:23:00.0"
    assert gpu.path == CHAIN
    assert (gpu.vendor, gpu.device, gpu.pci_class) == ("10de", "20b0", "030200")
    assert (gpu.numa_node, gpu.cpus, gpu.driver) == (1, "2-3", "nvidia")


def test_only_nvidia_display_functions_count(host):
    host.pci(["0000:00:02.0"], vendor="8086", pci_class="030000")
    host.pci(["0000:00:01.0", "0000:01:00.1"], pci_class="040300")  # the GPU's own sound chip
    host.pci(["0000:00:03.0", "0000:05:00.0"], pci_class="068000")  # an NVSwitch
    assert pci.read_display_devices(host.root) == []


def test_no_numa_information_is_none_not_minus_one(host):
    host.pci(["0000:00:01.0", "0000:01:00.0"], numa_node=-1)
    assert pci.read_display_devices(host.root)[0].numa_node is None


def test_a_device_without_kernel_driver(host):
    host.pci(CHAIN)
    assert pci.read_display_devices(host.root)[0].driver is None


def test_a_machine_without_pci_has_no_devices(host):
    assert pci.read_display_devices(host.root) == []
    assert pci.read_path("0000:01:00.0", host.root) == []


@pytest.mark.parametrize(
    ("written", "wanted"),
    [
        ("00000000:23:00.0", "0000:23:00.0"),
        ("0000:23:00.0", "0000:23:00.0"),
        ("00010000:E1:00.0", "10000:e1:00.0"),
    ],
)
def test_nvml_and_sysfs_addresses_become_one(written, wanted):
    assert pci.normalise(written) == wanted


def write_link(host, address, speed, width, most, widest):
    for name, text in (
        ("current_link_speed", speed),
        ("current_link_width", width),
        ("max_link_speed", most),
        ("max_link_width", widest),
    ):
        host.write(f"{host.function(address)}/{name}", f"{text}\n")


def test_a_link_is_bounded_by_its_slower_end(host):
    port, gpu = "0000:00:01.0", "0000:01:00.0"
    host.pci([port])
    host.pci([port, gpu])
    write_link(host, gpu, "2.5 GT/s PCIe", 8, "16.0 GT/s PCIe", 16)
    write_link(host, port, "2.5 GT/s PCIe", 8, "8.0 GT/s PCIe", 8)
    assert pci.read_link([port, gpu], host.root) == PcieLink(1, 3, 8, 8)


@pytest.mark.parametrize(("speed", "width"), [("Unknown", 0), ("Unknown speed", 255)])
def test_a_function_without_a_link_has_no_link_of_zero(host, speed, width):
    host.pci(["0000:00:05.0"])
    write_link(host, "0000:00:05.0", speed, width, speed, width)
    assert pci.read_link(["0000:00:05.0"], host.root) is None
    assert pci.read_link([], host.root) is None
