# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The whole GPU inventory of a host: reads every source once and joins them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Callable

from . import (
    bandwidth_file,
    bridges,
    devices,
    driver,
    holders,
    kernel_log,
    library,
    links,
    nics,
    nodes,
    numa,
    nvml_reader,
    pci,
    procfs,
    secure_boot,
    services,
    sources,
)
from .host_model import PciDevice
from .kernel_log import Messages
from .model import Device, Inventory
from .nvml_reader import Answer

DEFAULT_DEADLINE_S = 20.0
# /proc is memory: what takes longer than this waits for a lock that a sick driver holds.
_PROC_DEADLINE_S = 5.0


def collect(
    root: str = "/",
    deadline_s: float = DEFAULT_DEADLINE_S,
    ask_nvml: Callable[[float], Answer] = nvml_reader.read,
) -> Inventory:
    """Everything the host says about its GPUs; changes nothing, needs no root.

    ``deadline_s`` bounds the questions to the driver. Missing drivers and sick GPUs are part
    of the answer. NVML is asked only when the kernel module is loaded: asked by root before,
    the library would load it (through nvidia-modprobe).
    NVML answers for the machine it runs on, whatever ``root`` is: for a recorded tree give the
    recorded answer as ``ask_nvml``.
    """
    on_bus = pci.read_display_devices(root)
    proc = procfs.read(min(deadline_s, _PROC_DEADLINE_S), root)
    answer = ask_nvml(deadline_s) if proc.version else Answer()
    report = answer.report if answer.report is not None and not answer.report["error"] else None
    if report is not None:
        source, found = "nvml", devices.from_nvml(report["devices"], proc.gpus)
    else:
        found = devices.from_procfs(proc.gpus)
        source = "procfs" if found else "none"
    log = kernel_log.read(root) if on_bus or found else Messages()
    on_bus = _explained(on_bus, found, log)
    library_path = library.find(root, os.environ)
    minors = [gpu.minor for gpu in proc.gpus if gpu.minor is not None]
    state = driver.judge(
        driver.Seen(
            on_bus,
            proc,
            library_path,
            library.release(library_path),
            answer,
            nodes.closed(minors, root),
        )
    )
    found = _placed(found, on_bus, root)
    found = _with_xids(found, log)
    found = _with_holders(found, report, root)
    cards = nics.read_nics(found, root)
    matrix = links.matrix(found)
    paths = [slot.path for slot in on_bus] + [card.pci_path for card in cards]
    return Inventory(
        driver=state,
        source=source,
        devices=found,
        links=matrix,
        topology=sources.topology(
            found, matrix, cards, report["levels"] if report else None, bandwidth_file.read(root)
        ),
        p2p=report["p2p"] if report else None,
        pci=on_bus,
        bridges=bridges.read_bridges(paths, root),
        iommu=bridges.read_iommu(paths, root),
        nics=cards,
        nodes=nodes.read_nodes([one.minor for one in found if one.minor is not None], root),
        numa_nodes=numa.read_nodes(root),
        modules=procfs.read_modules(root),
        nvswitches=proc.nvswitches,
        fabric_manager=services.read_fabric_manager(proc.nvswitches, proc.version, root),
        persistence_daemon=services.read_persistence_daemon(root),
        secure_boot=secure_boot.read(root),
    )


def _explained(
    on_bus: Sequence[PciDevice], found: Sequence[Device], log: Messages
) -> list[PciDevice]:
    """The cards on the bus; those that do not work with what the kernel log says of them."""
    refusals = kernel_log.refusals(log.records)
    served = {device.pci_address for device in found if device.error is None}
    explained = []
    for slot in on_bus:
        reason = None
        if slot.address not in served:
            # A sentence that names no address is about a card the driver did not bind to.
            unnamed = refusals.get(None) if slot.driver is None else None
            reason = refusals.get(slot.address, unnamed)
        explained.append(replace(slot, reason=reason))
    return explained


def _placed(found: Sequence[Device], on_bus: Sequence[PciDevice], root: str) -> list[Device]:
    slots = {slot.address: slot for slot in on_bus}
    placed = []
    for device in found:
        slot = slots.get(device.pci_address or "")
        link = pci.read_link(slot.path, root) if slot is not None and device.pcie is None else None
        placed.append(devices.placed(device, slot, link))
    return placed


def _with_xids(found: Sequence[Device], log: Messages) -> list[Device]:
    """The devices with their Xids; None, with the reason, when the log is closed to us."""
    if log.reason is not None:
        return [replace(device, errors={**device.errors, "xids": log.reason}) for device in found]
    xids = kernel_log.xids(log.records)
    return [
        replace(device, xids=xids.get(kernel_log.slot_of(device.pci_address), []))
        if device.pci_address
        else device
        for device in found
    ]


def _with_holders(
    found: Sequence[Device], report: dict[str, Any] | None, root: str
) -> list[Device]:
    """The devices with who holds them, joined with the processes of the NVML report."""
    minors = {device.minor: device.index for device in found if device.minor is not None}
    sight = holders.look(minors, root)
    told = {one["index"]: one.get("processes") or [] for one in report["devices"]} if report else {}
    result = []
    for device in found:
        seen = sight.holders.get(device.index, [])
        processes = {one["pid"]: one["used_mib"] for one in told.get(device.index, [])}
        unseen = processes.keys() - {one.pid for one in seen}
        seen = seen + [holders.describe(pid, root) for pid in sorted(unseen)]
        listed = [replace(one, used_mib=processes.get(one.pid)) for one in seen]
        if sight.complete and device.minor is not None:
            result.append(replace(device, holders=listed))
            continue
        reason = "processes of other users could not be looked at; run as root to see all holders"
        if sight.complete:
            reason = "the minor number of the GPU is unknown"
        errors = {**device.errors, "holders": reason}
        # What was seen is true, but an empty list would claim that nobody holds the GPU.
        result.append(replace(device, holders=listed or None, errors=errors))
    return result
