# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The few NVML calls a CDI spec needs, through ctypes, so that the library's failures are met."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass

LIBRARY = "libnvidia-ml.so.1"


class NvmlError(Exception):
    """The library is absent or refuses; the text is NVML's own."""


@dataclass(frozen=True)
class Device:
    """One GPU."""

    index: int
    minor: int
    uuid: str


def devices() -> tuple[str, list[Device]]:
    """Driver version and all GPUs; NvmlError where NVML cannot be used."""
    try:
        library = ctypes.CDLL(LIBRARY)
    except OSError:
        raise NvmlError("failed to initialize NVML: ERROR_LIBRARY_NOT_FOUND") from None
    library.nvmlErrorString.restype = ctypes.c_char_p

    def call(name: str, *arguments: object) -> None:
        result = getattr(library, name)(*arguments)
        if result != 0:
            text = library.nvmlErrorString(result).decode()
            what = "failed to initialize NVML" if name == "nvmlInit_v2" else name
            raise NvmlError(f"{what}: {text}")

    call("nvmlInit_v2")
    try:
        version = ctypes.create_string_buffer(80)
        call("nvmlSystemGetDriverVersion", version, ctypes.c_uint(len(version)))
        count = ctypes.c_uint()
        call("nvmlDeviceGetCount_v2", ctypes.byref(count))
        found = []
        for index in range(count.value):
            handle, minor = ctypes.c_void_p(), ctypes.c_uint()
            uuid = ctypes.create_string_buffer(96)
            call("nvmlDeviceGetHandleByIndex_v2", ctypes.c_uint(index), ctypes.byref(handle))
            call("nvmlDeviceGetMinorNumber", handle, ctypes.byref(minor))
            call("nvmlDeviceGetUUID", handle, uuid, ctypes.c_uint(len(uuid)))
            found.append(Device(index, minor.value, uuid.value.decode()))
        return version.value.decode(), found
    finally:
        library.nvmlShutdown()
