# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A stand-in for the module ``pynvml``: the calls the inventory makes, answers as data."""

from __future__ import annotations

import ctypes
from types import SimpleNamespace
from typing import Any


class FakeError(Exception):
    """``pynvml.NVMLError``: carries its code in ``value``."""

    def __init__(self, value: int, text: str) -> None:
        super().__init__(text)
        self.value = value


NOT_SUPPORTED = FakeError(3, "Not Supported")
NO_PERMISSION = FakeError(4, "Insufficient Permissions")
FUNCTION_NOT_FOUND = FakeError(13, "Function Not Found")
DRIVER_NOT_LOADED = FakeError(9, "Driver Not Loaded")
GPU_IS_LOST = FakeError(15, "GPU is lost")
MISMATCH = FakeError(18, "RM has detected an NVML/RM version mismatch.")

MIB = 1024 * 1024


def a100(bus_id: str, minor: int, **changes: Any) -> dict[str, Any]:
    """The answers of one A100: each a value, or an error that is raised instead."""
    device: dict[str, Any] = {
        "PciInfo": SimpleNamespace(busId=bus_id),
        "UUID": f"GPU-{minor:08d}",
        "MinorNumber": minor,
        "Name": "NVIDIA A100-SXM4-40GB",
        "Architecture": 7,
        "MemoryInfo": SimpleNamespace(
            total=40960 * MIB, used=5 * MIB, free=40300 * MIB, reserved=655 * MIB
        ),
        "MigMode": [0, 1],
        "NvLinks": [],
    }
    device.update(changes)
    return device


class FabricInfo(ctypes.Structure):
    """The part of nvml.h's nvmlGpuFabricInfo_v2_t that is read."""

    _fields_ = (
        ("clusterUuid", ctypes.c_uint8 * 16),
        ("status", ctypes.c_uint),
        ("cliqueId", ctypes.c_uint),
        ("state", ctypes.c_uint8),
    )


class FakeNvml:
    """``devices`` are dicts of :func:`a100`, or an error that the handle call raises."""

    NVMLError = FakeError
    NVML_NVLINK_MAX_LINKS = 36
    NVML_FEATURE_ENABLED = 1
    nvmlMemory_v2 = 0x02000028  # noqa: N815 (pynvml's name)
    c_nvmlGpuFabricInfoV_t = FabricInfo  # noqa: N815

    def __init__(self, devices: list[Any], init: FakeError | None = None) -> None:
        self.devices = devices
        self.init = init
        self.open = False

    def __getattr__(self, name: str) -> Any:
        """``nvmlDeviceGetUUID(handle)`` answers ``handle["UUID"]``, or what that returns.

        What a device has no answer for is a function this library does not have.
        """
        if not name.startswith("nvmlDeviceGet"):
            raise AttributeError(name)
        key = name.removeprefix("nvmlDeviceGet")

        def call(handle: Any, *arguments: Any, **_version: Any) -> Any:
            answer = handle.get(key, FUNCTION_NOT_FOUND)
            return self._say(answer(*arguments) if callable(answer) else answer)

        return call

    @staticmethod
    def _say(answer: Any) -> Any:
        if isinstance(answer, FakeError):
            raise answer
        return answer

    def nvmlInit(self) -> None:  # noqa: N802, D102
        if self.init is not None:
            raise self.init
        self.open = True

    def nvmlShutdown(self) -> None:  # noqa: N802, D102
        self.open = False

    def nvmlSystemGetNVMLVersion(self) -> str:  # noqa: N802, D102
        return "12.550.163.01"

    def nvmlSystemGetDriverVersion(self) -> str:  # noqa: N802, D102
        return "550.163.01"

    def nvmlSystemGetCudaDriverVersion_v2(self) -> int:  # noqa: N802, D102
        return 12040

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802, D102
        return len(self.devices)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> Any:  # noqa: N802, D102
        return self._say(self.devices[index])

    def nvmlErrorString(self, code: int) -> str:  # noqa: N802, D102
        return {0: "Success", 3: "Not Supported"}[code]

    def _link(self, handle: Any, link: int) -> dict[str, Any]:
        if link >= len(handle["NvLinks"]):
            raise FakeError(2, "Invalid Argument")
        found: dict[str, Any] = handle["NvLinks"][link]
        return found

    def nvmlDeviceGetNvLinkState(self, handle: Any, link: int) -> int:  # noqa: N802, D102
        return int(self._link(handle, link)["state"])

    def nvmlDeviceGetNvLinkVersion(self, handle: Any, link: int) -> int:  # noqa: N802, D102
        return 4  # nvml.h: NVML_NVLINK_VERSION_3_0

    def nvmlDeviceGetNvLinkRemoteDeviceType(self, handle: Any, link: int) -> int:  # noqa: N802, D102
        return int(self._link(handle, link)["type"])

    def nvmlDeviceGetNvLinkRemotePciInfo(self, handle: Any, link: int) -> Any:  # noqa: N802, D102
        return SimpleNamespace(busId=self._link(handle, link)["bus_id"])
