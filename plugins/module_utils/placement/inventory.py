# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The host that placement sees, out of the facts. Pure.

What the facts do not say is not held against a device; what they say is wrong with one is.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from ..mig import tables
from ..mig.model import ComputeInstance, GpuInstance, GpuLayout, Placement
from ..topology import facts as picture
from ..topology.model import Machine
from ..topology.remarks import weakened
from . import weights
from .model import Device, Gpu, Host, PlacementError, Tenant

# Errors after which the driver wants a reset or the board a look (NVIDIA's XID catalogue): memory
# that could not be corrected, the GPU off the bus, its firmware or its NVLinks gone. The kernel log
# still has them after the reset, so that they are a doubt and no fault.
_GRAVE_XIDS = frozenset({48, 62, 64, 74, 79, 95, 119, 120, 140, 143})
# Who holds a GPU without taking it from anybody.
_HARMLESS = ("persistence", "dcgm", "display")
# An idle GPU shows a few MiB to a few hundred; where nobody may look, more is somebody's work.
_IDLE_MIB = 768
_GIB = re.compile(r"(\d+)gb")

Leases = Mapping[str, Sequence[Tenant]]


def host(
    gpu: Mapping[str, Any], leases: Leases | None = None, ours: frozenset[str] = frozenset()
) -> Host:
    """The host of the ``gpu`` section of the facts.

    ``leases`` has by UUID who was promised what. ``ours`` are ids of containers that hold GPUs by
    such a lease and so are no foreigners. Raises PlacementError for facts that cannot be.
    """
    machine = picture.machine(gpu)
    devices = [one for one in gpu.get("devices") or [] if isinstance(one, Mapping)]
    weak = weakened(machine)
    told = leases or {}
    gpus = tuple(
        _gpu(machine, place, device, weak.get(place), told, ours)
        for place, device in enumerate(devices)
    )
    return checked(Host(gpus, _levels(gpu, machine, len(devices))))


def of_machine(machine: Machine, sick: Mapping[int, str] | None = None) -> Host:
    """The host of a picture alone, with nobody on it: a matrix out of a ticket."""
    weak = weakened(machine)
    gpus = tuple(
        Gpu(
            _number(gpu.name, place),
            Device(
                name=gpu.name,
                uuid=gpu.uuid,
                model=gpu.model,
                total_mib=gpu.memory_mib,
                numa_node=gpu.numa_nodes[0] if len(gpu.numa_nodes) == 1 else None,
                faults=(sick[place],) if sick and place in sick else (),
                weak=weak.get(place),
                rdma=_nearest_rdma(machine, place),
            ),
        )
        for place, gpu in enumerate(machine.gpus)
    )
    return checked(Host(gpus, machine.levels))


def checked(one: Host) -> Host:
    """The same host. Raises PlacementError for links that are none and for two of one name."""
    weights.check(one.levels, len(one.gpus))
    everything = [device for gpu in one.gpus for device in (gpu.device, *gpu.parts)]
    for what, values in (
        ("UUID", [device.uuid for device in everything if device.uuid]),
        ("name", [device.name for device in everything]),
    ):
        for value, many in Counter(values).items():
            if many > 1:
                raise PlacementError(f"{many} devices have the {what} {value}; each has its own")
    for device in everything:
        if device.total_mib is not None and device.total_mib <= 0:
            raise PlacementError(
                f"{device.name} has {device.total_mib} MiB; wanted is its memory, or null"
            )
    return one


def _levels(
    gpu: Mapping[str, Any], machine: Machine, size: int
) -> tuple[tuple[str | None, ...], ...]:
    """The matrix as given, so that a wrong one is refused; the picture's where there is none."""
    given = gpu.get("links")
    if not given:
        return machine.levels
    weights.check(given, size)
    return tuple(tuple(row) for row in given)


def _gpu(
    machine: Machine,
    place: int,
    facts: Mapping[str, Any],
    weak: str | None,
    leases: Leases,
    ours: frozenset[str],
) -> Gpu:
    seen = machine.gpus[place]
    mig = facts.get("mig") or {}
    on = bool(mig.get("current"))
    tenants = tuple(leases.get(seen.uuid or "", ()))
    device = Device(
        name=seen.name,
        uuid=seen.uuid,
        model=seen.model,
        total_mib=seen.memory_mib,
        reserved_mib=_mib(facts, "reserved"),
        used_mib=_mib(facts, "used"),
        numa_node=seen.numa_nodes[0] if len(seen.numa_nodes) == 1 else None,
        faults=_faults(facts),
        doubts=_doubts(facts),
        weak=weak,
        foreign=_foreign(facts, tenants, ours),
        tenants=tenants,
        rdma=_nearest_rdma(machine, place),
    )
    slices = [one for one in mig.get("devices") or [] if isinstance(one, Mapping)] if on else []
    index = _number(seen.name, place)
    parts = tuple(_part(device, index, number, one, leases) for number, one in enumerate(slices))
    return Gpu(index, device, on, parts, _layout(index, device, facts, slices, on))


def _part(
    whole: Device, index: int, number: int, facts: Mapping[str, Any], leases: Leases
) -> Device:
    uuid, profile = facts.get("uuid"), str(facts.get("profile") or "")
    size = _GIB.search(profile)
    named = int(size.group(1)) * 1024 if size else None
    memory = facts.get("memory_mib")
    tenants = tuple(leases.get(str(uuid), ()))
    return Device(
        name=f"{index}:{facts.get('index', number)}",
        uuid=uuid,
        model=whole.model,
        total_mib=memory if isinstance(memory, int) and memory > 0 else named,
        numa_node=whole.numa_node,
        profile=profile,
        faults=whole.faults,
        doubts=whole.doubts,
        # Facts name who holds a GPU, and not which of its instances.
        foreign=None if tenants else whole.foreign,
        tenants=tenants,
        rdma=whole.rdma,
    )


def _layout(
    index: int,
    device: Device,
    facts: Mapping[str, Any],
    slices: Sequence[Mapping[str, Any]],
    on: bool,
) -> GpuLayout | None:
    """What MIG planning needs; None where an instance's place is not known."""
    mig = facts.get("mig") or {}
    if not mig.get("supported") or device.uuid is None:
        return None
    instances: dict[int, GpuInstance] = {}
    for one in slices:
        start, size, number = one.get("start"), one.get("size"), one.get("gpu_instance")
        if not all(isinstance(value, int) for value in (start, size, number)):
            return None
        profile = re.sub(r"^\d+c\.", "", str(one.get("profile")))
        former = instances.get(number)  # type: ignore[arg-type]
        compute = ComputeInstance(
            _slices(str(one.get("profile"))), one.get("compute_instance"), one.get("uuid")
        )
        instances[number] = GpuInstance(  # type: ignore[index]
            profile,
            Placement(start, size),  # type: ignore[arg-type]
            (*(former.compute if former else ()), compute),
            number,
        )
    layout = GpuLayout(
        index=index,
        uuid=device.uuid,
        pci_address=str(facts.get("pci_address") or ""),
        name=device.model or "",
        device_id="",
        supported=True,
        current=on,
        pending=bool(mig.get("pending", on)),
        instances=tuple(instances.values()),
    )
    return layout if tables.geometry_of(layout) else None


def _slices(profile: str) -> int:
    match = re.match(r"(?:(\d+)c\.)?(\d+)g", profile)
    return int(match.group(1) or match.group(2)) if match else 1


def _faults(facts: Mapping[str, Any]) -> tuple[str, ...]:
    """Why CUDA would not run on it, or not for long."""
    found = []
    if facts.get("error"):
        found.append(str(facts["error"]))
    if facts.get("compute_mode") == "prohibited":
        found.append("its compute mode is prohibited (nvidia-smi -c 0 allows programs again)")
    fabric = facts.get("fabric") or {}
    if fabric.get("state") in ("not_started", "in_progress"):
        found.append(
            f"its NVLink fabric is {fabric['state']}: CUDA does not start before it is completed "
            "(systemctl status nvidia-fabricmanager)"
        )
    rows = facts.get("remapped_rows") or {}
    if rows.get("failed"):
        found.append("remapping of a broken memory row failed: the board has to be replaced")
    return tuple(found)


def _doubts(facts: Mapping[str, Any]) -> tuple[str, ...]:
    found = []
    rows = facts.get("remapped_rows") or {}
    if rows.get("pending"):
        found.append("a memory row waits for a reset to be remapped")
    if (facts.get("ecc") or {}).get("uncorrected"):
        found.append("it had uncorrected memory errors since the driver was loaded")
    for entry in facts.get("xids") or []:
        xid = entry.get("xid") if isinstance(entry, Mapping) else None
        if xid in _GRAVE_XIDS:
            found.append(f"the kernel log has XID {xid}, after which it needs a reset or a look")
            break
    mig = facts.get("mig") or {}
    if mig.get("pending") is not None and mig.get("pending") != mig.get("current"):
        found.append("its MIG mode changes at the next reset")
    return tuple(found)


def _foreign(
    facts: Mapping[str, Any], tenants: Sequence[Tenant], ours: frozenset[str]
) -> str | None:
    """Who has it open and was promised nothing."""
    holders = facts.get("holders")
    used = _mib(facts, "used")
    if holders is None:
        if used > _IDLE_MIB and not tenants:
            return f"{used} MiB of it are in use, and by whom may not be seen"
        return None
    others = [
        one
        for one in holders
        if isinstance(one, Mapping)
        and one.get("kind") not in _HARMLESS
        and not (one.get("container") and str(one["container"]) in ours)
    ]
    if not others:
        return None
    words = [_holder(one) for one in others[:3]]
    more = f" and {len(others) - 3} more" if len(others) > 3 else ""
    return f"held by {', '.join(words)}{more}, without a lease"


def _holder(one: Mapping[str, Any]) -> str:
    if one.get("container"):
        return f"container {str(one['container'])[:12]}"
    return f"{one.get('name') or 'a process'} (pid {one.get('pid')})"


def _nearest_rdma(machine: Machine, place: int) -> str | None:
    words = [
        word
        for nic, row in zip(machine.nics, machine.nic_levels)
        if nic.rdma and place < len(row)
        for word in [row[place]]
        if word is not None
    ]
    return max(words, key=weights.weight, default=None)


def _mib(facts: Mapping[str, Any], key: str) -> int:
    value = (facts.get("memory_mib") or {}).get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def _number(name: str, place: int) -> int:
    digits = re.sub(r"\D", "", name)
    return int(digits) if digits else place
