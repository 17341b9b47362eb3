# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The levels of a host from two sources side by side, and what follows from them. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..topology import affinity, compare, remarks, remembered
from ..topology.levels import SELF
from ..topology.model import Gpu, Machine
from . import links
from .bandwidth_file import Memory
from .host_model import Nic
from .model import Device, Topology

Levels = Sequence[Sequence["str | None"]]


def topology(
    devices: Sequence[Device],
    joined: Levels,
    nics: Sequence[Nic],
    nvml: list[list[str | None]] | None,
    memory: Memory,
) -> Topology:
    """``joined`` are the levels with NVLinks (``links.matrix``), ``nvml`` those NVML reports.

    ``memory`` is the bandwidth that was measured here once; of other GPUs or links it is a remark.
    """
    sysfs = links.pcie_matrix(devices)
    gpus = tuple(_gpu(device) for device in devices)
    nic_levels = tuple(tuple(nic.levels) for nic in nics)
    picture = Machine("facts", gpus, _frozen(joined), nic_levels=nic_levels)
    kept, unused = memory.record, memory.reason
    # Without a driver there are no GPUs here to speak of, and nothing is stale.
    if kept is not None and gpus:
        unused = remembered.stale(kept, gpus, joined)
    known = Topology(
        sysfs=sysfs,
        nvml=nvml,
        disagreements=_disagreements(gpus, sysfs, nvml) if nvml is not None else [],
        remarks=[*remarks.remarked(picture).remarks, *([unused] if unused else [])],
        affinity=affinity.derived(joined),
        affinity_basis=affinity.DERIVED,
    )
    if kept is None or unused or not gpus:
        return known
    return replace(
        known,
        affinity=affinity.measured(joined, remembered.in_order(kept, gpus)),
        affinity_basis=affinity.MEASURED,
        affinity_tool=kept.tool,
    )


def _disagreements(gpus: tuple[Gpu, ...], sysfs: Levels, nvml: Levels) -> list[str]:
    """Two GPUs on one board are INTERNAL to NVML; on the bus they share a switch."""
    told = [["PIX" if word == "INTERNAL" else word for word in row] for row in nvml]
    return compare.disagreements(
        Machine("sysfs", gpus, _frozen(sysfs)), Machine("NVML", gpus, _frozen(told))
    )


def _gpu(device: Device) -> Gpu:
    nodes = () if device.numa_node is None else (device.numa_node,)
    return Gpu(
        f"GPU{device.index}",
        model=device.name,
        uuid=device.uuid,
        pci_path=tuple(device.pci_path),
        numa_nodes=nodes,
    )


def _frozen(levels: Levels) -> tuple[tuple[str | None, ...], ...]:
    return tuple(
        tuple(SELF if row == column else word for column, word in enumerate(words))
        for row, words in enumerate(levels)
    )
