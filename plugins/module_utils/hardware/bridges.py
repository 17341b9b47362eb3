# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The bridges above GPUs and network cards, and the IOMMU, from sysfs.

Access Control Services (ACS) send traffic between two devices up to the root complex; on
bare metal that makes peer-to-peer copies slow or hang, in virtual machines it is the isolation.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Callable

from . import files, pci
from .host_model import Acs, Bridge, Iommu

# PCI Express Base Specification, Extended Capability and ACS: the list of extended capabilities
# begins at 0x100; ACS has id 0x000d, its capability register 4 and its control register 6 on.
_EXTENDED = 0x100
_LAST = 4096 - 8
_NO_ANSWER = 0xFFFFFFFF
_ACS = 0x000D
_ACS_BITS = (
    "source_validation",
    "translation_blocking",
    "request_redirect",
    "completion_redirect",
    "upstream_forwarding",
    "egress_control",
    "direct_translated",
)
_REDIRECTING = {"request_redirect", "completion_redirect", "egress_control"}


def read_bridges(paths: Iterable[Sequence[str]], root: str = "/") -> list[Bridge]:
    """Every bridge on the way to the last function of each path, in the order of addresses."""
    return [
        Bridge(
            address=address,
            vendor=pci.identity(address, "vendor", root),
            device=pci.identity(address, "device", root),
            acs=_read_acs(address, root),
        )
        for address in sorted({address for path in paths for address in path[:-1]})
    ]


def find_acs(read: Callable[[int, int], bytes]) -> Acs | None:
    """ACS in a PCI configuration space, of which ``read`` gives (offset, size) bytes.

    None when there is nothing behind the first registers: the kernel shows the rest to root
    only, a bridge of plain PCI has none, and one that is switched off answers with ones.
    """
    offset, seen = _EXTENDED, set()
    while _EXTENDED <= offset <= _LAST and offset not in seen:
        seen.add(offset)
        header = int.from_bytes(read(offset, 4).ljust(4, b"\xff"), "little")
        if header == _NO_ANSWER:
            return None
        if header & 0xFFFF == _ACS:
            registers = read(offset + 4, 4)
            capability, control = _bits(registers[:2]), _bits(registers[2:])
            return Acs(True, capability, control, bool(_REDIRECTING & set(control)))
        offset = header >> 20
    return Acs(False)


def read_iommu(paths: Iterable[Sequence[str]], root: str = "/") -> Iommu:
    """Whether devices are behind an IOMMU, and the group of every function on the paths."""
    groups = {}
    for address in sorted({address for path in paths for address in path}):
        link = os.path.join(root, "sys/bus/pci/devices", address, "iommu_group")
        number = files.number(files.target(link) or "")
        if number is not None:
            groups[address] = number
    return Iommu(bool(files.names(os.path.join(root, "sys/kernel/iommu_groups"))), groups)


def _read_acs(address: str, root: str) -> Acs | None:
    """A few registers, not the whole space: each one is a transaction on the bus."""
    path = os.path.join(root, "sys/bus/pci/devices", address, "config")
    try:
        space = os.open(path, os.O_RDONLY)
    except OSError:
        return None
    try:
        return find_acs(lambda offset, size: os.pread(space, size, offset))
    except OSError:
        return None
    finally:
        os.close(space)


def _bits(register: bytes) -> list[str]:
    value = int.from_bytes(register, "little")
    return [name for bit, name in enumerate(_ACS_BITS) if value >> bit & 1]
