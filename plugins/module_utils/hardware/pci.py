# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""NVIDIA display devices on the PCI bus, from sysfs. Works without any driver."""

from __future__ import annotations

import os
import re

from ..atomic import read_text
from .model import PciDevice

NVIDIA = "10de"
# PCI base class 03: VGA controller (0300), 3D controller (0302), other display (0380).
_DISPLAY = "03"
_ADDRESS = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$")


def normalise(address: str) -> str:
    """A PCI address as sysfs writes it: ``00000000:23:00.0`` becomes ``0000:23:00.0``.

    NVML prints the domain with eight digits, sysfs with at least four. Raises ValueError.
    """
    domain, rest = address.strip().lower().split(":", 1)
    return f"{int(domain, 16):04x}:{rest}"


def read_path(address: str, root: str = "/") -> list[str]:
    """Every PCI function from the root port to ``address``, [] when it is not there.

    The directory of a device in /sys/devices nests in the bridges it hangs on.
    """
    link = os.path.join(root, "sys/bus/pci/devices", address)
    if not os.path.exists(link):
        return []
    return [part for part in os.path.realpath(link).split("/") if _ADDRESS.match(part)]


def read_display_devices(root: str = "/") -> list[PciDevice]:
    """All NVIDIA display devices in the order of their addresses."""
    bus = os.path.join(root, "sys/bus/pci/devices")
    try:
        addresses = sorted(os.listdir(bus))
    except FileNotFoundError:
        return []
    return [
        _read_device(address, root)
        for address in addresses
        if _attribute(bus, address, "vendor") == NVIDIA
        and _attribute(bus, address, "class").startswith(_DISPLAY)
    ]


def _read_device(address: str, root: str) -> PciDevice:
    bus = os.path.join(root, "sys/bus/pci/devices")
    directory = os.path.join(bus, address)
    driver = os.path.join(directory, "driver")
    return PciDevice(
        address=address,
        vendor=_attribute(bus, address, "vendor"),
        device=_attribute(bus, address, "device"),
        pci_class=_attribute(bus, address, "class"),
        driver=os.path.basename(os.readlink(driver)) if os.path.islink(driver) else None,
        path=read_path(address, root),
        numa_node=_numa_node(read_text(os.path.join(directory, "numa_node"))),
        cpus=(read_text(os.path.join(directory, "local_cpulist")) or "").strip() or None,
    )


def _attribute(bus: str, address: str, name: str) -> str:
    """A hexadecimal sysfs attribute without its ``0x``; "" when it is missing."""
    text = (read_text(os.path.join(bus, address, name)) or "").strip().lower()
    return text[2:] if text.startswith("0x") else text


def _numa_node(text: str | None) -> int | None:
    """The kernel writes -1 where the firmware names no node."""
    node = int((text or "").strip() or -1)
    return node if node >= 0 else None
