# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The picture of a machine from its facts, ``ansible_facts['gpu_host']['gpu']``. Pure.

Facts of an earlier release, which have no NICs and no ``topology``, and what ``smi_xml`` reads
out of a ticket, which has no ``links``, make a picture too: what is not there stays unknown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .levels import SELF, is_level
from .model import Gpu, Machine, Nic, Node
from .remarks import remarked

SOURCE = "facts"


def machine(gpu: Mapping[str, Any], source: str = SOURCE) -> Machine:
    """The picture of the ``gpu`` section; ``source`` is what comparisons call it."""
    devices = _dicts(gpu.get("devices"))
    nics = _dicts(gpu.get("nics"))
    topology = gpu.get("topology") or {}
    levels = gpu.get("links") or topology.get("sysfs") or []
    picture = Machine(
        source=source,
        gpus=tuple(_gpu(device, place) for place, device in enumerate(devices)),
        levels=square(levels, len(devices)),
        nics=tuple(_nic(nic, place) for place, nic in enumerate(nics)),
        nic_levels=tuple(_row(nic.get("levels") or [], len(devices)) for nic in nics),
        nodes=tuple(
            Node(one["node"], one["cpus"], one.get("memory_mib"))
            for one in _dicts(gpu.get("numa_nodes"))
            # Memory without CPUs (Grace, CXL) is nowhere a job could run.
            if one.get("cpus")
        ),
        nvswitches=_count(gpu.get("nvswitches")),
        remarks=(
            *(topology.get("disagreements") or ()),
            *(topology.get("remarks") or ()),
            *_numbering(devices),
            *_mig_remarks(devices),
        ),
    )
    return remarked(picture)


def square(levels: Sequence[Sequence[Any]], size: int) -> tuple[tuple[str | None, ...], ...]:
    """A level matrix of ``size`` rows: self where it must be, None where nothing is known."""
    rows = [_row(levels[i] if i < len(levels) else [], size) for i in range(size)]
    return tuple(
        tuple(SELF if i == j else word for j, word in enumerate(row)) for i, row in enumerate(rows)
    )


def _row(words: Sequence[Any], size: int) -> tuple[str | None, ...]:
    known = [word if isinstance(word, str) and is_level(word) else None for word in words]
    return tuple((known + [None] * size)[:size])


def _gpu(device: Mapping[str, Any], place: int) -> Gpu:
    index = device.get("index")
    memory = device.get("memory_mib") or {}
    return Gpu(
        name=f"GPU{place if index is None else index}",
        model=device.get("name"),
        uuid=device.get("uuid"),
        pci_address=device.get("pci_address"),
        pci_path=tuple(device.get("pci_path") or ()),
        numa_nodes=_node(device.get("numa_node")),
        cpus=device.get("cpus"),
        memory_mib=memory.get("total"),
        mig=tuple(_slice(one) for one in _mig_devices(device)),
    )


def _nic(nic: Mapping[str, Any], place: int) -> Nic:
    return Nic(
        name=nic.get("name") or f"NIC{place}",
        pci_address=nic.get("pci_address"),
        pci_path=tuple(nic.get("pci_path") or ()),
        numa_nodes=_node(nic.get("numa_node")),
        rdma=tuple(nic.get("rdma") or ()),
    )


def _mig_devices(device: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    found = _dicts((device.get("mig") or {}).get("devices"))
    return sorted(found, key=lambda one: one.get("index") or 0)


def _slice(one: Mapping[str, Any]) -> str:
    """A MIG device's profile; ``nvidia-smi -q -x`` names only its GPU instance."""
    return one.get("profile") or "GI {}".format(one.get("gpu_instance"))


def _numbering(devices: Sequence[Mapping[str, Any]]) -> list[str]:
    if all(device.get("index") is not None for device in devices):
        return []
    return ["the source has some of the host's GPUs and no index: they are counted from 0 here"]


def _mig_remarks(devices: Sequence[Mapping[str, Any]]) -> list[str]:
    return [text for place, device in enumerate(devices) for text in _mig_of(device, place)]


def _mig_of(device: Mapping[str, Any], place: int) -> list[str]:
    """What the MIG state of one GPU asks of its owner."""
    mig = device.get("mig") or {}
    name = _gpu(device, place).name
    current, pending = mig.get("current"), mig.get("pending")
    if current is not None and pending is not None and current != pending:
        return [
            f"{name}: MIG mode is {_on(current)} and will be {_on(pending)} after the next reset "
            "of the GPU or reboot; it was in use when the change was asked for"
        ]
    # A fact of an earlier release has no list of MIG devices: that is not an empty one.
    if current and mig.get("devices") == []:
        return [
            f"{name}: MIG mode is on and there is no MIG device. The mode survives a reboot, "
            "the devices do not: create them again"
        ]
    return []


def _on(mode: bool) -> str:
    return "on" if mode else "off"


def _node(number: int | None) -> tuple[int, ...]:
    return () if number is None or number < 0 else (number,)


def _count(switches: Any) -> int:
    """The facts hold a number; null where the host does not say."""
    return switches if isinstance(switches, int) else 0


def _dicts(values: Any) -> list[Mapping[str, Any]]:
    return [one for one in values or [] if isinstance(one, Mapping)]
