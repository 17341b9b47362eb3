# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""hwloc's view of a machine, ``lstopo --of xml`` or the text ``lstopo -v`` prints. Pure.

Both forms become one list of what hangs on the PCI buses; ``machine`` makes the picture. Their
tags: hwloc's ``hwloc.dtd`` and ``hwloc2.dtd``, versions 1 to 3. hwloc shows a PCI tree only when
it was asked for I/O devices, and bridges only above those it keeps.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from . import lists, nvlinks
from .levels import shared_steps
from .model import Gpu, Machine, Nic, Node
from .remarks import remarked

NVIDIA = "10de"
_NO_VENDOR = "0000"
_DISPLAY = "03"
_NETWORK = "02"
_BRIDGE_OTHER = "0680"

# Megabytes a second of one NVLink as hwloc counts them: first generation, and those after it.
_PER_LINK = (25000, 20000)
_BELOW_ONE_SWITCH = 2


@dataclass(frozen=True)
class OsDevice:
    """What the operating system or a driver library calls a PCI device (``mlx5_0``, ``nvml0``)."""

    name: str
    is_rdma: bool
    info: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class PciDevice:
    """One PCI device. ``chain`` begins at the host bridge and ends with the device's address."""

    address: str
    pci_class: str
    vendor: str
    chain: tuple[str, ...]
    nodes: tuple[int, ...] = ()
    cpus: str = ""
    subtype: str = ""
    os_devices: tuple[OsDevice, ...] = ()
    ids: frozenset[str] = frozenset()

    @property
    def is_gpu(self) -> bool:
        """A display controller of NVIDIA, or any that NVML or CUDA named."""
        if any(one.name.startswith(("nvml", "cuda")) for one in self.os_devices):
            return True
        # A recorded file may hide the ids; another vendor's graphics is no GPU of ours.
        return self.pci_class.startswith(_DISPLAY) and self.vendor in (NVIDIA, _NO_VENDOR)

    @property
    def is_nic(self) -> bool:
        """A network controller of any kind."""
        return self.pci_class.startswith(_NETWORK)

    @property
    def is_nvswitch(self) -> bool:
        """Named so by hwloc, or it is NVIDIA's and of its class."""
        is_bridge = self.vendor == NVIDIA and self.pci_class.startswith(_BRIDGE_OTHER)
        return self.subtype == "NVSwitch" or is_bridge


def machine(
    devices: Sequence[PciDevice],
    nodes: Sequence[Node],
    source: str,
    title: str | None = None,
    bandwidth: Mapping[str, Mapping[str, int]] | None = None,
) -> Machine:
    """The picture of what hwloc lists.

    ``bandwidth`` is its matrix NVLinkBandwidth in MB/s, from id to id.
    """
    gpus = sorted((one for one in devices if one.is_gpu), key=lambda one: one.address)
    nics = sorted((one for one in devices if one.is_nic), key=lambda one: one.address)
    switches = [one for one in devices if one.is_nvswitch]
    direct, to_switches, known = _nvlinks(gpus, switches, bandwidth or {})
    picture = Machine(
        source=source,
        gpus=tuple(_gpu(one, number) for number, one in enumerate(gpus)),
        levels=nvlinks.matrix(
            [one.address for one in gpus],
            [[_level(one, other) for other in gpus] for one in gpus],
            direct,
            to_switches,
        ),
        nics=tuple(_nic(one) for one in nics),
        nic_levels=tuple(tuple(_level(nic, gpu) for gpu in gpus) for nic in nics),
        nodes=tuple(nodes),
        nvswitches=len(switches),
        title=title,
    )
    if not gpus:
        text = "no GPU in it: hwloc lists PCI devices only when asked, lstopo --whole-io"
        picture = replace(picture, remarks=(text,))
    elif not known:
        text = "NVLinks are not shown: their bandwidth is that of no known generation"
        picture = replace(picture, remarks=(text,))
    return remarked(picture)


def _gpu(device: PciDevice, number: int) -> Gpu:
    info: dict[str, str] = {}
    for one in device.os_devices:
        info.update(one.info)
    return Gpu(
        name=f"GPU{number}",
        model=info.get("GPUModel"),
        uuid=info.get("NVIDIAUUID"),
        pci_address=device.address,
        pci_path=_path(device),
        numa_nodes=device.nodes,
        cpus=device.cpus or None,
        memory_mib=_memory_mib(info.get("CUDAGlobalMemorySize")),
    )


def _nic(device: PciDevice) -> Nic:
    rdma = tuple(one.name for one in device.os_devices if one.is_rdma)
    names = rdma or tuple(one.name for one in device.os_devices)
    return Nic(
        name=names[0] if names else device.address,
        pci_address=device.address,
        pci_path=_path(device),
        numa_nodes=device.nodes,
        rdma=rdma,
    )


def _path(device: PciDevice) -> tuple[str, ...]:
    """Without the host bridge, which is no PCI function."""
    return device.chain[1:]


def _memory_mib(text: str | None) -> int | None:
    """MiB of hwloc's kibibytes, which have their unit since version 3."""
    match = re.match(r"([0-9]{1,18})\s*(?:KiB|kB)?$", text or "")
    return int(match.group(1)) // 1024 if match else None


def _level(one: PciDevice, other: PciDevice) -> str | None:
    """The PCIe word between two devices: their common part begins at a host bridge."""
    shared = shared_steps(one.chain, other.chain)
    if shared == 1:
        return "PHB"
    if shared > 1:
        below = max(len(one.chain), len(other.chain)) - shared
        return "PIX" if below <= _BELOW_ONE_SWITCH else "PXB"
    if not one.nodes or not other.nodes:
        return None
    return "NODE" if one.nodes == other.nodes else "SYS"


def _nvlinks(
    gpus: Sequence[PciDevice],
    switches: Sequence[PciDevice],
    bandwidth: Mapping[str, Mapping[str, int]],
) -> tuple[dict[str, dict[str, int]], dict[str, int], bool]:
    """Links between GPUs and to switches, and whether the bandwidth tells their number."""
    per_link = _per_link(gpus, switches, bandwidth)
    if per_link is None:
        return {}, {}, False

    def links(one: PciDevice, other: PciDevice) -> int:
        return sum(bandwidth.get(a, {}).get(b, 0) // per_link for a in one.ids for b in other.ids)

    direct = {
        one.address: {two.address: links(one, two) for two in gpus if two is not one}
        for one in gpus
    }
    return direct, {one.address: sum(links(one, two) for two in switches) for one in gpus}, True


def _per_link(
    gpus: Sequence[PciDevice],
    switches: Sequence[PciDevice],
    bandwidth: Mapping[str, Mapping[str, int]],
) -> int | None:
    """What one link adds; 1 where there are none, None where no generation fits."""
    owner = {name: one.address for one in (*gpus, *switches) for name in one.ids}
    seen = [
        value
        for one, row in bandwidth.items()
        for other, value in row.items()
        if value and one in owner and other in owner and owner[one] != owner[other]
    ]
    if not seen:
        return 1
    return next((unit for unit in _PER_LINK if all(value % unit == 0 for value in seen)), None)


def node(number: int, cpus: str, memory_bytes: int | None) -> Node:
    """A NUMA node with its memory in MiB."""
    return Node(number, cpus, None if memory_bytes is None else memory_bytes >> 20)


def cpu_list(mask: str) -> str:
    """The kernel list of a cpuset mask; "" for none or for one that is no mask."""
    try:
        return lists.text_of(lists.of_mask(mask)) if mask else ""
    except ValueError:
        return ""
