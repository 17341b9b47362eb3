# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The inventory of one host: plain, frozen values, and how they become facts.

Unknown is None, never 0. ``host_model`` has the machine around the GPUs.
"""

from __future__ import annotations

from dataclasses import dataclass, field, is_dataclass
from typing import Any

from .host_model import (
    Bridge,
    DeviceNode,
    FabricManager,
    Iommu,
    Nic,
    NumaNode,
    PciDevice,
    PcieLink,
    PersistenceDaemon,
)

SCHEMA = 1


@dataclass(frozen=True)
class Driver:
    """The NVIDIA kernel driver and its user-space library.

    ``status`` is one of ``loaded``, ``not_loaded`` (a GPU or the library is here, the
    kernel module is not), ``absent`` (no trace of either), ``unresponsive`` (the driver was
    asked and did not answer) and ``mismatch`` (module and library differ in version).
    ``flavour`` is ``open`` or ``proprietary``; ``reason`` is text for a person. ``hidden``
    are the GPU nodes this process may not open, as in the session of a job scheduler.
    """

    status: str
    version: str | None = None
    flavour: str | None = None
    library_version: str | None = None
    cuda_version: str | None = None
    reason: str | None = None
    hidden: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Memory:
    """Frame buffer of a GPU in MiB. ``reserved`` needs NVML's second memory structure."""

    total: int
    used: int
    free: int
    reserved: int | None = None


@dataclass(frozen=True)
class Bar1:
    """The window through which other devices reach the frame buffer, in MiB."""

    total: int
    used: int


@dataclass(frozen=True)
class MigDevice:
    """One MIG device. ``start`` and ``size`` are memory slices, as nvidia-smi prints them."""

    index: int
    uuid: str | None
    profile: str | None
    gpu_instance: int | None
    compute_instance: int | None
    start: int | None
    size: int | None
    memory_mib: int | None


@dataclass(frozen=True)
class Mig:
    """Multi-instance GPU mode, now and after the next reset, and the devices there are.

    The mode outlives a reboot and the devices do not: mode on with no device is a state of
    its own. ``devices`` is None when NVML did not tell.
    """

    supported: bool
    current: bool
    pending: bool
    devices: list[MigDevice] | None = None


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
class Ecc:
    """Error correction, now and after the next reset; errors since the driver was loaded."""

    current: bool
    pending: bool
    corrected: int | None = None
    uncorrected: int | None = None


@dataclass(frozen=True)
class RemappedRows:
    """Rows of memory that were replaced. ``pending`` waits for a reset, ``failed`` is a defect."""

    corrected: int
    uncorrected: int
    pending: bool
    failed: bool


@dataclass(frozen=True)
class Power:
    """Power limits in watts: in force, by default, and the range that may be set."""

    limit_w: float | None
    default_w: float | None
    min_w: float | None
    max_w: float | None


@dataclass(frozen=True)
class Clocks:
    """Clocks in MHz, now and at most."""

    sm_mhz: int | None
    memory_mhz: int | None
    sm_max_mhz: int | None
    memory_max_mhz: int | None


@dataclass(frozen=True)
class Fabric:
    """Registration of the GPU with its NVLink fabric.

    ``state`` is not_supported, not_started, in_progress, completed or unknown; ``status`` is
    ``Success`` or NVML's words for what failed, None before the registration has ended.
    """

    state: str
    status: str | None
    cluster_uuid: str | None
    clique_id: int | None


@dataclass(frozen=True)
class Xid:
    """One error report of the driver in the kernel log, ``seconds`` after boot."""

    xid: int
    seconds: float
    text: str


@dataclass(frozen=True)
class Holder:
    """A process that has the GPU open, or a container that may open it.

    ``kind`` is process, display, persistence, dcgm, container or granted (a container that
    was given the GPU and has it not open now; ``pid`` is one of its processes). ``container``
    is its id. ``used_mib`` is what NVML says of the process, None without NVML.
    """

    pid: int
    name: str
    kind: str
    container: str | None = None
    used_mib: int | None = None


@dataclass(frozen=True)
class Device:
    """One whole GPU. What could not be read is None; why is in ``errors``, by field.

    ``error`` is set for a GPU that is sick: what it answered instead of a value.
    ``memory_node`` is the NUMA node that the GPU's own memory forms, on Grace hosts.
    """

    index: int
    uuid: str | None = None
    minor: int | None = None
    name: str | None = None
    architecture: str | None = None
    pci_address: str | None = None
    pci_path: list[str] = field(default_factory=list)
    numa_node: int | None = None
    cpus: str | None = None
    memory_node: int | None = None
    memory_mib: Memory | None = None
    bar1_mib: Bar1 | None = None
    compute_mode: str | None = None
    persistence: bool | None = None
    display: bool | None = None
    gsp: bool | None = None
    ecc: Ecc | None = None
    remapped_rows: RemappedRows | None = None
    xids: list[Xid] | None = None
    power: Power | None = None
    clocks: Clocks | None = None
    pcie: PcieLink | None = None
    mig: Mig | None = None
    nvlink: NvLink | None = None
    fabric: Fabric | None = None
    holders: list[Holder] | None = None
    error: str | None = None
    errors: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Topology:
    """The PCIe level of each pair of GPUs from two sources, and what follows from it.

    ``nvml`` is None without NVML, a word None where its source does not say. ``affinity`` is
    0 (far) to 1 (near) for each pair; ``affinity_basis`` is derived (computed) or measured, and
    then ``affinity_tool`` says by what.
    """

    sysfs: list[list[str | None]]
    nvml: list[list[str | None]] | None = None
    disagreements: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    affinity: list[list[float | None]] = field(default_factory=list)
    affinity_basis: str = "derived"
    affinity_tool: str | None = None


@dataclass(frozen=True)
class Inventory:
    """Everything ``gpu_facts`` says about a host. ``source`` is nvml, procfs or none."""

    driver: Driver
    source: str
    devices: list[Device]
    links: list[list[str | None]]
    topology: Topology
    p2p: list[list[str | None]] | None
    pci: list[PciDevice]
    bridges: list[Bridge]
    iommu: Iommu
    nics: list[Nic]
    nodes: list[DeviceNode]
    numa_nodes: list[NumaNode]
    modules: dict[str, bool]
    nvswitches: int | None
    fabric_manager: FabricManager
    persistence_daemon: PersistenceDaemon
    secure_boot: str


def as_facts(inventory: Inventory) -> dict[str, Any]:
    """``ansible_facts['gpu_host']['gpu']`` of an inventory: JSON types only."""
    facts: dict[str, Any] = _plain(inventory)
    facts["pci"] = [
        {
            "address": one.address,
            "vendor": one.vendor,
            "device": one.device,
            "class": one.pci_class,
            "driver": one.driver,
            "reason": one.reason,
        }
        for one in inventory.pci
    ]
    return facts


def _plain(value: Any) -> Any:
    """Dictionaries for dataclasses all the way down, without the copies of dataclasses.asdict."""
    if is_dataclass(value):
        return {key: _plain(field_value) for key, field_value in vars(value).items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return value
