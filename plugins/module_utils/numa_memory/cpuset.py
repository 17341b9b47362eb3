# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The CPUs and the memory node beside GPUs, as Docker's flags want them. Pure.

A process far from its GPU reaches it over the link between sockets. ``--cpuset-mems`` holds for
what a container allocates; pages of files that were read before, and memory that the driver pins
for others, stay where they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..topology import lists
from .model import NumaError

ALL = "all"


@dataclass(frozen=True)
class Cpuset:
    """What ``docker run`` gets. ``nodes`` are the NUMA nodes that have the GPUs."""

    cpus: str
    mems: str
    nodes: tuple[int, ...]

    @property
    def flags(self) -> str:
        """``--cpuset-cpus=0-27 --cpuset-mems=0``."""
        return f"--cpuset-cpus={self.cpus} --cpuset-mems={self.mems}"

    def as_dict(self) -> dict[str, Any]:
        """As the filter and the command return it."""
        return {
            "cpuset_cpus": self.cpus,
            "cpuset_mems": self.mems,
            "nodes": list(self.nodes),
            "flags": self.flags,
        }


def beside(gpu: Mapping[str, Any], wanted: Sequence[str]) -> Cpuset:
    """CPUs and memory nodes beside the GPUs that ``wanted`` names; ``gpu`` is of the facts.

    A GPU is named by its index, UUID, PCI address, or the UUID of one of its MIG devices; ``all``
    names each. Raises NumaError where a name is unknown, or nothing tells where a GPU is.
    """
    devices = _chosen(gpu, wanted)
    nodes = {int(one["node"]): one for one in gpu.get("numa_nodes") or []}
    known = {int(d["numa_node"]) for d in devices if d.get("numa_node") is not None}
    lost = [str(d.get("index")) for d in devices if d.get("numa_node") is None]
    if lost and len(nodes) == 1:
        # There is nothing to choose: every GPU is beside the only node.
        known.update(nodes)
    elif lost:
        raise NumaError(
            f"GPU {', '.join(lost)}: the firmware names no NUMA node, and this machine has "
            f"{len(nodes) or 'none it shows'}; a virtual machine may hide where its GPUs are. Look "
            "for NUMA settings of the firmware or the hypervisor"
        )
    cpus: set[int] = set()
    for number in known:
        own = str(nodes.get(number, {}).get("cpus") or "") or _cpus_of(devices, number)
        cpus.update(lists.numbers(own) or ())
    if not cpus:
        raise NumaError(f"NUMA node {', '.join(map(str, sorted(known)))} has no CPUs")
    return Cpuset(lists.text_of(cpus), lists.text_of(known), tuple(sorted(known)))


def _cpus_of(devices: Sequence[Mapping[str, Any]], node: int) -> str:
    texts = [str(d.get("cpus") or "") for d in devices if d.get("numa_node") == node]
    return texts[0] if texts else ""


def _chosen(gpu: Mapping[str, Any], wanted: Sequence[str]) -> list[Mapping[str, Any]]:
    devices = list(gpu.get("devices") or [])
    if not devices:
        raise NumaError("no GPU is known on this host")
    if not wanted or ALL in wanted:
        return devices
    found: list[Mapping[str, Any]] = []
    for name in wanted:
        matching = [device for device in devices if _is(device, name)]
        if not matching:
            there = ", ".join(f"{d.get('index')} ({d.get('uuid')})" for d in devices)
            raise NumaError(f"no GPU is called {name!r}; there are {there}")
        found += matching
    return found


def _is(device: Mapping[str, Any], name: str) -> bool:
    mig = (device.get("mig") or {}).get("devices") or []
    known = [device.get("index"), device.get("uuid"), device.get("pci_address")]
    return name in map(str, known) or any(one.get("uuid") == name for one in mig)
