# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a cgroup's device program answers: the kernel's own rules, evaluated here. Pure.

On cgroup v2 the devices that a container may open are decided by BPF programs, and no file shows
them. Opening a device to find out would need a process inside the container. So the programs are
read back and run in this small interpreter instead, which touches nothing and nobody.

The machine is that of Documentation/bpf/standardization/instruction-set.rst in the kernel; the
context is ``struct bpf_cgroup_dev_ctx``. Device programs (those of runc, crun and systemd) use
loads from the context, arithmetic and jumps; anything else is not judged.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence

BLOCK, CHARACTER = 1, 2
MKNOD, READ, WRITE = 1, 2, 4

_INSTRUCTION = struct.Struct("<BBhi")
_CONTEXT = struct.Struct("<III")
_MASK = (1 << 64) - 1
_MOST_STEPS = 50_000

# Instruction classes, the low three bits of the code.
_LDX, _ALU, _JMP, _JMP32, _ALU64 = 1, 4, 5, 6, 7
_SIZES = {0x00: 4, 0x08: 2, 0x10: 1, 0x18: 8}
_EXIT, _CALL, _JA = 0x90, 0x80, 0x00


class UnknownProgramError(ValueError):
    """The program does something that device programs do not do; it is not judged."""


def allows(programs: Sequence[bytes], kind: int, major: int, minor: int, access: int) -> bool:
    """May a process below these programs have this access to this device?

    ``programs`` are those in force, of the cgroup itself and of those above it: all must agree
    (none: everything is allowed). ``kind`` is :data:`BLOCK` or :data:`CHARACTER`, ``access`` a sum
    of :data:`MKNOD`, :data:`READ`, :data:`WRITE`. Raises UnknownProgramError.
    """
    context = _CONTEXT.pack(access << 16 | kind, major, minor)
    return all(run(program, context) & 1 for program in programs)


def run(program: bytes, context: bytes) -> int:
    """The value that a program returns for a context. Raises UnknownProgramError."""
    if not program or len(program) % _INSTRUCTION.size:
        raise UnknownProgramError(f"a program of {len(program)} bytes")
    code = list(_INSTRUCTION.iter_unpack(program))
    registers: list[int | None] = [None] * 11
    # The address of the context is the one pointer there is; it must not be computed with.
    registers[1] = 0
    pointers = {1}
    at = 0
    for _step in range(_MOST_STEPS):
        if not 0 <= at < len(code):
            raise UnknownProgramError("it leaves its own code")
        operation, numbers, offset, immediate = code[at]
        target, source = numbers & 0x0F, numbers >> 4
        kind = operation & 0x07
        at += 1
        if target > 10 or source > 10:
            raise UnknownProgramError("it names a register that is not there")
        if kind in (_JMP, _JMP32):
            verb = operation & 0xF0
            if verb == _EXIT and kind == _JMP:
                return _known(registers[0])
            if verb == _CALL:
                raise UnknownProgramError("it calls a function of the kernel")
            if verb == _JA:
                at += immediate if kind == _JMP32 else offset
                continue
            left = _known(registers[target])
            right = _known(registers[source]) if operation & 0x08 else immediate & _MASK
            if _holds(verb, left, right, 64 if kind == _JMP else 32):
                at += offset
        elif kind in (_ALU, _ALU64):
            copies = operation == 0xBF and source in pointers
            registers[target] = (
                registers[source]
                if copies
                else _compute(operation, registers, numbers, code[at - 1])
            )
            pointers = pointers | {target} if copies else pointers - {target}
        elif kind == _LDX and operation & 0xE0 == 0x60:
            if source not in pointers:
                raise UnknownProgramError("it reads other memory than its context")
            registers[target] = _load(context, _known(registers[source]) + offset, operation)
            pointers = pointers - {target}
        else:
            raise UnknownProgramError(f"instruction {operation:#04x}")
    raise UnknownProgramError("it does not end")


def _load(context: bytes, place: int, operation: int) -> int:
    size = _SIZES[operation & 0x18]
    if not 0 <= place <= len(context) - size:
        raise UnknownProgramError("it reads beyond its context")
    return int.from_bytes(context[place : place + size], "little")


_ARITHMETIC: dict[int, Callable[[int, int, int], int]] = {
    0x00: lambda left, right, width: left + right,
    0x10: lambda left, right, width: left - right,
    0x20: lambda left, right, width: left * right,
    0x40: lambda left, right, width: left | right,
    0x50: lambda left, right, width: left & right,
    0x60: lambda left, right, width: left << (right & (width - 1)),
    0x70: lambda left, right, width: left >> (right & (width - 1)),
    0xA0: lambda left, right, width: left ^ right,
    0xB0: lambda left, right, width: right,
}


def _compute(
    operation: int, registers: Sequence[int | None], numbers: int, whole: Sequence[int]
) -> int:
    target, source = numbers & 0x0F, numbers >> 4
    width = 64 if operation & 0x07 == _ALU64 else 32
    mask = (1 << width) - 1
    verb = operation & 0xF0
    function = _ARITHMETIC.get(verb)
    if function is None or whole[2]:
        raise UnknownProgramError(f"instruction {operation:#04x}")
    right = (_known(registers[source]) if operation & 0x08 else whole[3]) & mask
    left = 0 if verb == 0xB0 else _known(registers[target]) & mask
    return function(left, right, width) & mask


_COMPARISONS: dict[int, Callable[[int, int], bool]] = {
    0x10: lambda left, right: left == right,
    0x20: lambda left, right: left > right,
    0x30: lambda left, right: left >= right,
    0x40: lambda left, right: bool(left & right),
    0x50: lambda left, right: left != right,
    0xA0: lambda left, right: left < right,
    0xB0: lambda left, right: left <= right,
}
_SIGNED = {0x60: 0x20, 0x70: 0x30, 0xC0: 0xA0, 0xD0: 0xB0}


def _holds(verb: int, left: int, right: int, width: int) -> bool:
    mask = (1 << width) - 1
    left, right = left & mask, right & mask
    if verb in _SIGNED:
        half = 1 << (width - 1)
        return _COMPARISONS[_SIGNED[verb]]((left ^ half) - half, (right ^ half) - half)
    if verb not in _COMPARISONS:
        raise UnknownProgramError(f"jump {verb:#04x}")
    return _COMPARISONS[verb](left, right)


def _known(value: int | None) -> int:
    if value is None:
        raise UnknownProgramError("it uses a register that was never set")
    return value
