# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The ACS control register of a bridge, in its PCI configuration space: read and written.

PCI Express Base Specification: extended capabilities begin at 0x100; ACS has id 0x000d, its
capability register lies 4 bytes behind its header and its control register 6 bytes. setpci calls
the latter ECAP_ACS+0x6.w.
"""

from __future__ import annotations

import os
import struct

_FIRST = 0x100
_LAST = 4096 - 8
_ID = 0x000D
_NO_ANSWER = 0xFFFFFFFF
_CONTROL = 6


def read_control(address: str, root: str = "/") -> int | None:
    """What is switched on; None for a bridge without ACS, or one that cannot be read."""
    try:
        space = os.open(_path(address, root), os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        offset = _find(space)
        return None if offset is None else _word(space, offset + _CONTROL)
    except (OSError, struct.error):
        return None
    finally:
        os.close(space)


def write_control(address: str, value: int, root: str = "/") -> None:
    """Write the register and read it back. Raises OSError, also where it holds another value."""
    path = _path(address, root)
    space = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        offset = _find(space)
        if offset is None:
            raise OSError(0, "the bridge has no ACS", path)
        os.pwrite(space, struct.pack("<H", value), offset + _CONTROL)
        seen = _word(space, offset + _CONTROL)
    except OSError as error:
        # One that read and write raise names no file.
        raise OSError(error.errno, error.strerror, path) from error
    finally:
        os.close(space)
    if seen != value:
        raise OSError(0, f"{value:04x} was written, and {seen:04x} is there", path)


def _find(space: int) -> int | None:
    offset, seen = _FIRST, set()
    while _FIRST <= offset <= _LAST and offset not in seen:
        seen.add(offset)
        header = struct.unpack("<I", os.pread(space, 4, offset).ljust(4, b"\xff"))[0]
        if header == _NO_ANSWER:
            return None
        if header & 0xFFFF == _ID:
            return offset
        offset = header >> 20
    return None


def _word(space: int, offset: int) -> int:
    found: int = struct.unpack("<H", os.pread(space, 2, offset))[0]
    return found


def _path(address: str, root: str) -> str:
    return os.path.join(root, "sys/bus/pci/devices", address, "config")
