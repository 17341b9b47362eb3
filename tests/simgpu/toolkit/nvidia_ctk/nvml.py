# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The few NVML calls a CDI spec needs, through ctypes, so that the library's failures are met."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass

LIBRARY = "libnvidia-ml.so.1"
_NOT_SUPPORTED, _NOT_FOUND = 3, 6


class NvmlError(Exception):
    """The library is absent or refuses; the text is NVML's own."""


@dataclass(frozen=True)
class Device:
    """One GPU, or one MIG device of a GPU: then `index` is `GPU:MIG` and `instance` (GI, CI)."""

    index: str
    minor: int
    uuid: str
    instance: tuple[int, int] | None = None


@dataclass(frozen=True)
class Machine:
    """What NVML tells of this machine. A GPU in MIG mode is none of the `devices`."""

    driver_version: str
    devices: list[Device]
    mig_gpus: int


def read() -> Machine:
    """Driver version and all usable devices; NvmlError where NVML cannot be used."""
    try:
        library = ctypes.CDLL(LIBRARY)
    except OSError:
        raise NvmlError("failed to initialize NVML: ERROR_LIBRARY_NOT_FOUND") from None
    library.nvmlErrorString.restype = ctypes.c_char_p
    reader = _Reader(library)
    reader.call("nvmlInit_v2")
    try:
        return reader.machine()
    finally:
        library.nvmlShutdown()


class _Reader:
    """NVML between its beginning and its end."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._library = library

    def call(self, name: str, *arguments: object, allowed: tuple[int, ...] = ()) -> int:
        """The result, 0 or one of `allowed`; NvmlError for any other."""
        result: int = getattr(self._library, name)(*arguments)
        if result != 0 and result not in allowed:
            text = self._library.nvmlErrorString(result).decode()
            what = "failed to initialize NVML" if name == "nvmlInit_v2" else name
            raise NvmlError(f"{what}: {text}")
        return result

    def machine(self) -> Machine:
        version = ctypes.create_string_buffer(80)
        self.call("nvmlSystemGetDriverVersion", version, ctypes.c_uint(len(version)))
        count = ctypes.c_uint()
        self.call("nvmlDeviceGetCount_v2", ctypes.byref(count))
        devices: list[Device] = []
        mig_gpus = 0
        for index in range(count.value):
            handle = ctypes.c_void_p()
            self.call("nvmlDeviceGetHandleByIndex_v2", ctypes.c_uint(index), ctypes.byref(handle))
            minor = self._number("nvmlDeviceGetMinorNumber", handle)
            if self._in_mig_mode(handle):
                mig_gpus += 1
                devices += self._mig_devices(handle, index, minor)
            else:
                devices.append(Device(str(index), minor, self._uuid(handle)))
        return Machine(version.value.decode(), devices, mig_gpus)

    def _in_mig_mode(self, handle: ctypes.c_void_p) -> bool:
        current, pending = ctypes.c_uint(), ctypes.c_uint()
        where = (handle, ctypes.byref(current), ctypes.byref(pending))
        result = self.call("nvmlDeviceGetMigMode", *where, allowed=(_NOT_SUPPORTED,))
        return result == 0 and current.value == 1

    def _mig_devices(self, gpu: ctypes.c_void_p, index: int, minor: int) -> list[Device]:
        found = []
        for number in range(self._number("nvmlDeviceGetMaxMigDeviceCount", gpu)):
            handle = ctypes.c_void_p()
            where = (gpu, ctypes.c_uint(number), ctypes.byref(handle))
            name = "nvmlDeviceGetMigDeviceHandleByIndex"
            if self.call(name, *where, allowed=(_NOT_FOUND,)) != 0:
                continue
            instance = (
                self._number("nvmlDeviceGetGpuInstanceId", handle),
                self._number("nvmlDeviceGetComputeInstanceId", handle),
            )
            found.append(Device(f"{index}:{number}", minor, self._uuid(handle), instance))
        return found

    def _uuid(self, handle: ctypes.c_void_p) -> str:
        uuid = ctypes.create_string_buffer(96)
        self.call("nvmlDeviceGetUUID", handle, uuid, ctypes.c_uint(len(uuid)))
        return uuid.value.decode()

    def _number(self, name: str, handle: ctypes.c_void_p) -> int:
        number = ctypes.c_uint()
        self.call(name, handle, ctypes.byref(number))
        return number.value
