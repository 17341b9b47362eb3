# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What NVML says of one GPU, field by field. A field that fails spoils no other."""

from __future__ import annotations

import ctypes
from typing import Any, Callable

from . import nvml_links, nvml_mig, pci
from .nvml_library import (
    NO_PERMISSION,
    NO_SUCH_THING,
    NOT_SUPPORTED,
    SICK,
    Library,
    RefusedError,
    text_of,
)

_MIB = 1024 * 1024

# nvml.h, NVML_DEVICE_ARCH_*
_ARCHITECTURES = {
    2: "kepler",
    3: "maxwell",
    4: "pascal",
    5: "volta",
    6: "turing",
    7: "ampere",
    8: "ada",
    9: "hopper",
    10: "blackwell",
    13: "rubin",
}
# nvml.h, nvmlComputeMode_t
_COMPUTE_MODES = {0: "default", 1: "exclusive_thread", 2: "prohibited", 3: "exclusive_process"}
# nvml.h, NVML_GPU_FABRIC_STATE_*
_FABRIC_STATES = {0: "not_supported", 1: "not_started", 2: "in_progress", 3: "completed"}
_FABRIC_COMPLETED = 3
# nvml.h, nvmlMemoryErrorType_t, and the counter that starts with the driver.
_CORRECTED, _UNCORRECTED, _VOLATILE = 0, 1, 0
# nvml.h, nvmlClockType_t
_SM, _MEMORY = 1, 2

Reader = Callable[[Library, Any], Any]


def read(library: Library, index: int, handle: Any) -> dict[str, Any]:
    """All fields of the device ``handle``, or of the RefusedError that came instead of one.

    ``errors`` has a reason for each field that should have a value and has none; ``error``
    the first answer that says the GPU is sick. What a GPU simply does not have is None.
    """
    device: dict[str, Any] = {"index": index, "error": None, "errors": {}}
    if isinstance(handle, RefusedError):
        device["error"] = handle.text
        device["errors"]["device"] = handle.reason
        return device
    for readers, grave in ((_IDENTITY, True), (_DETAILS, False)):
        for key, reader in readers.items():
            try:
                device[key] = reader(library, handle)
            except RefusedError as refused:
                device[key] = None
                if refused.code in NO_SUCH_THING:
                    continue
                device["errors"][key] = refused.reason
                sick = refused.code in SICK or (grave and refused.code != NO_PERMISSION)
                if sick and device["error"] is None:
                    device["error"] = refused.text
            except (AttributeError, TypeError, ValueError) as error:
                # Releases of pynvml differ in structures and returned values.
                device[key] = None
                device["errors"][key] = f"this pynvml answers in an unknown form: {error}"
    return device


def _plain(name: str) -> Reader:
    """A reader for a call whose answer is the value."""
    return lambda library, handle: library.ask(name, handle)


def _flag(name: str) -> Reader:
    """A reader for a call that answers with NVML_FEATURE_ENABLED or not."""
    return lambda library, handle: bool(library.ask(name, handle))


def _pci_address(library: Library, handle: Any) -> str:
    bus_id = library.ask("nvmlDeviceGetPciInfo", handle).busId
    return pci.normalise(text_of(bus_id))


def _architecture(library: Library, handle: Any) -> str | None:
    return _ARCHITECTURES.get(library.ask("nvmlDeviceGetArchitecture", handle))


def _memory(library: Library, handle: Any) -> dict[str, int | None]:
    """Only the second memory structure (R510) tells what the driver keeps for itself."""
    version = getattr(library.raw, "nvmlMemory_v2", None)
    memory, reserved = None, None
    if version is not None:
        memory = library.ask_or_none("nvmlDeviceGetMemoryInfo", handle, version=version)
    if memory is not None:
        reserved = memory.reserved // _MIB
    else:
        memory = library.ask("nvmlDeviceGetMemoryInfo", handle)
    return {
        "total": memory.total // _MIB,
        "used": memory.used // _MIB,
        "free": memory.free // _MIB,
        "reserved": reserved,
    }


def _mig(library: Library, handle: Any) -> dict[str, bool]:
    try:
        current, pending = library.ask("nvmlDeviceGetMigMode", handle)
    except RefusedError as refused:
        if refused.code != NOT_SUPPORTED:
            raise
        return {"supported": False, "current": False, "pending": False}
    return {"supported": True, "current": bool(current), "pending": bool(pending)}


def _bar1(library: Library, handle: Any) -> dict[str, int]:
    bar1 = library.ask("nvmlDeviceGetBAR1MemoryInfo", handle)
    return {"total": bar1.bar1Total // _MIB, "used": bar1.bar1Used // _MIB}


def _compute_mode(library: Library, handle: Any) -> str | None:
    return _COMPUTE_MODES.get(library.ask("nvmlDeviceGetComputeMode", handle))


def _gsp(library: Library, handle: Any) -> bool:
    enabled, _default = library.ask("nvmlDeviceGetGspFirmwareMode", handle)
    return bool(enabled)


def _memory_node(library: Library, handle: Any) -> int | None:
    """The NUMA node of the GPU's own memory. A GPU on PCIe has none: Not Supported."""
    node = int(library.ask("nvmlDeviceGetNumaNodeId", handle))
    return node if node >= 0 else None


def _ecc(library: Library, handle: Any) -> dict[str, Any]:
    current, pending = library.ask("nvmlDeviceGetEccMode", handle)
    counts: list[int | None] = [None, None]
    if current:
        counts = [
            library.ask_or_none("nvmlDeviceGetTotalEccErrors", handle, kind, _VOLATILE)
            for kind in (_CORRECTED, _UNCORRECTED)
        ]
    return {
        "current": bool(current),
        "pending": bool(pending),
        "corrected": counts[0],
        "uncorrected": counts[1],
    }


def _remapped_rows(library: Library, handle: Any) -> dict[str, Any]:
    corrected, uncorrected, pending, failed = library.ask("nvmlDeviceGetRemappedRows", handle)
    return {
        "corrected": corrected,
        "uncorrected": uncorrected,
        "pending": bool(pending),
        "failed": bool(failed),
    }


def _power(library: Library, handle: Any) -> dict[str, float | None] | None:
    """NVML counts milliwatts."""
    limit = library.ask_or_none("nvmlDeviceGetPowerManagementLimit", handle)
    default = library.ask_or_none("nvmlDeviceGetPowerManagementDefaultLimit", handle)
    bounds = library.ask_or_none("nvmlDeviceGetPowerManagementLimitConstraints", handle)
    milliwatts = [limit, default, *(bounds or (None, None))]
    if not any(milliwatts):
        return None
    watts = [round(value / 1000, 1) if value is not None else None for value in milliwatts]
    return dict(zip(("limit_w", "default_w", "min_w", "max_w"), watts))


def _clocks(library: Library, handle: Any) -> dict[str, int | None] | None:
    calls = (
        ("sm_mhz", "nvmlDeviceGetClockInfo", _SM),
        ("memory_mhz", "nvmlDeviceGetClockInfo", _MEMORY),
        ("sm_max_mhz", "nvmlDeviceGetMaxClockInfo", _SM),
        ("memory_max_mhz", "nvmlDeviceGetMaxClockInfo", _MEMORY),
    )
    clocks = {key: library.ask_or_none(name, handle, kind) for key, name, kind in calls}
    return clocks if any(value is not None for value in clocks.values()) else None


def _pcie(library: Library, handle: Any) -> dict[str, int | None] | None:
    """A link that is down has generation and width 0: unknown."""
    calls = {
        "generation": "nvmlDeviceGetCurrPcieLinkGeneration",
        "generation_max": "nvmlDeviceGetMaxPcieLinkGeneration",
        "width": "nvmlDeviceGetCurrPcieLinkWidth",
        "width_max": "nvmlDeviceGetMaxPcieLinkWidth",
    }
    link = {key: library.ask_or_none(name, handle) or None for key, name in calls.items()}
    return link if any(link.values()) else None


def _fabric(library: Library, handle: Any) -> dict[str, Any] | None:
    """None for a library without the call (before R525)."""
    structure = getattr(library.raw, "c_nvmlGpuFabricInfoV_t", None)
    if structure is None:
        return None
    info = structure()
    try:
        library.ask("nvmlDeviceGetGpuFabricInfoV", handle, ctypes.byref(info))
    except RefusedError as refused:
        if refused.code != NOT_SUPPORTED:
            raise
        return {"state": "not_supported", "status": None, "cluster_uuid": None, "clique_id": None}
    completed = info.state == _FABRIC_COMPLETED
    cluster = bytes(info.clusterUuid)
    return {
        "state": _FABRIC_STATES.get(info.state, "unknown"),
        "status": _words(library, info.status) if completed else None,
        "cluster_uuid": _uuid(cluster) if completed and any(cluster) else None,
        "clique_id": info.cliqueId if completed else None,
    }


def _words(library: Library, code: int) -> str:
    """NVML's words for an nvmlReturn_t: ``Success`` for 0."""
    return str(library.ask_lightly("nvmlErrorString", code) or f"error {code}")


def _uuid(raw: bytes) -> str:
    text = raw.hex()
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


def _processes(library: Library, handle: Any) -> list[dict[str, int | None]]:
    """Each process with memory on the GPU, from the compute and the graphics list."""
    used: dict[int, int | None] = {}
    for kind in ("Compute", "Graphics"):
        name = f"nvmlDeviceGet{kind}RunningProcesses"
        listed = library.ask_or_none(f"{name}_v3", handle)
        if listed is None:  # before R510
            listed = library.ask_or_none(f"{name}_v2", handle) or []
        for process in listed:
            # A process on both lists is told with the same memory twice.
            used[process.pid] = max(process.usedGpuMemory or 0, used.get(process.pid) or 0) or None
    return [{"pid": pid, "used_mib": size // _MIB if size else None} for pid, size in used.items()]


# What makes a GPU usable at all: any failure here is told as the GPU's own.
_IDENTITY: dict[str, Reader] = {
    "pci_address": _pci_address,
    "uuid": _plain("nvmlDeviceGetUUID"),
    "minor": _plain("nvmlDeviceGetMinorNumber"),
    "name": _plain("nvmlDeviceGetName"),
    "architecture": _architecture,
    "memory_mib": _memory,
    "mig": _mig,
    "nvlink": nvml_links.read,
}
_DETAILS: dict[str, Reader] = {
    "mig_devices": nvml_mig.read_devices,
    "bar1_mib": _bar1,
    "compute_mode": _compute_mode,
    "persistence": _flag("nvmlDeviceGetPersistenceMode"),
    # Not DisplayMode: a headless A100 says Enabled there, and later drivers Deprecated.
    "display": _flag("nvmlDeviceGetDisplayActive"),
    "gsp": _gsp,
    "memory_node": _memory_node,
    "ecc": _ecc,
    "remapped_rows": _remapped_rows,
    "power": _power,
    "clocks": _clocks,
    "pcie": _pcie,
    "fabric": _fabric,
    "processes": _processes,
}
