# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Content of /proc/driver/nvidia: the driver's own format, plus a line naming the simulation."""

from __future__ import annotations

from .state import State

_BUILT = "Tue Apr  8 12:41:17 UTC 2025"
_SIMULATION = "SIMULATION: steadygpu lab, no NVIDIA kernel module is loaded"


def driver_files(state: State) -> dict[str, str]:
    """Relative path -> text."""
    files = {
        "version": _version(state.settings["module"], state.settings["flavour"]),
        "params": _PARAMETERS,
        "registry": 'Binary: ""\n',
        "capabilities/mig/config": _capability(1),
        "capabilities/mig/monitor": _capability(2),
    }
    for gpu in state.gpus:
        firmware = state.settings["module"] if gpu.values["gsp"] == "1" else "N/A"
        files[f"gpus/{gpu.values['pci']}/information"] = _information(gpu.values, firmware)
    return files


def _version(module: str, flavour: str) -> str:
    if flavour == "open":
        name = f"Open Kernel Module for x86_64  {module}  Release Build  (steadygpu-lab)"
    else:
        name = f"x86_64 Kernel Module  {module}"
    return (
        f"NVRM version: NVIDIA UNIX {name}  {_BUILT}\n"
        f"GCC version:  gcc version 14.2.0 (Debian 14.2.0-19)\n{_SIMULATION}\n"
    )


def _information(gpu: dict[str, str], firmware: str) -> str:
    rows = {
        "Model: \t\t ": gpu["name"],
        "IRQ:   \t\t ": "0",
        "GPU UUID: \t ": gpu["uuid"],
        "Video BIOS: \t ": gpu["vbios"],
        "Bus Type: \t ": "PCIe",
        "DMA Size: \t ": "47 bits",
        "DMA Mask: \t ": "0x7fffffffffff",
        "Bus Location: \t ": gpu["pci"],
        "Device Minor: \t ": gpu["minor"],
        "GPU Firmware: \t ": firmware,
        "GPU Excluded:\t ": "No",
    }
    return "".join(f"{label}{value}\n" for label, value in rows.items())


def _capability(minor: int) -> str:
    return f"DeviceFileMinor: {minor}\nDeviceFileMode: 256\nDeviceFileModify: 1\n"


#: The parameters that tools read; the real file has some forty.
_PARAMETERS = """\
ResmanDebugLevel: 4294967295
ModifyDeviceFiles: 1
DeviceFileUID: 0
DeviceFileGID: 0
DeviceFileMode: 438
EnableGpuFirmware: 18
PreserveVideoMemoryAllocations: 0
RegistryDwords: ""
RegistryDwordsPerDevice: ""
RmMsg: ""
"""
