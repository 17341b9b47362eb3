# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the loaded NVIDIA kernel module says of itself in /proc/driver/nvidia."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

from ..atomic import read_text

MODULES = ("nvidia", "nvidia_uvm", "nvidia_modeset", "nvidia_drm", "nvidia_peermem")
# "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  550.163.01  Release Build …"
_VERSION = re.compile(r"^NVRM version:.*?\s(\d+(?:\.\d+)+)(?:\s|$)", re.MULTILINE)


@dataclass(frozen=True)
class ProcGpu:
    """One /proc/driver/nvidia/gpus/ADDRESS/information."""

    pci_address: str
    name: str | None
    uuid: str | None
    minor: int | None


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
        minor=int(minor) if minor.isdigit() else None,
    )


def read_version(root: str = "/") -> tuple[str | None, str | None]:
    """(version, flavour) of the loaded module, (None, None) when none is loaded."""
    return parse_version(read_text(os.path.join(root, "proc/driver/nvidia/version")))


def read_gpus(root: str = "/") -> list[ProcGpu]:
    """The GPUs the module drives, in the order of their PCI addresses."""
    directory = os.path.join(root, "proc/driver/nvidia/gpus")
    try:
        addresses = sorted(os.listdir(directory))
    except (FileNotFoundError, NotADirectoryError):
        return []
    return [
        parse_information(
            address.lower(), read_text(os.path.join(directory, address, "information")) or ""
        )
        for address in addresses
    ]


def read_modules(root: str = "/") -> dict[str, bool]:
    """Which of the driver's kernel modules /proc/modules lists."""
    lines = (read_text(os.path.join(root, "proc/modules")) or "").splitlines()
    loaded = {line.split(" ", 1)[0] for line in lines}
    return {module: module in loaded for module in MODULES}
