# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The MIG devices of one GPU, from NVML. Reads; ``module_utils/mig`` changes."""

from __future__ import annotations

import math
import re
from typing import Any

from .nvml_library import NO_SUCH_THING, NOT_FOUND, Library, RefusedError

_MIB = 1024 * 1024
_GIB = 1024 * _MIB
# "NVIDIA A100-SXM4-40GB MIG 1g.5gb", as drivers since R470 name a MIG device.
_PROFILE_IN_NAME = re.compile(r"\bMIG (\d\S*)$")


def read_devices(library: Library, handle: Any) -> list[dict[str, Any]]:
    """Every MIG device, [] while MIG is off. Raises RefusedError."""
    mode = library.ask_or_none("nvmlDeviceGetMigMode", handle)
    if not mode or not mode[0]:
        return []
    found = []
    for index in range(library.ask("nvmlDeviceGetMaxMigDeviceCount", handle)):
        try:
            mig = library.ask("nvmlDeviceGetMigDeviceHandleByIndex", handle, index)
        except RefusedError as refused:
            # A number without a device; INVALID_ARGUMENT beyond the last one.
            if refused.code == NOT_FOUND or refused.code in NO_SUCH_THING:
                continue
            raise
        found.append(_device(library, handle, mig, index))
    return found


def _device(library: Library, gpu: Any, mig: Any, index: int) -> dict[str, Any]:
    gpu_instance = library.ask_lightly("nvmlDeviceGetGpuInstanceId", mig)
    attributes = library.ask_lightly("nvmlDeviceGetAttributes_v2", mig)
    start, size = _placement(library, gpu, gpu_instance)
    return {
        "index": index,
        "uuid": library.ask_lightly("nvmlDeviceGetUUID", mig),
        "profile": _profile(library, gpu, mig, attributes),
        "gpu_instance": gpu_instance,
        "compute_instance": library.ask_lightly("nvmlDeviceGetComputeInstanceId", mig),
        "start": start,
        "size": size,
        "memory_mib": int(attributes.memorySizeMB) if attributes is not None else None,
    }


def _placement(library: Library, gpu: Any, gpu_instance: int | None) -> tuple[Any, Any]:
    """First memory slice and number of slices. NVML tells them to root only."""
    if gpu_instance is None:
        return None, None
    handle = library.ask_lightly("nvmlDeviceGetGpuInstanceById", gpu, gpu_instance)
    info = library.ask_lightly("nvmlGpuInstanceGetInfo", handle) if handle is not None else None
    return (info.placement.start, info.placement.size) if info is not None else (None, None)


def _profile(library: Library, gpu: Any, mig: Any, attributes: Any) -> str | None:
    """``1g.5gb``, ``1c.3g.20gb``: from the device's name, else from its sizes."""
    name = _PROFILE_IN_NAME.search(library.ask_lightly("nvmlDeviceGetName", mig) or "")
    if name is not None:
        return name.group(1)
    memory = library.ask_lightly("nvmlDeviceGetMemoryInfo", gpu)
    if attributes is None or memory is None:
        return None
    return compose(
        attributes.gpuInstanceSliceCount,
        attributes.computeInstanceSliceCount,
        int(attributes.memorySizeMB),
        memory.total,
    )


def compose(gpu_slices: int, compute_slices: int, memory_mib: int, total_bytes: int) -> str:
    """The profile name from slices and memory, as NVIDIA rounds it.

    The number before ``gb`` is a count of eighths of the whole memory, in GiB rounded up,
    rounded to the nearest integer: 4864 MiB of 40 GiB are one eighth, 5; 9856 MiB of an H100
    with 80 GiB are 10.
    """
    eighths = math.ceil(memory_mib * _MIB / total_bytes * 8)
    gigabytes = round(eighths / 8 * math.ceil(total_bytes / _GIB))
    own = f"{compute_slices}c." if compute_slices != gpu_slices else ""
    return f"{own}{gpu_slices}g.{gigabytes}gb"
