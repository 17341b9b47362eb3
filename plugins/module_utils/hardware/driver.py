# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""In what state is the NVIDIA driver? Decides from what the readers saw; reads nothing."""

from __future__ import annotations

from typing import Any

from . import nvml
from .model import Driver
from .nvml_reader import Answer

_MISMATCH = (
    "kernel module {0} and library {1} differ, NVML and CUDA refuse to work; the driver was "
    "upgraded under a loaded module: reload the nvidia modules or reboot"
)


def judge(
    module_version: str | None,
    flavour: str | None,
    library_path: str | None,
    library_version: str | None,
    answer: Answer,
    has_device: bool,
) -> Driver:
    """The state of the driver.

    ``module_version`` and ``flavour`` come from /proc/driver/nvidia/version (None: no
    module), ``library_version`` from the file name of the library, ``answer`` from NVML,
    ``has_device`` from the PCI bus.
    """
    report: dict[str, Any] = answer.report or {}
    error: dict[str, Any] = report.get("error") or {}
    code, text = error.get("code"), error.get("text")
    version = module_version or report.get("driver_version")
    library_version = report.get("library_version") or library_version

    def driver(status: str, reason: str | None) -> Driver:
        return Driver(status, version, flavour, library_version, report.get("cuda_version"), reason)

    if answer.unresponsive:
        return driver("unresponsive", answer.reason)
    if code == nvml.TIMEOUT:
        return driver("unresponsive", f"NVML: {text}")
    if code == nvml.LIBRARY_VERSION_MISMATCH or (
        module_version and library_version and module_version != library_version
    ):
        return driver("mismatch", _MISMATCH.format(version or "?", library_version or "?"))
    if version and code == nvml.DRIVER_NOT_LOADED:
        return driver(
            "not_loaded",
            f"NVML: {text}, although /proc/driver/nvidia names {version}; look at dmesg and at "
            "the nodes /dev/nvidia*",
        )
    if version:
        return driver("loaded", f"NVML: {text}" if text else answer.reason)
    if has_device or library_path:
        seen = "an NVIDIA GPU is on the PCI bus" if has_device else f"{library_path} is installed"
        return driver(
            "not_loaded",
            f"{seen}, but the kernel module nvidia is not loaded; try modprobe nvidia and look at "
            "dmesg",
        )
    return driver("absent", "no NVIDIA GPU on the PCI bus, no driver, no libnvidia-ml")
