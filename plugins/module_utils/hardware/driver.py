# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""In what state is the NVIDIA driver? Decides from what the readers saw; reads nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from . import nvml_library as nvml
from .host_model import PciDevice
from .model import Driver
from .nvml_reader import Answer
from .procfs import Report

_MISMATCH = (
    "kernel module {0} and library {1} differ, NVML and CUDA refuse to work; the driver was "
    "upgraded under a loaded module: reload the nvidia modules or reboot"
)
_HIDDEN = (
    "this process may not open {0}: a device cgroup hides the GPUs, as in the session of a job "
    "scheduler or in a container, or the mode of the nodes keeps this user out. That is no fault "
    "of the driver: look as root outside of it, or inside a job that was given GPUs"
)
_NOT_LOADED = (
    "{0}, but the kernel module nvidia is not loaded; try modprobe nvidia and look at dmesg"
)
_NOUVEAU = (
    "nouveau drives {0}, so the NVIDIA driver cannot; blacklist nouveau, rebuild the initramfs and "
    "reboot"
)


@dataclass(frozen=True)
class Seen:
    """What the readers found: the PCI bus, /proc, the library's file, NVML, closed nodes."""

    on_bus: Sequence[PciDevice] = ()
    proc: Report = field(default_factory=Report)
    library_path: str | None = None
    library_version: str | None = None
    answer: Answer = field(default_factory=Answer)
    closed: Sequence[str] = ()


def judge(seen: Seen) -> Driver:
    """The state of the driver."""
    report: dict[str, Any] = seen.answer.report or {}
    version = seen.proc.version or report.get("driver_version")
    library_version = report.get("library_version") or seen.library_version
    status, reason = _state(seen, version, library_version, report.get("error") or {})
    return Driver(
        status,
        version,
        seen.proc.flavour,
        library_version,
        report.get("cuda_version"),
        reason,
        hidden=list(seen.closed),
    )


def _state(
    seen: Seen, version: str | None, library_version: str | None, error: dict[str, Any]
) -> tuple[str, str | None]:
    code, text = error.get("code"), error.get("text")
    if seen.proc.reason is not None:
        return "unresponsive", seen.proc.reason
    if seen.answer.unresponsive:
        return "unresponsive", seen.answer.reason
    if code == nvml.TIMEOUT:
        return "unresponsive", f"NVML: {text}"
    module_version = seen.proc.version
    if code == nvml.LIBRARY_VERSION_MISMATCH or (
        module_version and library_version and module_version != library_version
    ):
        return "mismatch", _MISMATCH.format(version or "?", library_version or "?")
    if version:
        return _loaded(seen, version, code, text)
    return _missing(seen)


def _loaded(seen: Seen, version: str, code: int | None, text: str | None) -> tuple[str, str | None]:
    if seen.closed:
        return "loaded", _HIDDEN.format(", ".join(seen.closed))
    if code == nvml.DRIVER_NOT_LOADED:
        return (
            "not_loaded",
            f"NVML: {text}, although /proc/driver/nvidia names {version}; look at dmesg and at "
            "the nodes /dev/nvidia*",
        )
    if text:
        return "loaded", f"NVML: {text}"
    refused = [f"{one.address}: {one.reason}" for one in seen.on_bus if one.reason]
    return "loaded", seen.answer.reason or "; ".join(refused) or None


def _missing(seen: Seen) -> tuple[str, str | None]:
    foreign = [one.address for one in seen.on_bus if one.driver == "nouveau"]
    refused = [f"{one.address}: {one.reason}" for one in seen.on_bus if one.reason]
    if foreign:
        return "not_loaded", _NOUVEAU.format(", ".join(foreign))
    if refused:
        return "not_loaded", "; ".join(refused)
    if seen.on_bus:
        return "not_loaded", _NOT_LOADED.format("an NVIDIA GPU is on the PCI bus")
    if seen.library_path:
        return "not_loaded", _NOT_LOADED.format(f"{seen.library_path} is installed")
    return "absent", "no NVIDIA GPU on the PCI bus, no driver, no libnvidia-ml"
