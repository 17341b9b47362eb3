# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Devices from what NVML, /proc and sysfs say of them. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from .host_model import PciDevice, PcieLink
from .model import (
    Bar1,
    Clocks,
    Device,
    Ecc,
    Fabric,
    Memory,
    Mig,
    MigDevice,
    NvLink,
    NvLinkPeer,
    Power,
    RemappedRows,
)
from .procfs import ProcGpu

# Fields of a report that are one flat record each.
_RECORDS = {
    "memory_mib": Memory,
    "bar1_mib": Bar1,
    "ecc": Ecc,
    "remapped_rows": RemappedRows,
    "power": Power,
    "clocks": Clocks,
    "pcie": PcieLink,
    "fabric": Fabric,
}
_VALUES = (
    "index",
    "uuid",
    "minor",
    "name",
    "architecture",
    "pci_address",
    "memory_node",
    "compute_mode",
    "persistence",
    "display",
    "gsp",
    "error",
)


def from_procfs(gpus: Sequence[ProcGpu]) -> list[Device]:
    """Devices as far as /proc/driver/nvidia knows them, numbered as NVML would.

    NVML numbers GPUs by PCI address (nvml.h, nvmlDeviceGetHandleByIndex).
    """
    ordered = sorted(gpus, key=lambda gpu: gpu.pci_address)
    return [
        Device(index, gpu.uuid, gpu.minor, gpu.name, pci_address=gpu.pci_address)
        for index, gpu in enumerate(ordered)
    ]


def from_nvml(reports: Sequence[dict[str, Any]], gpus: Sequence[ProcGpu]) -> list[Device]:
    """Devices of an NVML report; /proc names a lost GPU that NVML cannot name any more.

    Both lists are ordered by PCI address, so when just the lost GPUs remain on both
    sides, they are the same ones.
    """
    devices = [_device(report) for report in reports]
    named = {device.pci_address for device in devices}
    rest = sorted(
        (gpu for gpu in gpus if gpu.pci_address not in named), key=lambda gpu: gpu.pci_address
    )
    lost = [device for device in devices if device.pci_address is None]
    if len(rest) != len(lost):
        return devices
    identities = {device.index: gpu for device, gpu in zip(lost, rest)}
    return [
        _identified(device, identities[device.index]) if device.index in identities else device
        for device in devices
    ]


def placed(device: Device, slot: PciDevice | None, link: PcieLink | None) -> Device:
    """The device with its place on the PCI bus. NVML's word on the link goes first."""
    if slot is None:
        return device
    return replace(
        device,
        pci_path=slot.path,
        numa_node=slot.numa_node,
        cpus=slot.cpus,
        pcie=device.pcie or link,
    )


def _identified(device: Device, gpu: ProcGpu) -> Device:
    return replace(
        device, uuid=gpu.uuid, minor=gpu.minor, name=gpu.name, pci_address=gpu.pci_address
    )


def _device(report: dict[str, Any]) -> Device:
    values: dict[str, Any] = {key: report.get(key) for key in _VALUES}
    for key, record in _RECORDS.items():
        value = report.get(key)
        values[key] = record(**value) if value else None
    values["mig"] = _mig(report)
    values["nvlink"] = _nvlink(report.get("nvlink"))
    values["errors"] = dict(report.get("errors") or {})
    return Device(**values)


def _mig(report: dict[str, Any]) -> Mig | None:
    mode, devices = report.get("mig"), report.get("mig_devices")
    if mode is None:
        return None
    listed = [MigDevice(**one) for one in devices] if devices is not None else None
    return Mig(**mode, devices=listed)


def _nvlink(report: dict[str, Any] | None) -> NvLink | None:
    if report is None:
        return None
    peers = [NvLinkPeer(**peer) for peer in report["peers"]]
    return NvLink(count=report["count"], version=report["version"], peers=peers)
