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

from ..atomic import read_text
from ..hardware import pci

_CLASS_DISPLAY = "03"
_CLASS_NETWORK = "02"
_CLASS_INFINIBAND = "0207"
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
    """The host as it is now. ``machine`` is for tests. Raises OSError only for a sick sysfs."""
    bus = os.path.join(root, "sys/bus/pci/devices")
    try:
        addresses = sorted(os.listdir(bus))
    except FileNotFoundError:
        addresses = []
    cpuinfo = read_text(os.path.join(root, "proc/cpuinfo")) or ""
    present = read_text(os.path.join(root, "sys/devices/system/cpu/present")) or ""
    return Host(
        functions={address: _function(bus, address, root) for address in addresses},
        cpus=frozenset(cpu_numbers(present)),
        cpu_masks=_cpu_masks(os.path.join(root, "sys/devices/system/node")),
        machine=machine or os.uname().machine,
        cpu_ids=cpu_ids(cpuinfo),
        virtual=re.search(r"^flags\s*:.*\bhypervisor\b", cpuinfo, re.M) is not None,
    )


def cpu_numbers(text: str) -> list[int]:
    """The numbers of a kernel CPU list: ``0-2,8`` is 0, 1, 2 and 8."""
    numbers: list[int] = []
    for part in text.strip().split(","):
        first, _dash, last = part.partition("-")
        if first.isdigit():
            numbers.extend(range(int(first), int(last or first) + 1))
    return numbers


def mask_numbers(mask: str) -> list[int] | None:
    """The CPUs of a mask in words of 32 bits, ``000000ff,ffff0000``; None when it is no mask.

    The last word holds CPU 0 (Linux bitmap format; NCCL's src/include/cpuset.h reads it so).
    """
    if not _MASK.match(mask):
        return None
    return [
        place * 32 + bit
        for place, word in enumerate(reversed(mask.split(",")))
        for bit in range(32)
        if int(word, 16) >> bit & 1
    ]


def cpu_ids(cpuinfo: str) -> tuple[str, int, int] | None:
    """vendor_id, cpu family and model of the first CPU in /proc/cpuinfo; None beside x86."""
    found: dict[str, str] = {}
    for line in cpuinfo.splitlines():
        key, _colon, value = line.partition(":")
        found.setdefault(key.strip(), value.strip())
    family, model = found.get("cpu family", ""), found.get("model", "")
    if "vendor_id" not in found or not (family.isdigit() and model.isdigit()):
        return None
    return found["vendor_id"], int(family), int(model)


def _function(bus: str, address: str, root: str) -> Function:
    directory = os.path.join(bus, address)

    def attribute(name: str) -> str:
        return (read_text(os.path.join(directory, name)) or "").strip()

    def number(name: str) -> str:
        return attribute(name).lower().replace("0x", "", 1)

    node, width = attribute("numa_node"), attribute("max_link_width")
    link = os.path.join(directory, "driver")
    pci_class = number("class")
    return Function(
        address=address,
        pci_class=pci_class,
        vendor=number("vendor"),
        device=number("device"),
        subsystem_vendor=number("subsystem_vendor"),
        subsystem_device=number("subsystem_device"),
        link_speed=_speed(attribute("max_link_speed")),
        # A link that was never trained says 255.
        link_width=int(width) if width.isdigit() and int(width) < 255 else 0,
        numa_node=int(node) if node.isdigit() else None,
        path=tuple(pci.read_path(address, root)),
        driver=os.path.basename(os.readlink(link)) if os.path.islink(link) else None,
        rdma=pci_class.startswith(_CLASS_INFINIBAND)
        or os.path.isdir(os.path.join(directory, "infiniband")),
    )


def _speed(text: str) -> str:
    return text if text[:1].isdigit() else ""


def _cpu_masks(directory: str) -> dict[int, str]:
    """Only nodes that have CPUs: the memory node of a Grace GPU is none NCCL could use."""
    try:
        names = os.listdir(directory)
    except FileNotFoundError:
        return {}
    numbers = sorted(int(name[4:]) for name in names if name[:4] == "node" and name[4:].isdigit())
    masks = {
        number: (read_text(os.path.join(directory, f"node{number}", "cpumap")) or "").strip()
        for number in numbers
    }
    return {number: mask for number, mask in masks.items() if mask_numbers(mask)}
