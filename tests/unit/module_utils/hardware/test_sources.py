# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What follows from the levels of a host."""

from __future__ import annotations

from ansible_collections.steadygpu.host.plugins.module_utils.hardware import links, sources
from ansible_collections.steadygpu.host.plugins.module_utils.hardware.bandwidth_file import Memory
from ansible_collections.steadygpu.host.plugins.module_utils.hardware.model import (
    Device,
    NvLink,
    NvLinkPeer,
)


def remarks(devices: list[Device]) -> list[str]:
    return sources.topology(devices, links.matrix(devices), [], None, Memory()).remarks


def linked(index: int, count: int) -> Device:
    """One of four V100 that are joined through switches by ``count`` links."""
    peers = [NvLinkPeer(link, "switch", None, "up") for link in range(count)]
    path = [f"0000:{index}0:00.0", f"0000:{index}1:00.0"]
    return Device(
        index, name="Tesla V100", pci_path=path, numa_node=0, nvlink=NvLink(count, 2, peers)
    )


def test_a_gpu_that_lost_its_nvlinks_is_a_remark():
    (remark,) = remarks([linked(0, 6), linked(1, 6), linked(2, 6), linked(3, 0)])
    assert remark.startswith("GPU3 has no NVLink where the others have 6")


def test_a_display_card_beside_linked_gpus_has_lost_nothing():
    """As in a DGX Station."""
    card = Device(4, name="Quadro P400", pci_path=["0000:80:00.0", "0000:81:00.0"], numa_node=0)
    assert remarks([*(linked(index, 6) for index in range(4)), card]) == []
