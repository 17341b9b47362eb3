# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How close two GPUs are, NVLink before PCIe, in the words of ``topology.levels``. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Callable, Optional

from ..topology import levels
from .model import Device, NvLinkPeer

Words = list[list[Optional[str]]]


def matrix(devices: Sequence[Device]) -> Words:
    """One row and one column per device, symmetric; None where nothing tells."""
    return _square(devices, between)


def pcie_matrix(devices: Sequence[Device]) -> Words:
    """As :func:`matrix`, without the NVLinks: what sysfs alone says."""
    return _square(devices, pcie_level)


def between(one: Device, other: Device) -> str | None:
    """The closest connection of two different GPUs: NVLink before any PCIe path."""
    count = nvlink_count(one, other)
    return f"NV{count}" if count else pcie_level(one, other)


def nvlink_count(one: Device, other: Device) -> int:
    """Active NVLinks that join two GPUs, directly or through NVSwitch.

    A link is counted only when both ends report it. Through switches every link of a GPU
    reaches every other GPU, so the smaller number of switch links bounds the pair.
    """
    direct = min(_links_to_gpu(one, other.pci_address), _links_to_gpu(other, one.pci_address))
    return direct or min(_links_to_switches(one), _links_to_switches(other))


def pcie_level(one: Device, other: Device) -> str | None:
    """PIX, PXB, PHB, NODE, SYS or None from the PCI paths and NUMA nodes of two GPUs."""
    return levels.pcie_level(one.pci_path, other.pci_path, one.numa_node, other.numa_node)


def _links_to_gpu(device: Device, address: str | None) -> int:
    return sum(
        1
        for peer in _links_up(device)
        if peer.type == "gpu" and peer.pci_address is not None and peer.pci_address == address
    )


def _links_to_switches(device: Device) -> int:
    return sum(1 for peer in _links_up(device) if peer.type == "switch")


def _links_up(device: Device) -> list[NvLinkPeer]:
    return [peer for peer in device.nvlink.peers if peer.state == "up"] if device.nvlink else []


def _square(devices: Sequence[Device], word: Callable[[Device, Device], str | None]) -> Words:
    return [
        [levels.SELF if row is column else word(row, column) for column in devices]
        for row in devices
    ]
