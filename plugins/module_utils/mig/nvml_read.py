# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The MIG layout of every GPU, read through NVML: runs inside the NVML child only.

GPU instances are listed to root alone. Profiles are found by trying every profile number:
a number that the GPU or the driver does not know is refused and skipped, so that profiles
newer than this file are seen as well.
"""

from __future__ import annotations

import contextlib
import ctypes
import math
from collections.abc import Iterator
from typing import Any

from ..hardware import pci
from .layout_json import layout_to_json
from .model import ComputeInstance, Geometry, GpuInstance, GpuLayout, Placement, Profile

# nvml.h counts 18 GPU instance profiles and 9 compute instance profiles in release 580.
_GPU_PROFILE_NUMBERS = range(32)
_COMPUTE_PROFILE_NUMBERS = range(16)

_INVALID_ARGUMENT = 2
_NOT_SUPPORTED = 3
_NOT_FOUND = 6
_FUNCTION_NOT_FOUND = 13
_ARGUMENT_VERSION_MISMATCH = 25
# Errors that say nothing of one GPU: UNINITIALIZED, NO_PERMISSION, DRIVER_NOT_LOADED and
# LIB_RM_VERSION_MISMATCH.
_OF_ALL = (1, 4, 9, 18)
_NO_SUCH_THING = (_INVALID_ARGUMENT, _NOT_SUPPORTED, _NOT_FOUND)

_NO_INSTANCE = 0xFFFFFFFF  # nvml.h, nvmlProcessInfo_t
_AMPERE = 7  # nvml.h, NVML_DEVICE_ARCH_AMPERE

# nvml.h, NVML_GPU_INSTANCE_PROFILE_*: what the name of a profile ends with, for drivers that
# do not tell the name (before R530).
_SUFFIXES = {0x7: "+me", 0x8: "+me", 0xA: "+gfx", 0xB: "+gfx", 0xC: "+gfx", 0x11: "+gfx"}
_SUFFIXES.update({0xD: "-me", 0xE: "-me", 0xF: "+me.all", 0x10: "+me.all"})


def read_gpus(nvml: Any) -> dict[str, Any]:
    """``driver_version``, ``gpus`` as ``{layout, minor, ampere, processes}``, and ``sick``.

    ``processes`` are ``{pid, gpu_instance}`` as NVML lists them. ``sick`` are ``{index, code,
    text}`` of GPUs that do not answer, such as one that fell off the bus: they are no reason to
    leave the others alone. Raises NVMLError, also when no GPU answers.
    """
    gpus, sick = [], []
    for index in range(nvml.nvmlDeviceGetCount()):
        try:
            gpus.append(_read_gpu(nvml, index))
        except nvml.NVMLError as error:
            if error.value in _OF_ALL:
                raise
            sick.append({"index": index, "code": error.value, "text": str(error)})
    if sick and not gpus:
        raise nvml.NVMLError(sick[0]["code"])
    return {"driver_version": nvml.nvmlSystemGetDriverVersion(), "gpus": gpus, "sick": sick}


def _read_gpu(nvml: Any, index: int) -> dict[str, Any]:
    handle = nvml.nvmlDeviceGetHandleByIndex(index)
    return {
        "layout": layout_to_json(read_layout(nvml, handle, index)),
        "minor": nvml.nvmlDeviceGetMinorNumber(handle),
        "ampere": nvml.nvmlDeviceGetArchitecture(handle) == _AMPERE,
        "processes": processes(nvml, handle),
    }


def read_layout(nvml: Any, handle: Any, index: int) -> GpuLayout:
    """One GPU. Raises NVMLError."""
    info = nvml.nvmlDeviceGetPciInfo(handle)
    try:
        current, pending = nvml.nvmlDeviceGetMigMode(handle)
        supported = True
    except nvml.NVMLError as error:
        if error.value != _NOT_SUPPORTED:
            raise
        supported, current, pending = False, 0, 0
    profiles = list(gpu_profiles(nvml, handle)) if current else []
    return GpuLayout(
        index=index,
        uuid=_text(nvml.nvmlDeviceGetUUID(handle)),
        pci_address=pci.normalise(_text(info.busId)),
        name=_text(nvml.nvmlDeviceGetName(handle)),
        device_id=f"0x{info.pciDeviceId:08X}",
        subsystem_id=f"0x{info.pciSubSystemId:08X}",
        supported=supported,
        current=bool(current),
        pending=bool(pending),
        instances=_instances(nvml, handle, profiles) if current else (),
        geometry=_geometry(nvml, handle, profiles) if profiles else None,
    )


def gpu_profiles(nvml: Any, handle: Any) -> Iterator[tuple[str, Any]]:
    """(name, profile info) of every GPU instance profile this GPU offers. MIG is on."""
    for number in _GPU_PROFILE_NUMBERS:
        try:
            info = nvml.nvmlDeviceGetGpuInstanceProfileInfo(handle, number, version=2)
            name = _text(info.name)
        except nvml.NVMLError as error:
            if error.value in _NO_SUCH_THING:
                continue
            if error.value not in (_FUNCTION_NOT_FOUND, _ARGUMENT_VERSION_MISMATCH):
                raise
            try:
                info = nvml.nvmlDeviceGetGpuInstanceProfileInfo(handle, number, version=1)
            except nvml.NVMLError as older:
                if older.value in _NO_SUCH_THING:
                    continue
                raise
            name = ""
        yield _profile_name(nvml, handle, number, info, name), info


def compute_profiles(nvml: Any, instance: Any) -> Iterator[Any]:
    """The profile info of every compute instance profile inside one GPU instance."""
    for number in _COMPUTE_PROFILE_NUMBERS:
        try:
            yield nvml.nvmlGpuInstanceGetComputeInstanceProfileInfo(
                instance, number, nvml.NVML_COMPUTE_INSTANCE_ENGINE_PROFILE_SHARED, version=1
            )
        except nvml.NVMLError as error:
            if error.value not in _NO_SUCH_THING:
                raise


def _profile_name(nvml: Any, handle: Any, number: int, info: Any, told: str) -> str:
    """``1g.5gb+me``: what the driver calls it without ``MIG``, or made of its numbers.

    The number of gigabytes in a name is the share of the whole memory in eighths, rounded up,
    of the memory in whole GiB: an A100 with 40 GiB has 4.75 GiB in its ``1g.5gb``.
    """
    if told:
        return told.replace("MIG ", "", 1).strip()
    total = nvml.nvmlDeviceGetMemoryInfo(handle).total
    eighths = math.ceil(info.memorySizeMB * (1 << 20) / total * 8)
    size = round(eighths / 8 * math.ceil(total / (1 << 30)))
    return f"{info.sliceCount}g.{size}gb{_SUFFIXES.get(number, '')}"


def _placements(nvml: Any, handle: Any, profile_id: int) -> tuple[Placement, ...]:
    count = ctypes.c_uint(0)
    try:
        nvml.nvmlDeviceGetGpuInstancePossiblePlacements(
            handle, profile_id, None, ctypes.byref(count)
        )
        found = (nvml.c_nvmlGpuInstancePlacement_t * count.value)()
        nvml.nvmlDeviceGetGpuInstancePossiblePlacements(
            handle, profile_id, found, ctypes.byref(count)
        )
    except nvml.NVMLError as error:
        if error.value not in _NO_SUCH_THING:
            raise
        return ()
    return tuple(sorted(Placement(one.start, one.size) for one in found[: count.value]))


def _geometry(nvml: Any, handle: Any, profiles: list[tuple[str, Any]]) -> Geometry:
    offered = tuple(
        Profile(
            name=name,
            id=info.id,
            slices=info.sliceCount,
            placements=_placements(nvml, handle, info.id),
            most=info.instanceCount,
            media=(info.decoderCount, info.ofaCount),
        )
        for name, info in profiles
    )
    ends = [place.end for profile in offered for place in profile.placements]
    return Geometry(
        model=_text(nvml.nvmlDeviceGetName(handle)),
        memory_slices=max(ends, default=0),
        compute_slices=max(profile.slices for profile in offered),
        profiles=offered,
    )


def _instances(nvml: Any, handle: Any, profiles: list[tuple[str, Any]]) -> tuple[GpuInstance, ...]:
    uuids = _device_uuids(nvml, handle)
    found = []
    for name, profile in profiles:
        for instance in gpu_instances(nvml, handle, profile):
            info = nvml.nvmlGpuInstanceGetInfo(instance)
            found.append(
                GpuInstance(
                    profile=name,
                    placement=Placement(info.placement.start, info.placement.size),
                    compute=_compute(nvml, instance, info.id, uuids),
                    id=info.id,
                )
            )
    return tuple(sorted(found, key=lambda one: (one.placement, one.profile)))


def gpu_instances(nvml: Any, handle: Any, profile: Any) -> list[Any]:
    """The handles of the GPU instances of one profile."""
    count = ctypes.c_uint(profile.instanceCount)
    array = (nvml.c_nvmlGpuInstance_t * max(1, profile.instanceCount))()
    nvml.nvmlDeviceGetGpuInstances(handle, profile.id, array, ctypes.byref(count))
    return list(array[: count.value])


def compute_instances(nvml: Any, instance: Any, profile: Any) -> list[Any]:
    """The handles of the compute instances of one profile in a GPU instance."""
    count = ctypes.c_uint(profile.instanceCount)
    array = (nvml.c_nvmlComputeInstance_t * max(1, profile.instanceCount))()
    nvml.nvmlGpuInstanceGetComputeInstances(instance, profile.id, array, ctypes.byref(count))
    return list(array[: count.value])


def _compute(
    nvml: Any, instance: Any, gpu_instance: int, uuids: dict[tuple[int, int], str]
) -> tuple[ComputeInstance, ...]:
    found = {}
    for profile in compute_profiles(nvml, instance):
        for one in compute_instances(nvml, instance, profile):
            number = nvml.nvmlComputeInstanceGetInfo_v2(one).id
            found[number] = ComputeInstance(
                profile.sliceCount, number, uuids.get((gpu_instance, number))
            )
    return tuple(found[number] for number in sorted(found))


def _device_uuids(nvml: Any, handle: Any) -> dict[tuple[int, int], str]:
    """(GPU instance, compute instance) -> ``MIG-…``. Indices may have gaps."""
    uuids = {}
    for index in range(nvml.nvmlDeviceGetMaxMigDeviceCount(handle)):
        try:
            device = nvml.nvmlDeviceGetMigDeviceHandleByIndex(handle, index)
        except nvml.NVMLError as error:
            if error.value not in _NO_SUCH_THING:
                raise
            continue
        key = nvml.nvmlDeviceGetGpuInstanceId(device), nvml.nvmlDeviceGetComputeInstanceId(device)
        uuids[key] = _text(nvml.nvmlDeviceGetUUID(device))
    return uuids


def processes(nvml: Any, handle: Any) -> list[dict[str, int | None]]:
    """Who computes or draws, with the GPU instance where the driver tells it."""
    listed: list[Any] = []
    for question in (
        nvml.nvmlDeviceGetComputeRunningProcesses,
        nvml.nvmlDeviceGetGraphicsRunningProcesses,
    ):
        # The device nodes' holders are found without NVML as well.
        with contextlib.suppress(nvml.NVMLError):
            listed += question(handle)
    return [
        {
            "pid": one.pid,
            "gpu_instance": None if one.gpuInstanceId == _NO_INSTANCE else one.gpuInstanceId,
        }
        for one in listed
    ]


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
