# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Does this host give PCI devices to virtual machines, now or when one starts? Only reads."""

from __future__ import annotations

import glob
import os
import re

from ..hardware import files, pci

_MODPROBE = ("etc/modprobe.d", "run/modprobe.d", "usr/local/lib/modprobe.d", "usr/lib/modprobe.d")
_OPTION = re.compile(r"^\s*options\s+vfio[-_]pci\s.*\bids=(\S+)", re.MULTILINE)
_WORD = re.compile(r"(?:^|\s)vfio[-_]pci\.ids=(\S+)")
_HOSTDEV = re.compile(r"<hostdev\b[^>]*\btype=['\"]pci['\"]")


def bound(root: str = "/") -> list[str]:
    """The devices that vfio-pci has now."""
    links = glob.glob(_below(root, "sys/bus/pci/drivers/vfio-pci/*"))
    return sorted(name for name in map(os.path.basename, links) if pci.is_address(name))


def promised(root: str = "/") -> list[str]:
    """What will be given to one later, as at boot a driver may not be bound yet; in words."""
    found = [
        f"vfio-pci.ids={ids} in /proc/cmdline"
        for ids in _WORD.findall(files.text(_below(root, "proc/cmdline")))
    ]
    for directory in _MODPROBE:
        for path in sorted(glob.glob(_below(root, directory, "*.conf"))):
            shown = "/" + os.path.relpath(path, root)
            found += [f"ids={ids} in {shown}" for ids in _OPTION.findall(files.text(path))]
    for path in sorted(glob.glob(_below(root, "sys/bus/pci/devices/*/driver_override"))):
        if files.text(path).strip() == "vfio-pci":
            found.append(f"the driver override of {os.path.basename(os.path.dirname(path))}")
    for path in sorted(glob.glob(_below(root, "etc/libvirt/qemu/*.xml"))):
        if _HOSTDEV.search(files.text(path)):
            found.append(f"a PCI device in /etc/libvirt/qemu/{os.path.basename(path)}")
    return found


def _below(root: str, *parts: str) -> str:
    return os.path.join(glob.escape(root), *parts)
