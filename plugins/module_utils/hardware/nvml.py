# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""NVML through pynvml: the only file of the core that knows that library.

Call :func:`read_all` in a process of its own (``nvml_reader``): a call into a sick
driver may never return, and an open NVML handle blocks MIG changes and GPU resets.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any, Callable

from . import pci

# The pynvml that travels in the installed agent serves hosts without a package of it.
AGENT_GENERATION = "/usr/local/lib/steadygpu/current"

DRIVER_NOT_LOADED = 9
TIMEOUT = 10
LIBRARY_NOT_FOUND = 12
LIBRARY_VERSION_MISMATCH = 18

_INVALID_ARGUMENT = 2
_NOT_SUPPORTED = 3
_NO_PERMISSION = 4
_FUNCTION_NOT_FOUND = 13
# These answers say "this GPU, driver or user has no such thing", not "the GPU is sick".
_NO_SUCH_THING = (_INVALID_ARGUMENT, _NOT_SUPPORTED, _NO_PERMISSION, _FUNCTION_NOT_FOUND)

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
# nvml.h, nvmlNvlinkVersion_enum: NVML answers with a code, people speak of generations.
_NVLINK_GENERATIONS = {1: 1, 2: 2, 3: 2, 4: 3, 5: 3, 6: 4, 7: 5, 8: 6}
# nvml.h, nvmlIntNvLinkDeviceType_enum. IBM's NPU is how a POWER CPU shows.
_PEER_TYPES = {0: "gpu", 1: "cpu", 2: "switch"}


def load() -> Any | None:
    """The pynvml module of this interpreter or of the installed agent, None without one."""
    try:
        return importlib.import_module("pynvml")
    except ImportError:
        pass
    sys.path.append(AGENT_GENERATION)
    try:
        return importlib.import_module("pynvml")
    except ImportError:
        return None
    finally:
        sys.path.remove(AGENT_GENERATION)


def read_all(nvml: Any) -> dict[str, Any]:
    """Ask NVML everything the inventory needs and close it again.

    Returns JSON types: ``driver_version``, ``library_version``, ``cuda_version``,
    ``devices`` (keys as in ``model.Device``) and ``error``, which is None or
    ``{code, text}`` of the call that made NVML useless. One sick device is told in that
    device's ``error``; the others are read all the same.
    """
    report: dict[str, Any] = {
        "driver_version": None,
        "library_version": None,
        "cuda_version": None,
        "devices": [],
        "error": None,
    }
    try:
        nvml.nvmlInit()
        try:
            report["driver_version"] = nvml.nvmlSystemGetDriverVersion()
            report["cuda_version"] = _cuda_version(
                _optional(nvml, nvml.nvmlSystemGetCudaDriverVersion_v2)
            )
            report["devices"] = [
                _read_device(nvml, index) for index in range(nvml.nvmlDeviceGetCount())
            ]
        finally:
            nvml.nvmlShutdown()
    except nvml.NVMLError as error:
        report["error"] = {"code": error.value, "text": str(error)}
    # pynvml loads the library in nvmlInit; its version can be asked even when that failed.
    report["library_version"] = _library_version(_optional(nvml, nvml.nvmlSystemGetNVMLVersion))
    return report


def _optional(nvml: Any, call: Callable[..., Any], *arguments: Any) -> Any:
    """The answer of a call, None when NVML gives none, whatever its reason."""
    try:
        return call(*arguments)
    except nvml.NVMLError:
        return None


def _library_version(text: str | None) -> str | None:
    """``12.550.163.01`` is NVML API 12 of driver release 550.163.01."""
    return text.partition(".")[2] if text else None


def _cuda_version(number: int | None) -> str | None:
    """12040 is CUDA 12.4 (nvml.h, NVML_CUDA_DRIVER_VERSION_MAJOR)."""
    return f"{number // 1000}.{number % 1000 // 10}" if number else None


def _read_device(nvml: Any, index: int) -> dict[str, Any]:
    device: dict[str, Any] = {"index": index, "error": None}
    try:
        handle = nvml.nvmlDeviceGetHandleByIndex(index)
    except nvml.NVMLError as error:
        device["error"] = str(error)
        return device
    readers: dict[str, Callable[[Any, Any], Any]] = {
        "pci_address": _pci_address,
        "uuid": lambda nvml, handle: nvml.nvmlDeviceGetUUID(handle),
        "minor": lambda nvml, handle: nvml.nvmlDeviceGetMinorNumber(handle),
        "name": lambda nvml, handle: nvml.nvmlDeviceGetName(handle),
        "architecture": _architecture,
        "memory_mib": _memory,
        "mig": _mig,
        "nvlink": _nvlink,
    }
    for key, reader in readers.items():
        try:
            device[key] = reader(nvml, handle)
        except nvml.NVMLError as error:
            device[key] = None
            if error.value not in _NO_SUCH_THING and device["error"] is None:
                device["error"] = str(error)
    return device


def _pci_address(nvml: Any, handle: Any) -> str:
    bus_id = nvml.nvmlDeviceGetPciInfo(handle).busId
    return pci.normalise(bus_id.decode() if isinstance(bus_id, bytes) else bus_id)


def _architecture(nvml: Any, handle: Any) -> str | None:
    return _ARCHITECTURES.get(nvml.nvmlDeviceGetArchitecture(handle))


def _memory(nvml: Any, handle: Any) -> dict[str, int | None]:
    """Only the second memory structure (R510) tells what the driver keeps for itself."""
    try:
        memory = nvml.nvmlDeviceGetMemoryInfo(handle, version=nvml.nvmlMemory_v2)
        reserved: int | None = memory.reserved // _MIB
    except nvml.NVMLError as error:
        if error.value not in _NO_SUCH_THING:
            raise
        memory, reserved = nvml.nvmlDeviceGetMemoryInfo(handle), None
    return {
        "total": memory.total // _MIB,
        "used": memory.used // _MIB,
        "free": memory.free // _MIB,
        "reserved": reserved,
    }


def _mig(nvml: Any, handle: Any) -> dict[str, bool]:
    try:
        current, pending = nvml.nvmlDeviceGetMigMode(handle)
    except nvml.NVMLError as error:
        if error.value != _NOT_SUPPORTED:
            raise
        return {"supported": False, "current": False, "pending": False}
    return {"supported": True, "current": bool(current), "pending": bool(pending)}


def _nvlink(nvml: Any, handle: Any) -> dict[str, Any] | None:
    """All links of a GPU; None for a GPU without NVLink.

    The header's maximum grows with each release and an older library refuses the link
    numbers it does not know, so a refused number is skipped, not an error.
    """
    peers: list[dict[str, Any]] = []
    generations: list[int] = []
    for link in range(nvml.NVML_NVLINK_MAX_LINKS):
        try:
            state = nvml.nvmlDeviceGetNvLinkState(handle, link)
        except nvml.NVMLError as error:
            if error.value not in _NO_SUCH_THING:
                raise
            continue
        code = _optional(nvml, nvml.nvmlDeviceGetNvLinkVersion, handle, link)
        if code in _NVLINK_GENERATIONS:
            generations.append(_NVLINK_GENERATIONS[code])
        peers.append(_peer(nvml, handle, link, up=state == nvml.NVML_FEATURE_ENABLED))
    if not peers:
        return None
    return {
        "count": sum(1 for peer in peers if peer["state"] == "up"),
        "version": max(generations) if generations else None,
        "peers": peers,
    }


def _peer(nvml: Any, handle: Any, link: int, up: bool) -> dict[str, Any]:
    """The far end of one link. A link that is down has no far end NVML could name."""
    kind = _optional(nvml, nvml.nvmlDeviceGetNvLinkRemoteDeviceType, handle, link)
    remote = _optional(nvml, nvml.nvmlDeviceGetNvLinkRemotePciInfo, handle, link)
    bus_id = remote.busId if remote is not None else None
    if isinstance(bus_id, bytes):
        bus_id = bus_id.decode()
    return {
        "link": link,
        "type": _PEER_TYPES.get(kind, "unknown"),
        "pci_address": pci.normalise(bus_id) if bus_id else None,
        "state": "up" if up else "down",
    }
