# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Kernel lists: the numbers of CPUs and NUMA nodes as Linux and nvidia-smi write them. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

# More than any kernel numbers or prints; a list beyond it is a mangled text and not a machine.
_MOST = 1 << 16
_LONGEST = 4096
_PART = re.compile(r"(\d{1,6})(?:-(\d{1,6})(?::(\d{1,6})(?:/(\d{1,6}))?)?)?")


def numbers(text: str) -> tuple[int, ...] | None:
    """(0, 1, 2, 8) of ``0-2,8``, ascending; None for what is no such list.

    A stride is understood as the kernel writes it: ``0-15:1/4`` is one CPU of every four.
    """
    if len(text) > _LONGEST:
        return None
    found: set[int] = set()
    for part in text.strip().split(","):
        match = _PART.fullmatch(part.strip())
        if match is None:
            return None
        first, last, used, group = (None if one is None else int(one) for one in match.groups())
        if first is None:
            return None
        end = first if last is None else last
        step = group or 1
        if end < first or end > _MOST:
            return None
        for start in range(first, end + 1, step):
            found.update(range(start, min(start + (used or 1), end + 1)))
    return tuple(sorted(found))


def text_of(values: Iterable[int]) -> str:
    """``0-2,8`` of (0, 1, 2, 8); "" of nothing."""
    runs: list[list[int]] = []
    for value in sorted(set(values)):
        if runs and value == runs[-1][1] + 1:
            runs[-1][1] = value
        else:
            runs.append([value, value])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)


def of_mask(mask: str) -> tuple[int, ...]:
    """(0, 1, 25) of ``0x02000003`` or of ``00000000,02000003``, highest word first.

    hwloc leaves empty words out (``0xff,,0x0``), and writes a set without an end as
    ``0xf...f,0x…``: what it says below the endless part is read. Raises ValueError.
    """
    words = mask.strip().split(",")
    if words[0] == "0xf...f":
        words = words[1:]
    value = 0
    for word in words:
        value = (value << 32) | int(word or "0", 16)
        if value.bit_length() > _MOST:
            raise ValueError(f"a mask of more than {_MOST} bits")
    return tuple(bit for bit in range(value.bit_length()) if value >> bit & 1)
