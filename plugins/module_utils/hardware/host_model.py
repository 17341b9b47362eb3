# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The machine around the GPUs: plain, frozen values. Unknown is None, never 0."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class PciDevice:
    """One NVIDIA display device as the PCI bus shows it, driver or not.

    ``path`` names every PCI function from the root port down to the device itself. ``reason``
    is what the kernel log says about a device the NVIDIA driver refused.
    """

    address: str
    vendor: str
    device: str
    pci_class: str
    driver: str | None = None
    path: list[str] = field(default_factory=list)
    numa_node: int | None = None
    cpus: str | None = None
    reason: str | None = None


@dataclass(frozen=True)
class PcieLink:
    """PCI Express generation and lanes, in use now and possible. An idle GPU slows down."""

    generation: int | None = None
    generation_max: int | None = None
    width: int | None = None
    width_max: int | None = None


@dataclass(frozen=True)
class Acs:
    """Access Control Services of a bridge: what it can do and what is switched on.

    ``redirects`` says that traffic between devices below the bridge takes the way through the
    root complex. That is the kernel's own rule, pci_bridge_has_acs_redir in p2pdma.c.
    """

    supported: bool
    capability: list[str] = field(default_factory=list)
    control: list[str] = field(default_factory=list)
    redirects: bool = False


@dataclass(frozen=True)
class Bridge:
    """A PCI bridge above a GPU or network card. ``acs`` is None when it could not be read."""

    address: str
    vendor: str
    device: str
    acs: Acs | None = None


@dataclass(frozen=True)
class Iommu:
    """``groups`` has the GPUs, the network cards and the bridges above them."""

    enabled: bool
    groups: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Nic:
    """One network card. ``levels`` are the words to each GPU in index order."""

    name: str
    interfaces: list[str]
    rdma: list[str]
    uverbs: list[str]
    pci_address: str
    pci_path: list[str]
    numa_node: int | None
    levels: list[str | None] = field(default_factory=list)


@dataclass(frozen=True)
class DeviceNode:
    """A device node of the driver that is there, or that its devices would need."""

    path: str
    major: int | None
    minor: int | None
    exists: bool


@dataclass(frozen=True)
class HugePages:
    """Huge pages of one size in one NUMA node, counted in pages."""

    size_kib: int
    total: int | None
    free: int | None


@dataclass(frozen=True)
class NumaNode:
    """``cpus`` is a kernel CPU list. ``kind`` is ``memory`` for a node without CPUs.

    The memory of a GPU is such a node on Grace hosts, CXL memory is another.
    """

    node: int
    cpus: str
    memory_mib: int | None
    kind: str = "cpu"
    hugepages: list[HugePages] = field(default_factory=list)


@dataclass(frozen=True)
class FabricManager:
    """``status`` is running, stopped or absent. ``reason`` is set where that is a fault."""

    status: str
    version: str | None = None
    reason: str | None = None


@dataclass(frozen=True)
class PersistenceDaemon:
    """nvidia-persistenced: ``status`` is running, stopped or absent."""

    status: str
