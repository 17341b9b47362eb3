# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Quantities as systemd writes them: sizes, percentages, time spans, CPU lists. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

_BINARY: Mapping[str, int] = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_DECIMAL: Mapping[str, int] = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_SIZE = re.compile(r"([0-9]+)(?:\.([0-9]+))?([KMGT]?)")
_PERCENT = re.compile(r"([0-9]+(?:\.[0-9]{1,2})?)%")
_SPAN = re.compile(r"([0-9]+)(us|ms|s|min)?")
_SPAN_UNITS: Mapping[str, int] = {"us": 1, "ms": 10**3, "s": 10**6, "min": 60 * 10**6}
# The kernel's largest CPU count is 8192 (CONFIG_NR_CPUS); a longer range is a typing error.
_LARGEST_INDEX = 8191


class QuantityError(ValueError):
    """A text is not the quantity it should be; the message says how one looks."""


def parse_size(text: str, decimal: bool = False) -> int:
    """``8G``, ``1.5G``, ``4096`` as a number of bytes (or operations).

    Suffixes are powers of 1024, as in MemoryMax=, or of 1000 with ``decimal``, as in
    IOReadBandwidthMax= (systemd.resource-control(5)). Raises QuantityError.
    """
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise QuantityError("a whole number with K, M, G or T, such as 8G (not 8GB or 8Gi)")
    whole, fraction, suffix = match.groups()
    factor = (_DECIMAL if decimal else _BINARY)[suffix]
    below = int(fraction) * factor // 10 ** len(fraction) if fraction else 0
    return int(whole) * factor + below


def format_size(amount: int, decimal: bool = False) -> str:
    """The shortest exact spelling of an amount: 8589934592 becomes ``8G``."""
    units = _DECIMAL if decimal else _BINARY
    for suffix in ("T", "G", "M", "K"):
        if amount and amount % units[suffix] == 0:
            return f"{amount // units[suffix]}{suffix}"
    return str(amount)


def parse_percent(text: str) -> float:
    """``300%`` as 300.0; at most two decimals, as systemd reads it. Raises QuantityError."""
    match = _PERCENT.fullmatch(text.strip())
    if match is None:
        raise QuantityError("a percentage such as 50%")
    return float(match.group(1))


def parse_span_us(text: str) -> int:
    """``10ms``, ``1s`` or ``2`` (seconds) in microseconds. Raises QuantityError."""
    match = _SPAN.fullmatch(text.strip())
    if match is None:
        raise QuantityError("a time span such as 100ms, 25ms or 1s")
    return int(match.group(1)) * _SPAN_UNITS[match.group(2) or "s"]


def format_span_us(span_us: int) -> str:
    """Microseconds in the largest unit that keeps them whole."""
    for unit in ("s", "ms"):
        if span_us and span_us % _SPAN_UNITS[unit] == 0:
            return f"{span_us // _SPAN_UNITS[unit]}{unit}"
    return f"{span_us}us"


def parse_indices(text: str) -> tuple[int, ...]:
    """``0-3,8`` or ``0-3 8`` as sorted CPU or node numbers. Raises QuantityError."""
    numbers: set[int] = set()
    for part in text.replace(",", " ").split():
        match = re.fullmatch(r"([0-9]+)(?:-([0-9]+))?", part)
        if match is None:
            raise QuantityError("a list of numbers and ranges such as 0-3,8")
        first, last = int(match.group(1)), int(match.group(2) or match.group(1))
        if last < first or last > _LARGEST_INDEX:
            raise QuantityError(f"ranges that go up and end at {_LARGEST_INDEX}")
        numbers.update(range(first, last + 1))
    return tuple(sorted(numbers))


def format_indices(numbers: Iterable[int]) -> str:
    """Numbers as the kernel prints a cpuset: ``0-3,8``."""
    runs: list[list[int]] = []
    for number in sorted(set(numbers)):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)
