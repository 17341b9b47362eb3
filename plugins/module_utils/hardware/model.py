# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The inventory of one host: plain, frozen values, and how they become facts."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

# Raised when a key of ansible_facts['gpu_host'] changes its meaning.
SCHEMA = 1


@dataclass(frozen=True)
class Driver:
    """The NVIDIA kernel driver and its user-space library.

    ``status`` is one of ``loaded``, ``not_loaded`` (a GPU or the library is here, the
    kernel module is not), ``absent`` (no trace of either), ``unresponsive`` (NVML was
    asked and did not answer) and ``mismatch`` (module and library differ in version).
    ``flavour`` is ``open`` or ``proprietary``; ``reason`` is text for a person.
    """

    status: str
    version: str | None = None
    flavour: str | None = None
    library_version: str | None = None
    cuda_version: str | None = None
    reason: str | None = None


@dataclass(frozen=True)
class PciDevice:
    """One NVIDIA display device as the PCI bus shows it, driver or not.

    ``path`` names every PCI function from the root port down to the device itself.
    """

    address: str
    vendor: str
    device: str
    pci_class: str
    driver: str | None = None
    path: list[str] = field(default_factory=list)
    numa_node: int | None = None
    cpus: str | None = None


@dataclass(frozen=True)
class Memory:
    """Frame buffer of a GPU in MiB. ``reserved`` needs NVML's second memory structure."""

    total: int
    used: int
    free: int
    reserved: int | None = None


@dataclass(frozen=True)
class Mig:
    """Multi-instance GPU mode, now and after the next reset."""

    supported: bool
    current: bool
    pending: bool


@dataclass(frozen=True)
class NvLinkPeer:
    """One NVLink: ``type`` is gpu, switch, cpu or unknown; ``state`` is up or down."""

    link: int
    type: str
    pci_address: str | None
    state: str


@dataclass(frozen=True)
class NvLink:
    """``count`` links are up; ``version`` is the NVLink generation (3 on A100)."""

    count: int
    version: int | None
    peers: list[NvLinkPeer] = field(default_factory=list)


@dataclass(frozen=True)
class Device:
    """One whole GPU. What could not be read is None; why is in ``error``."""

    index: int
    uuid: str | None = None
    minor: int | None = None
    name: str | None = None
    architecture: str | None = None
    pci_address: str | None = None
    pci_path: list[str] = field(default_factory=list)
    numa_node: int | None = None
    cpus: str | None = None
    memory_mib: Memory | None = None
    mig: Mig | None = None
    nvlink: NvLink | None = None
    error: str | None = None


@dataclass(frozen=True)
class DeviceNode:
    """A device node of the driver that is there, or that its devices would need."""

    path: str
    major: int | None
    minor: int | None
    exists: bool


@dataclass(frozen=True)
class NumaNode:
    """``cpus`` is a kernel CPU list, empty for memory without CPUs (Grace, CXL)."""

    node: int
    cpus: str
    memory_mib: int


@dataclass(frozen=True)
class Inventory:
    """Everything ``gpu_facts`` says about a host. ``source`` is nvml, procfs or none."""

    driver: Driver
    source: str
    devices: list[Device]
    links: list[list[str]]
    pci: list[PciDevice]
    nodes: list[DeviceNode]
    numa_nodes: list[NumaNode]
    modules: dict[str, bool]


def as_facts(inventory: Inventory) -> dict[str, Any]:
    """``ansible_facts['gpu_host']['gpu']`` of an inventory: JSON types only."""
    facts = asdict(inventory)
    facts["pci"] = [
        {
            "address": one.address,
            "vendor": one.vendor,
            "device": one.device,
            "class": one.pci_class,
            "driver": one.driver,
        }
        for one in inventory.pci
    ]
    return facts
