# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A topology file made from the host's own PCIe tree. Pure: a host in, text out.

Only a tree that is really there can be written down. A virtual machine shows devices side by
side, and nothing on it tells which of them share a switch.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..topology import nccl_xml
from ..topology.levels import pcie_level
from ..topology.model import TopologyError
from ..topology.nccl_xml import Cpu, NcclTree, Pci
from .host import Function, Host
from .judge import ARCHES

_NEAR = ("INTERNAL", "PIX", "PXB")
_GIVE_CONTENT = "Give the real layout as content: cloud images ship it as a file"


def hidden(host: Host) -> str | None:
    """Why the tree of this host cannot be the real one; None when it can.

    A PCIe device always has a port above it; where a GPU has none, a hypervisor took it away.
    Where no two devices share a switch, a virtual machine hides them, and a real one that does
    not even differ in NUMA nodes (PHB or NODE everywhere) has no layout to write down.
    """
    for one in host.gpus:
        if len(one.path) < 2:
            return (
                f"GPU {one.address} sits on its root bus without a port, as virtual machines show "
                f"it: the real PCIe tree is hidden and cannot be guessed. {_GIVE_CONTENT}"
            )
    devices = [*host.gpus, *host.nics]
    words = {
        pcie_level(one.path, other.path, one.numa_node, other.numa_node)
        for place, one in enumerate(devices)
        for other in devices[:place]
    }
    levels = {word for word in words if word is not None}
    if levels and not levels.intersection(_NEAR if host.virtual else (*_NEAR, "SYS")):
        return (
            f"the PCIe tree is flat: {' and '.join(sorted(levels))} between all GPUs and NICs. "
            "A virtual machine that hides its tree looks like this, and it cannot be guessed. "
            f"{_GIVE_CONTENT}"
        )
    return None


def generate(host: Host) -> str:
    """The file NCCL would write for this host. Raises TopologyError when there is none to write."""
    if not host.gpus:
        raise TopologyError("this host has no NVIDIA GPU, so there is no topology to write")
    reason = hidden(host)
    if reason:
        raise TopologyError(reason)
    devices = [*host.gpus, *host.nics]
    homeless = [one.address for one in devices if _numa(one, host) is None]
    if homeless:
        raise TopologyError(
            f"the firmware names no NUMA node with CPUs for {', '.join(homeless)}, so it cannot "
            f"be placed below a CPU. {_GIVE_CONTENT}"
        )
    unseen = {step for one in devices for step in walked(one.path)} - set(host.functions)
    if unseen:
        raise TopologyError(
            f"sysfs has no function {', '.join(sorted(unseen))}, which others hang on: the tree "
            "was cut, or changed while it was read. Try again"
        )
    cpus = []
    for node in sorted(host.cpu_masks):
        chains = sorted(walked(one.path) for one in devices if _numa(one, host) == node)
        if chains:
            cpus.append(_cpu(host, node, chains))
    return nccl_xml.render(NcclTree(1, (), tuple(cpus), ()))


def walked(path: Sequence[str]) -> tuple[str, ...]:
    """The functions of a path that NCCL makes nodes of, from the CPU down.

    It climbs by two (xml.cc, ncclTopoGetXmlFromSys): a switch counts once, without the port
    below, and the root port is part of the CPU. With every port in it, two GPUs of one switch
    would be as far apart as two switches.
    """
    return tuple(reversed(path[::-1][::2]))


def _numa(one: Function, host: Host) -> int | None:
    """On a host with one node every device is near it, whatever the firmware says."""
    if len(host.cpu_masks) == 1:
        return next(iter(host.cpu_masks))
    return one.numa_node if one.numa_node in host.cpu_masks else None


def _cpu(host: Host, node: int, chains: Sequence[tuple[str, ...]]) -> Cpu:
    vendor, family, model = host.cpu_ids or (None, None, None)
    return Cpu(
        numaid=node,
        affinity=host.cpu_masks[node],
        arch=ARCHES.get(host.machine, host.machine),
        vendor=vendor,
        familyid=family,
        modelid=model,
        children=_functions(host, chains),
    )


def _functions(host: Host, chains: Sequence[tuple[str, ...]]) -> tuple[Pci, ...]:
    """The first function of each chain, with the rest of its chains below it."""
    found = []
    for address in dict.fromkeys(chain[0] for chain in chains):
        below = [chain[1:] for chain in chains if chain[0] == address and len(chain) > 1]
        found.append(_function(host, host.functions[address], _functions(host, below)))
    return tuple(found)


def _function(host: Host, one: Function, children: tuple[Pci, ...]) -> Pci:
    """A link is as fast as its slower end: the function, or the port it hangs on."""
    port = host.functions.get(one.path[-2]) if len(one.path) > 1 else None
    ends = [end for end in (one, port) if end is not None]
    speeds = [end.link_speed for end in ends if end.link_speed]
    return Pci(
        busid=one.address,
        pci_class=f"0x{one.pci_class}",
        vendor=_hexadecimal(one.vendor),
        device=_hexadecimal(one.device),
        subsystem_vendor=_hexadecimal(one.subsystem_vendor),
        subsystem_device=_hexadecimal(one.subsystem_device),
        link_speed=min(speeds, key=_gigatransfers) if speeds else "",
        link_width=min((end.link_width for end in ends if end.link_width), default=0),
        children=children,
    )


def _hexadecimal(digits: str) -> str | None:
    return f"0x{digits}" if digits else None


def _gigatransfers(speed: str) -> float:
    return float(speed.split()[0])
