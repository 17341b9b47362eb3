# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The PCI bus from sysfs: NVIDIA display devices, paths, links. Works without any driver."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence

from . import files
from .host_model import PciDevice, PcieLink

NVIDIA = "10de"
# PCI base class 03: VGA controller (0300), 3D controller (0302), other display (0380).
_DISPLAY = "03"
_ADDRESS = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$")
# PCI Express Base Specification, Link Capabilities: GT/s of each generation.
_GENERATIONS = {"2.5": 1, "5.0": 2, "5": 2, "8.0": 3, "16.0": 4, "32.0": 5, "64.0": 6}


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


def is_address(text: str) -> bool:
    """Does ``text`` name a PCI function as sysfs does?"""
    return _ADDRESS.match(text) is not None


def attribute(address: str, name: str, root: str = "/") -> str | None:
    """A sysfs attribute of a function, stripped; None when it is missing, empty or unreadable."""
    return files.text(os.path.join(root, "sys/bus/pci/devices", address, name)) or None


def identity(address: str, name: str, root: str = "/") -> str:
    """A hexadecimal attribute (vendor, device, class) without its ``0x``; "" when missing."""
    text = (attribute(address, name, root) or "").lower()
    return text[2:] if text.startswith("0x") else text


def numa_node(address: str, root: str = "/") -> int | None:
    """The node beside a function. The kernel writes -1 where the firmware names none."""
    return files.number(attribute(address, "numa_node", root) or "")


def read_link(path: Sequence[str], root: str = "/") -> PcieLink | None:
    """The link between the last function of ``path`` and the port above it.

    What is possible is the lesser of what both ends can do. None for a function without a
    PCI Express link, as behind a hypervisor that shows plain PCI.
    """
    if not path:
        return None
    ends = path[-2:]
    link = PcieLink(
        generation=_generation(path[-1], "current_link_speed", root),
        generation_max=_least(_generation(end, "max_link_speed", root) for end in ends),
        width=width(path[-1], "current_link_width", root),
        width_max=_least(width(end, "max_link_width", root) for end in ends),
    )
    return None if link == PcieLink() else link


def _generation(address: str, name: str, root: str) -> int | None:
    """``16.0 GT/s PCIe`` is generation 4; ``Unknown`` is None."""
    return _GENERATIONS.get((attribute(address, name, root) or "").partition(" ")[0])


def width(address: str, name: str, root: str) -> int | None:
    """Lanes of a link. The kernel writes 0, or 255 in old versions, for a link that has none."""
    lanes = files.number(attribute(address, name, root) or "")
    return None if lanes in (0, 255) else lanes


def _least(values: Iterable[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return min(known) if known else None


def read_display_devices(root: str = "/") -> list[PciDevice]:
    """All NVIDIA display devices in the order of their addresses."""
    return [
        _read_device(address, root)
        for address in files.names(os.path.join(root, "sys/bus/pci/devices"))
        if identity(address, "vendor", root) == NVIDIA
        and identity(address, "class", root).startswith(_DISPLAY)
    ]


def _read_device(address: str, root: str) -> PciDevice:
    driver = os.path.join(root, "sys/bus/pci/devices", address, "driver")
    return PciDevice(
        address=address,
        vendor=identity(address, "vendor", root),
        device=identity(address, "device", root),
        pci_class=identity(address, "class", root),
        driver=files.target(driver),
        path=read_path(address, root),
        numa_node=numa_node(address, root),
        cpus=attribute(address, "local_cpulist", root),
    )
