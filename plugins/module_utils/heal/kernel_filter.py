# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The device programs in force for a cgroup, read back from the kernel.

Only bpf(2) tells (include/uapi/linux/bpf.h): which programs are effective for the cgroup
(``BPF_PROG_QUERY``), and the instructions of each (``BPF_OBJ_GET_INFO_BY_FD``). It needs root. It
reads; nothing is loaded, attached or changed, and no process enters the cgroup.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
import struct

_SYSCALLS = {"x86_64": 321, "aarch64": 280}
_PROG_QUERY, _PROG_GET_FD_BY_ID, _OBJ_GET_INFO_BY_FD = 16, 13, 15
_CGROUP_DEVICE = 6
_EFFECTIVE = 1
_MOST_PROGRAMS = 64
# struct bpf_prog_info up to xlated_prog_insns; longer ones begin the same.
_INFO = struct.Struct("=II8sIIQQ")
_INFO_BYTES = 256


class FilterError(Exception):
    """The kernel does not tell (no root, an older kernel, a locked-down one); says why."""


def programs(control_group_directory: str) -> list[bytes]:
    """The instructions of every effective program; [] when none restricts the cgroup.

    ``control_group_directory`` is a directory of a cgroup v2 hierarchy. Raises FilterError.
    """
    call = _syscall()
    try:
        directory = os.open(control_group_directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise FilterError(f"{control_group_directory}: {error.strerror}") from error
    try:
        return [_instructions(call, number) for number in _effective(call, directory)]
    finally:
        os.close(directory)


class _Call:
    """bpf(2) with a buffer as its attributes."""

    def __init__(self, number: int) -> None:
        self._library = ctypes.CDLL(None, use_errno=True)
        self._number = number

    def __call__(self, command: int, attributes: bytes) -> tuple[int, bytes]:
        """What it returns and the attributes after it. Raises FilterError."""
        buffer = ctypes.create_string_buffer(attributes.ljust(128, b"\0"), 128)
        done = self._library.syscall(
            ctypes.c_long(self._number), ctypes.c_int(command), buffer, ctypes.c_uint(128)
        )
        if done < 0:
            raise FilterError(f"bpf: {os.strerror(ctypes.get_errno())}")
        return int(done), buffer.raw


def _syscall() -> _Call:
    number = _SYSCALLS.get(platform.machine())
    if number is None:
        raise FilterError(f"not known how to ask on {platform.machine()}")
    return _Call(number)


def _effective(call: _Call, directory: int) -> list[int]:
    numbers = (ctypes.c_uint32 * _MOST_PROGRAMS)()
    attributes = struct.pack(
        "=IIIIQI",
        directory,
        _CGROUP_DEVICE,
        _EFFECTIVE,
        0,
        ctypes.addressof(numbers),
        _MOST_PROGRAMS,
    )
    _done, after = call(_PROG_QUERY, attributes)
    (count,) = struct.unpack_from("=I", after, 24)
    return list(numbers[:count])


def _instructions(call: _Call, number: int) -> bytes:
    descriptor, _after = call(_PROG_GET_FD_BY_ID, struct.pack("=I", number))
    try:
        length = _info(call, descriptor, 0, 0)[4]
        if not length:
            raise FilterError("the kernel does not show the program's instructions")
        code = ctypes.create_string_buffer(length)
        seen = _info(call, descriptor, length, ctypes.addressof(code))
        # Where the kernel hides code (kernel.kptr_restrict), it gives no place back.
        if not seen[6]:
            raise FilterError("the kernel hides the program's instructions")
        return code.raw[: seen[4]]
    finally:
        with contextlib.suppress(OSError):
            os.close(descriptor)


def _info(call: _Call, descriptor: int, length: int, place: int) -> tuple[int, ...]:
    wanted = _INFO.pack(0, 0, b"", 0, length, 0, place).ljust(_INFO_BYTES, b"\0")
    info = ctypes.create_string_buffer(wanted, _INFO_BYTES)
    attributes = struct.pack("=IIQ", descriptor, _INFO_BYTES, ctypes.addressof(info))
    call(_OBJ_GET_INFO_BY_FD, attributes)
    found: tuple[int, ...] = _INFO.unpack_from(info.raw)
    return found
