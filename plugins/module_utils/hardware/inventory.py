# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The whole GPU inventory of a host: reads every source once and joins them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Callable

from . import driver, library, links, nodes, numa, nvml_reader, pci, procfs
from .model import Device, Inventory, Memory, Mig, NvLink, NvLinkPeer, PciDevice
from .nvml_reader import Answer
from .procfs import ProcGpu

DEFAULT_DEADLINE_S = 20.0


def collect(
    root: str = "/",
    deadline_s: float = DEFAULT_DEADLINE_S,
    ask_nvml: Callable[[float], Answer] = nvml_reader.read,
) -> Inventory:
    """Everything the host says about its GPUs; changes nothing, needs no root.

    ``deadline_s`` bounds the question to NVML. Missing drivers and sick GPUs are part of
    the answer. NVML is asked only when the kernel module is loaded: asked by root before,
    the library would load it (through nvidia-modprobe).
    """
    on_bus = pci.read_display_devices(root)
    in_proc = procfs.read_gpus(root)
    module_version, flavour = procfs.read_version(root)
    library_path = library.find(root, os.environ)
    answer = ask_nvml(deadline_s) if module_version else Answer()
    state = driver.judge(
        module_version,
        flavour,
        library_path,
        library.release(library_path),
        answer,
        has_device=bool(on_bus),
    )
    if answer.report is not None and answer.report["error"] is None:
        source, found = "nvml", from_nvml(answer.report["devices"], in_proc)
    else:
        found = from_procfs(in_proc)
        source = "procfs" if found else "none"
    devices = [_placed(device, on_bus) for device in found]
    return Inventory(
        driver=state,
        source=source,
        devices=devices,
        links=links.matrix(devices),
        pci=on_bus,
        nodes=nodes.read_nodes([one.minor for one in devices if one.minor is not None], root),
        numa_nodes=numa.read_nodes(root),
        modules=procfs.read_modules(root),
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


def _identified(device: Device, gpu: ProcGpu) -> Device:
    return replace(
        device, uuid=gpu.uuid, minor=gpu.minor, name=gpu.name, pci_address=gpu.pci_address
    )


def _device(report: dict[str, Any]) -> Device:
    memory, mig = report.get("memory_mib"), report.get("mig")
    return Device(
        index=report["index"],
        uuid=report.get("uuid"),
        minor=report.get("minor"),
        name=report.get("name"),
        architecture=report.get("architecture"),
        pci_address=report.get("pci_address"),
        memory_mib=Memory(**memory) if memory else None,
        mig=Mig(**mig) if mig else None,
        nvlink=_nvlink(report.get("nvlink")),
        error=report.get("error"),
    )


def _nvlink(report: dict[str, Any] | None) -> NvLink | None:
    if report is None:
        return None
    peers = [NvLinkPeer(**peer) for peer in report["peers"]]
    return NvLink(count=report["count"], version=report["version"], peers=peers)


def _placed(device: Device, on_bus: Sequence[PciDevice]) -> Device:
    """A device with its place on the PCI bus, when sysfs shows it."""
    for slot in on_bus:
        if slot.address == device.pci_address:
            return replace(device, pci_path=slot.path, numa_node=slot.numa_node, cpus=slot.cpus)
    return device
