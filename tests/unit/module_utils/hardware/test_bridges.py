# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Bridges with their Access Control Services, and IOMMU groups, from sysfs."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.steadygpu.host.plugins.module_utils.hardware import bridges
from ansible_collections.steadygpu.host.plugins.module_utils.hardware.host_model import Acs

CHAIN = ["0000:39:01.0", "0000:3a:00.0", "0000:3b:00.0"]
# The registers of the public report of TP-001: SrcValid+ ReqRedir+ CmpltRedir+ UpstreamFwd+.
TP_001_CAPABILITY, TP_001_CONTROL = 0x7F, 0b0011101


def configuration(*capabilities: tuple[int, bytes], size: int = 4096) -> bytes:
    """A configuration space with these extended capabilities, each (id, its registers)."""
    space = bytearray(size)
    offset = 0x100
    for place, (number, registers) in enumerate(capabilities):
        following = offset + 0x40 if place + 1 < len(capabilities) else 0
        struct.pack_into("<I", space, offset, number | 1 << 16 | following << 20)
        space[offset + 4 : offset + 4 + len(registers)] = registers
        offset = following
    return bytes(space)


def acs(capability: int, control: int) -> tuple[int, bytes]:
    return 0x0D, struct.pack("<HH", capability, control)


def find_acs(space: bytes) -> Acs | None:
    return bridges.find_acs(lambda offset, size: space[offset : offset + size])


AER = (0x01, bytes(40))


def test_tp_001_acs_that_redirects_peer_traffic():
    found = find_acs(configuration(AER, acs(TP_001_CAPABILITY, TP_001_CONTROL)))
    assert found == Acs(
        supported=True,
        capability=[
            "source_validation",
            "translation_blocking",
            "request_redirect",
            "completion_redirect",
            "upstream_forwarding",
            "egress_control",
            "direct_translated",
        ],
        control=[
            "source_validation",
            "request_redirect",
            "completion_redirect",
            "upstream_forwarding",
        ],
        redirects=True,
    )


def test_acs_that_is_switched_off():
    found = find_acs(configuration(acs(TP_001_CAPABILITY, 0)))
    assert found is not None
    assert (found.supported, found.control, found.redirects) == (True, [], False)


def test_a_bridge_without_acs():
    assert find_acs(configuration(AER)) == Acs(supported=False)


@pytest.mark.parametrize("size", [0, 64, 256])
def test_what_only_root_may_read_is_unknown_not_off(size):
    assert find_acs(bytes(size)) is None


def test_a_bridge_that_is_switched_off_answers_with_ones():
    assert find_acs(b"\xff" * 4096) is None


def test_a_list_that_bites_its_tail_ends():
    space = bytearray(configuration(AER))
    struct.pack_into("<I", space, 0x100, 0x01 | 1 << 16 | 0x100 << 20)
    assert find_acs(bytes(space)) == Acs(supported=False)


@given(st.binary(min_size=257, max_size=600))
def test_any_configuration_space_is_read_without_an_error(tail):
    find_acs(bytes(256) + tail)


def test_the_bridges_above_a_gpu_with_their_registers(host):
    host.pci(CHAIN)
    for address in CHAIN[:-1]:
        directory = host.function(CHAIN[-1]).partition(address)[0] + address
        host.write(directory + "/vendor", "0x1000\n")
        host.write(directory + "/device", "0xc010\n")
        host.link(f"sys/bus/pci/devices/{address}", "/" + directory)
    switch = Path(host.root, host.function("0000:3a:00.0"), "config")
    switch.write_bytes(configuration(acs(TP_001_CAPABILITY, TP_001_CONTROL)))
    root_port, downstream = bridges.read_bridges([CHAIN, CHAIN], host.root)
    assert (root_port.address, root_port.acs) == ("0000:39:01.0", None)
    assert (downstream.vendor, downstream.device) == ("1000", "c010")
    assert downstream.acs is not None
    assert downstream.acs.redirects


def test_iommu_groups_of_the_functions_on_the_way(host):
    host.pci(CHAIN)
    host.link(host.function(CHAIN[-1]) + "/iommu_group", "/sys/kernel/iommu_groups/42")
    host.write("sys/kernel/iommu_groups/42/type", "DMA\n")
    iommu = bridges.read_iommu([CHAIN], host.root)
    assert (iommu.enabled, iommu.groups) == (True, {"0000:3b:00.0": 42})


def test_a_host_without_iommu(host):
    host.pci(CHAIN)
    iommu = bridges.read_iommu([CHAIN], host.root)
    assert (iommu.enabled, iommu.groups) == (False, {})
