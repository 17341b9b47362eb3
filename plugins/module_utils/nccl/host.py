# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a topology file is held against: the host's PCI functions and CPUs, from sysfs and /proc.

Works without the GPU driver: the addresses are the same before it is loaded and after.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from ..hardware import files, pci
from ..topology import lists

_CLASS_DISPLAY = "03"
_CLASS_NETWORK = "02"
_CLASS_INFINIBAND = "0207"
_NODE = re.compile(r"node[0-9]{1,9}\Z")
_SPEED = re.compile(r"[0-9]+(?:\.[0-9]+)?(?: |\Z)")
_MASK = re.compile(r"[0-9a-fA-F]{1,8}(?:,[0-9a-fA-F]{1,8})*\Z")


@dataclass(frozen=True)
class Function:
    """One PCI function. Ids and class are hexadecimal text without 0x, ``link_speed`` is the
    most the link can do as sysfs prints it (``16.0 GT/s PCIe``), "" and 0 where it says none.

    ``path`` begins at the root port and ends with the function itself.
    """

    address: str
    pci_class: str
    vendor: str = ""
    device: str = ""
    subsystem_vendor: str = ""
    subsystem_device: str = ""
    link_speed: str = ""
    link_width: int = 0
    numa_node: int | None = None
    path: tuple[str, ...] = ()
    driver: str | None = None
    rdma: bool = False

    @property
    def is_gpu(self) -> bool:
        """A GPU of the host itself; one bound to vfio-pci belongs to a virtual machine."""
        mine = self.vendor == pci.NVIDIA and self.pci_class.startswith(_CLASS_DISPLAY)
        return mine and self.driver != "vfio-pci"

    @property
    def is_nic(self) -> bool:
        """A network adapter of any kind."""
        return self.pci_class.startswith(_CLASS_NETWORK)


@dataclass(frozen=True)
class Host:
    """``machine`` is what uname says, ``cpus`` the numbers present, ``cpu_masks`` the CPUs of
    each NUMA node as sysfs prints a mask, ``cpu_ids`` vendor_id, family and model of x86,
    ``virtual`` that the CPU says it runs below a hypervisor.
    """

    functions: Mapping[str, Function] = field(default_factory=dict)
    cpus: frozenset[int] = frozenset()
    cpu_masks: Mapping[int, str] = field(default_factory=dict)
    machine: str = "x86_64"
    cpu_ids: tuple[str, int, int] | None = None
    virtual: bool = False

    @property
    def gpus(self) -> list[Function]:
        """In the order of their addresses."""
        return [one for one in self.functions.values() if one.is_gpu]

    @property
    def nics(self) -> list[Function]:
        """Those that speak RDMA: NCCL has little use for others."""
        return [one for one in self.functions.values() if one.is_nic and one.rdma]


def read(root: str = "/", machine: str | None = None) -> Host:
    """The host as it is now. ``machine`` is for tests."""
    addresses = files.names(os.path.join(root, "sys/bus/pci/devices"))
    cpuinfo = files.text(os.path.join(root, "proc/cpuinfo"))
    present = files.text(os.path.join(root, "sys/devices/system/cpu/present"))
    return Host(
        functions={
            address: _function(address, root) for address in addresses if pci.is_address(address)
        },
        cpus=frozenset(lists.numbers(present) or ()),
        cpu_masks=_cpu_masks(os.path.join(root, "sys/devices/system/node")),
        machine=machine or os.uname().machine,
        cpu_ids=cpu_ids(cpuinfo),
        virtual=re.search(r"^flags\s*:.*\bhypervisor\b", cpuinfo, re.M) is not None,
    )


def mask_numbers(mask: str) -> tuple[int, ...] | None:
    """The CPUs of a mask as NCCL reads one (src/include/cpuset.h); None for anything else."""
    try:
        return lists.of_mask(mask) if _MASK.match(mask) else None
    except ValueError:  # of more CPUs than any machine has
        return None


def cpu_ids(cpuinfo: str) -> tuple[str, int, int] | None:
    """vendor_id, cpu family and model of the first CPU in /proc/cpuinfo; None beside x86."""
    found: dict[str, str] = {}
    for line in cpuinfo.splitlines():
        key, _colon, value = line.partition(":")
        found.setdefault(key.strip(), value.strip())
    family, model = files.number(found.get("cpu family", "")), files.number(found.get("model", ""))
    if "vendor_id" not in found or family is None or model is None:
        return None
    return found["vendor_id"], family, model


def _function(address: str, root: str) -> Function:
    directory = os.path.join(root, "sys/bus/pci/devices", address)

    def identity(name: str) -> str:
        return pci.identity(address, name, root)

    pci_class = identity("class")
    return Function(
        address=address,
        pci_class=pci_class,
        vendor=identity("vendor"),
        device=identity("device"),
        subsystem_vendor=identity("subsystem_vendor"),
        subsystem_device=identity("subsystem_device"),
        link_speed=_speed(pci.attribute(address, "max_link_speed", root) or ""),
        link_width=pci.width(address, "max_link_width", root) or 0,
        numa_node=pci.numa_node(address, root),
        path=tuple(pci.read_path(address, root)),
        driver=files.target(os.path.join(directory, "driver")),
        rdma=pci_class.startswith(_CLASS_INFINIBAND)
        or os.path.isdir(os.path.join(directory, "infiniband")),
    )


def _speed(text: str) -> str:
    return text if _SPEED.match(text) else ""


def _cpu_masks(directory: str) -> dict[int, str]:
    """Only nodes that have CPUs: the memory node of a Grace GPU is none NCCL could use."""
    numbers = sorted(int(name[4:]) for name in files.names(directory) if _NODE.match(name))
    masks = {
        number: files.text(os.path.join(directory, f"node{number}", "cpumap")) for number in numbers
    }
    return {number: mask for number, mask in masks.items() if mask_numbers(mask)}
