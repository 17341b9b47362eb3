# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How close two GPUs are, in the words of ``nvidia-smi topo -m``. Pure: no I/O.

X self · NV# that many NVLinks · PIX one PCIe switch · PXB several switches, no host
bridge · PHB one host bridge · NODE host bridges of one NUMA node · SYS across nodes.
Source of the words: the legend nvidia-smi prints.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile

from .model import Device, NvLinkPeer

# Below a shared port each device of one switch has its downstream port and itself.
_BELOW_ONE_SWITCH = 2


def matrix(devices: Sequence[Device]) -> list[list[str]]:
    """One row and one column per device, symmetric."""
    return [
        ["X" if row is column else between(row, column) for column in devices] for row in devices
    ]


def between(one: Device, other: Device) -> str:
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


def pcie_level(one: Device, other: Device) -> str:
    """PIX, PXB, PHB, NODE or SYS from the PCI paths and NUMA nodes of two GPUs.

    A GPU whose PCI path is unknown is judged by its NUMA node alone.
    """
    shared = _shared_steps(one.pci_path, other.pci_path)
    if shared:
        below = max(len(one.pci_path), len(other.pci_path)) - shared
        return "PIX" if below <= _BELOW_ONE_SWITCH else "PXB"
    bridge = _host_bridge(one)
    if bridge is not None and bridge == _host_bridge(other):
        return "PHB"
    return "NODE" if one.numa_node == other.numa_node else "SYS"


def _shared_steps(one: Sequence[str], other: Sequence[str]) -> int:
    """How many bridges, counted from the root port, two paths have in common."""
    return len(list(takewhile(lambda pair: pair[0] == pair[1], zip(one, other))))


def _host_bridge(device: Device) -> str | None:
    """Domain and bus of the root port: one host bridge owns one root bus."""
    return device.pci_path[0].rpartition(":")[0] if device.pci_path else None


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
