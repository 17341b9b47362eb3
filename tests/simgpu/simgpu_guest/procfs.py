# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Content of /proc/driver: the driver's own formats, plus a line naming the simulation."""

from __future__ import annotations

from .state import State

_BUILT = "Tue Apr  8 12:41:17 UTC 2025"
_SIMULATION = "SIMULATION: steadygpu lab, no NVIDIA kernel module is loaded"


#: Numbers of capability nodes: each GPU has 15 GPU instances, each of them 8 compute instances.
_GPUS, _GPU_INSTANCES, _COMPUTE_INSTANCES = 32, 15, 8


def proc_driver_files(state: State) -> dict[str, str]:
    """Path below /proc/driver -> text."""
    files = {f"nvidia/{name}": text for name, text in driver_files(state).items()}
    files["nvidia-caps/mig-minors"] = mig_minors()
    for address in _switches(state):
        files[f"nvidia-nvswitch/devices/{address}/information"] = (
            f"BIOS Version: \t 92.10.14.00.01\nBus Location: \t {address}\n"
        )
    return files


def proc_devices(existing: str, state: State) -> str:
    """/proc/devices with the character devices that the driver's modules register."""
    registered = {195: "nvidia"}
    if state.uvm_loaded:
        registered[int(state.settings["uvm_major"])] = "nvidia-uvm"
    if int(state.settings.get("caps_major", "0")):
        registered[int(state.settings["caps_major"])] = "nvidia-caps"
    lines = [f"{major:3d} {name}" for major, name in sorted(registered.items())]
    characters, separator, blocks = existing.partition("\nBlock devices:")
    return characters.rstrip("\n") + "\n" + "\n".join(lines) + "\n" + separator + blocks


def mig_minors() -> str:
    """The module's static table: which capability has which /dev/nvidia-caps/nvidia-cap<n>."""
    lines = ["config 1", "monitor 2"]
    for gpu in range(_GPUS):
        for instance in range(_GPU_INSTANCES):
            base = f"gpu{gpu}/gi{instance}"
            names = [f"{base}/ci{part}/access" for part in range(_COMPUTE_INSTANCES)]
            for name in (f"{base}/access", *names):
                lines.append(f"{name} {len(lines) + 1}")
    return "\n".join(lines) + "\n"


def _switches(state: State) -> list[str]:
    """Addresses of the NVSwitches that NVLinks end in."""
    links = [link for gpu in state.gpus for link in gpu.links.values()]
    return sorted({link.remote for link in links if link.kind == "switch"})


def driver_files(state: State) -> dict[str, str]:
    """Path below /proc/driver/nvidia -> text. The library adds what MIG instances show."""
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
