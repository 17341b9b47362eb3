# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Device programs: what the interpreter answers is what the rules say, and what the kernel does."""

from __future__ import annotations

import ctypes
import os
import platform
import struct
import subprocess
import sys
from collections.abc import Iterator
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.steadygpu.host.plugins.module_utils.heal import (
    device_program,
    kernel_filter,
)
from ansible_collections.steadygpu.host.plugins.module_utils.heal.device_program import (
    BLOCK,
    CHARACTER,
    READ,
    WRITE,
    UnknownProgramError,
    allows,
)

UNIFIED = ("/sys/fs/cgroup", "/sys/fs/cgroup/unified")


class Rule(NamedTuple):
    """One device rule as an OCI specification has it; None stands for all."""

    kind: int | None
    major: int | None
    minor: int | None
    access: int


def _insn(code: int, target: int = 0, source: int = 0, offset: int = 0, value: int = 0) -> bytes:
    return struct.pack("<BBhi", code, source << 4 | target, offset, value)


def program(rules: list[Rule], default: int = 0) -> bytes:
    """What runc writes for rules: type in r2, access in r3, major in r4, minor in r5."""
    code = _insn(0x61, 2, 1, 0) + _insn(0x54, 2, 0, 0, 0xFFFF)
    code += _insn(0x61, 3, 1, 0) + _insn(0x74, 3, 0, 0, 16)
    code += _insn(0x61, 4, 1, 4) + _insn(0x61, 5, 1, 8)
    for rule in rules:
        block = _insn(0xB4, 0, 0, 0, 1) + _insn(0x95)
        if rule.minor is not None:
            block = _insn(0x55, 5, 0, len(block) // 8, rule.minor) + block
        if rule.major is not None:
            block = _insn(0x55, 4, 0, len(block) // 8, rule.major) + block
        if rule.access != 7:
            test = _insn(0xBC, 1, 3) + _insn(0x54, 1, 0, 0, rule.access)
            block = test + _insn(0x5D, 1, 3, len(block) // 8) + block
        if rule.kind is not None:
            block = _insn(0x55, 2, 0, len(block) // 8, rule.kind) + block
        code += block
    return code + _insn(0xB4, 0, 0, 0, default) + _insn(0x95)


def _expected(rules: list[Rule], kind: int, major: int, minor: int, access: int) -> bool:
    return any(
        rule.kind in (None, kind)
        and rule.major in (None, major)
        and rule.minor in (None, minor)
        and access & rule.access == access
        for rule in rules
    )


numbers = st.integers(0, 4)
rules_of = st.builds(
    Rule,
    st.sampled_from([BLOCK, CHARACTER, None]),
    numbers | st.none(),
    numbers | st.none(),
    st.integers(1, 7),
)


@given(
    st.lists(rules_of, max_size=6),
    st.sampled_from([BLOCK, CHARACTER]),
    numbers,
    numbers,
    st.integers(1, 7),
)
@settings(max_examples=300)
def test_the_answer_is_that_of_the_rules(
    rules: list[Rule], kind: int, major: int, minor: int, access: int
) -> None:
    answer = allows([program(rules)], kind, major, minor, access)
    assert answer == _expected(rules, kind, major, minor, access)


def test_every_program_in_force_must_agree() -> None:
    wide, narrow = program([Rule(None, None, None, 7)]), program([Rule(CHARACTER, 1, 3, 6)])
    assert allows([], CHARACTER, 195, 0, READ | WRITE)
    assert allows([wide, narrow], CHARACTER, 1, 3, READ | WRITE)
    assert not allows([wide, narrow], CHARACTER, 195, 0, READ | WRITE)


def test_systemds_narrow_loads_are_understood() -> None:
    # systemd reads the type as a half word, and leaves by a jump over the refusal.
    code = _insn(0x69, 2, 1, 0) + _insn(0x61, 3, 1, 0) + _insn(0x77, 3, 0, 0, 16)
    code += _insn(0x61, 4, 1, 4) + _insn(0x61, 5, 1, 8)
    code += _insn(0x55, 2, 0, 3, CHARACTER) + _insn(0x55, 4, 0, 2, 195)
    code += _insn(0xB7, 0, 0, 0, 1) + _insn(0x05, 0, 0, 1)
    code += _insn(0xB7, 0, 0, 0, 0) + _insn(0x95)
    assert allows([code], CHARACTER, 195, 7, READ)
    assert not allows([code], CHARACTER, 1, 3, READ)
    assert not allows([code], BLOCK, 195, 7, READ)


@pytest.mark.parametrize(
    "code",
    [
        b"",
        b"\x95",
        _insn(0x85, 0, 0, 0, 1) + _insn(0x95),  # calls a helper
        _insn(0x95),  # returns what was never set
        _insn(0x05, 0, 0, -1),  # never ends
        _insn(0x05, 0, 0, 9),  # jumps out
        _insn(0x61, 0, 1, 12) + _insn(0x95),  # reads beyond the context
        _insn(0xB7, 2, 0, 0, 4) + _insn(0x61, 0, 2, 0) + _insn(0x95),  # reads elsewhere
        _insn(0x62, 10, 0, -4, 1) + _insn(0x95),  # writes memory
    ],
)
def test_what_is_no_device_program_is_not_judged(code: bytes) -> None:
    with pytest.raises(UnknownProgramError):
        allows([code], CHARACTER, 1, 3, READ)


@given(st.binary(max_size=160))
@settings(max_examples=300)
def test_any_bytes_get_an_answer_or_a_refusal(code: bytes) -> None:
    try:
        answer: object = device_program.run(code, bytes(12))
    except UnknownProgramError as error:
        answer = str(error)
    assert isinstance(answer, (int, str))


# -- the kernel itself -------------------------------------------------------------------


def _bpf(command: int, attributes: bytes) -> int:
    buffer = ctypes.create_string_buffer(attributes.ljust(128, b"\0"), 128)
    done = ctypes.CDLL(None, use_errno=True).syscall(321, command, buffer, 128)
    if done < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return int(done)


@pytest.fixture
def restricted() -> Iterator[str]:
    """A cgroup whose processes may open /dev/null and GPU nodes, and no other device."""
    top = next((one for one in UNIFIED if os.path.exists(f"{one}/cgroup.controllers")), None)
    if top is None or platform.machine() != "x86_64":
        pytest.skip("no cgroup v2 here")
    code = program([Rule(CHARACTER, 1, 3, 6), Rule(CHARACTER, 195, None, 7)])
    licence, instructions = (ctypes.create_string_buffer(one) for one in (b"GPL", code))
    places = (ctypes.addressof(instructions), ctypes.addressof(licence))
    directory = f"{top}/steadygpu-test-{os.getpid()}"
    try:
        loaded = _bpf(5, struct.pack("=IIQQIIQ", 15, len(code) // 8, *places, 0, 0, 0))
        os.mkdir(directory)
    except OSError as error:
        pytest.skip(f"this machine does not let us: {error}")
    opened = os.open(directory, os.O_RDONLY)
    try:
        _bpf(8, struct.pack("=IIII", opened, loaded, 6, 2))
        yield directory
    finally:
        os.close(opened)
        os.close(loaded)
        os.rmdir(directory)


def test_the_kernel_agrees(restricted: str) -> None:
    programs = kernel_filter.programs(restricted)
    script = (
        f"import os; open('{restricted}/cgroup.procs', 'w').write('0'); "
        "print([os.access(d, os.R_OK | os.W_OK) for d in ('/dev/null', '/dev/zero')])"
    )
    told = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    ours = [allows(programs, CHARACTER, 1, minor, READ | WRITE) for minor in (3, 5)]
    assert told.stdout.strip() == str(ours) == "[True, False]"
    assert allows(programs, CHARACTER, 195, 0, READ | WRITE)


def test_a_directory_that_is_no_cgroup_is_refused_with_the_reason(tmp_path: object) -> None:
    with pytest.raises(kernel_filter.FilterError):
        kernel_filter.programs(str(tmp_path))
    with pytest.raises(kernel_filter.FilterError, match="No such file"):
        kernel_filter.programs("/nowhere")
