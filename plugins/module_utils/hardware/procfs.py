# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the loaded NVIDIA kernel module says of itself in /proc/driver/nvidia."""

from __future__ import annotations

import os
import re
from dataclasses import asdict, dataclass, field
from typing import Any

from . import files, guarded, pci

# The driver's own modules; nouveau, which takes its place; nvidia_fs for GPUDirect Storage;
# and the two InfiniBand modules that the fabric manager needs for NVLink 5.
MODULES = (
    "nvidia",
    "nvidia_uvm",
    "nvidia_modeset",
    "nvidia_drm",
    "nvidia_peermem",
    "nvidia_fs",
    "nouveau",
    "ib_umad",
    "mlx5_ib",
)
# "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  550.163.01  Release Build …"
_VERSION = re.compile(r"^NVRM version:.*?\s(\d+(?:\.\d+)+)(?:\s|$)", re.MULTILINE)


@dataclass(frozen=True)
class ProcGpu:
    """One /proc/driver/nvidia/gpus/ADDRESS/information."""

    pci_address: str
    name: str | None
    uuid: str | None
    minor: int | None


@dataclass(frozen=True)
class Report:
    """All that /proc/driver says. ``reason`` is set when it did not answer."""

    version: str | None = None
    flavour: str | None = None
    gpus: list[ProcGpu] = field(default_factory=list)
    nvswitches: int | None = None
    reason: str | None = None


def parse_version(text: str | None) -> tuple[str | None, str | None]:
    """(version, flavour) of /proc/driver/nvidia/version; (None, None) without one.

    Only the open modules call themselves "Open Kernel Module".
    """
    match = _VERSION.search(text or "")
    if match is None:
        return None, None
    return match.group(1), "open" if "Open Kernel Module" in match.group(0) else "proprietary"


def parse_information(pci_address: str, text: str) -> ProcGpu:
    """The lines ``Model``, ``GPU UUID`` and ``Device Minor`` of one GPU.

    A GPU that the driver has not initialised yet shows its UUID as question marks.
    """
    values: dict[str, str] = {}
    for line in text.splitlines():
        key, _colon, value = line.partition(":")
        values[key.strip()] = value.strip()
    uuid, minor = values.get("GPU UUID", ""), values.get("Device Minor", "")
    return ProcGpu(
        pci_address=pci_address,
        name=values.get("Model") or None,
        uuid=uuid if uuid and "?" not in uuid else None,
        minor=files.number(minor),
    )


def read_version(root: str = "/") -> tuple[str | None, str | None]:
    """(version, flavour) of the loaded module, (None, None) when none is loaded."""
    return parse_version(files.text(os.path.join(root, "proc/driver/nvidia/version")))


def read_gpus(root: str = "/") -> list[ProcGpu]:
    """The GPUs the module drives, in the order of their PCI addresses."""
    directory = os.path.join(root, "proc/driver/nvidia/gpus")
    return [
        parse_information(
            address.lower(), files.text(os.path.join(directory, address, "information"))
        )
        for address in files.names(directory)
        if pci.is_address(address.lower())
    ]


def read_nvswitches(root: str = "/") -> int | None:
    """How many NVSwitches the module drives; None when it does not say."""
    try:
        return len(os.listdir(os.path.join(root, "proc/driver/nvidia-nvswitch/devices")))
    except OSError:
        return None


def read(deadline_s: float, root: str = "/") -> Report:
    """All of the above, within ``deadline_s`` seconds.

    A sick driver can hold the locks that reading these files takes, so a child reads them.
    """
    if not os.path.isdir(os.path.join(root, "proc/driver/nvidia")):
        return Report()

    def question() -> dict[str, Any]:
        version, flavour = read_version(root)
        return {
            "version": version,
            "flavour": flavour,
            "gpus": [asdict(gpu) for gpu in read_gpus(root)],
            "nvswitches": read_nvswitches(root),
        }

    outcome = guarded.call(question, deadline_s)
    if outcome.reason is not None:
        return Report(reason=f"/proc/driver/nvidia: {outcome.reason}")
    found = outcome.value
    return Report(
        version=found["version"],
        flavour=found["flavour"],
        gpus=[ProcGpu(**gpu) for gpu in found["gpus"]],
        nvswitches=found["nvswitches"],
    )


def read_modules(root: str = "/") -> dict[str, bool]:
    """Which of :data:`MODULES` the kernel has, loaded or built in.

    nvidia_uvm is there also where its character device is registered: what counts is whether
    CUDA can open it.
    """
    lines = files.text(os.path.join(root, "proc/modules")).splitlines()
    loaded = {line.split(" ", 1)[0] for line in lines}
    if re.search(r"^\s*\d+ nvidia-uvm$", files.text(os.path.join(root, "proc/devices")), re.M):
        loaded.add("nvidia_uvm")
    return {
        module: module in loaded or os.path.isdir(os.path.join(root, "sys/module", module))
        for module in MODULES
    }
