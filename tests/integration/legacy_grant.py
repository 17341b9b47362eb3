# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What NVIDIA's legacy hook does to a container's devices, for a lab host: run there as root.

``python3 legacy_grant.py CGROUP-DIRECTORY`` puts a device program in the place of each that is
attached, as libnvidia-container does behind the back of runc and systemd. Ours allows everything.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys

_SYSCALL = {"x86_64": 321, "aarch64": 280}[os.uname().machine]
_PROG_LOAD, _PROG_ATTACH, _GET_FD_BY_ID, _PROG_QUERY = 5, 8, 13, 16
_CGROUP_DEVICE_PROGRAM, _CGROUP_DEVICE_ATTACH = 15, 6
_ALLOW_MULTI, _REPLACE = 2, 4


def bpf(command: int, attributes: bytes) -> tuple[int, bytes]:
    """Ask the kernel something: the result, and the attributes as it left them."""
    buffer = ctypes.create_string_buffer(attributes.ljust(128, b"\0"), 128)
    libc = ctypes.CDLL(None, use_errno=True)
    result = libc.syscall(_SYSCALL, command, buffer, 128)
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"bpf command {command}: {os.strerror(number)}")
    return result, buffer.raw


def allow_all() -> int:
    """A loaded program that says yes: ``r0 = 1; exit``."""
    code = ctypes.create_string_buffer(bytes.fromhex("b700000001000000 9500000000000000"), 16)
    licence = ctypes.create_string_buffer(b"GPL")
    head = struct.pack(
        "=IIQQ", _CGROUP_DEVICE_PROGRAM, 2, ctypes.addressof(code), ctypes.addressof(licence)
    )
    return bpf(_PROG_LOAD, head)[0]


def attached(cgroup: int) -> list[int]:
    """Ids of the device programs of a control group."""
    ids = (ctypes.c_uint32 * 64)()
    query = struct.pack(
        "=IIIIQI", cgroup, _CGROUP_DEVICE_ATTACH, 0, 0, ctypes.addressof(ids), len(ids)
    )
    count = struct.unpack_from("=I", bpf(_PROG_QUERY, query)[1], 24)[0]
    return list(ids[:count])


def main() -> int:
    """Replace every program of the control group."""
    cgroup = os.open(sys.argv[1], os.O_RDONLY | os.O_DIRECTORY)
    programs = attached(cgroup)
    for number in programs:
        former = bpf(_GET_FD_BY_ID, struct.pack("=I", number))[0]
        flags = _ALLOW_MULTI | _REPLACE
        new = struct.pack("=IIIII", cgroup, allow_all(), _CGROUP_DEVICE_ATTACH, flags, former)
        bpf(_PROG_ATTACH, new)
    print(f"{len(programs)} device programs replaced")
    return 0 if programs else 1


if __name__ == "__main__":
    sys.exit(main())
