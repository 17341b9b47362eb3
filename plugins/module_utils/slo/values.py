# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Durations, ratios and counts of service level objectives: one spelling each. Pure.

A number without a unit is never guessed at. Numbers stay exact: a duration is whole microseconds, a
ratio a decimal fraction.
"""

from __future__ import annotations

import re
from decimal import Decimal

_UNITS_US = {
    "us": 1,
    "ms": 1_000,
    "s": 1_000_000,
    "m": 60_000_000,
    "h": 3_600_000_000,
    "d": 86_400_000_000,
}
_DURATION = re.compile(r"(\d{1,14}(?:\.\d{1,6})?)\s*([A-Za-zµ]*)")
_PERCENT = re.compile(r"(\d{1,3}(?:\.\d{1,9})?)\s*%")
_RATIO = re.compile(r"0?\.\d{1,11}|[01](?:\.0{1,11})?")
_COUNT = re.compile(r"\d{1,6}")
_LONGEST_US = 366 * _UNITS_US["d"]


class ValueFaultError(ValueError):
    """A value is not what its key takes; ``advice`` says what to write."""

    def __init__(self, said: str, advice: str) -> None:
        super().__init__(said)
        self.said = said
        self.advice = advice


def duration_us(written: str, unit: str = "") -> int:
    """``200ms``, ``1.5s``, ``30d`` in microseconds; ``unit`` is that of a bare number."""
    match = _DURATION.fullmatch(written.strip())
    named = (match.group(2).replace("µ", "u") or unit) if match else ""
    if match is None or (named and named not in _UNITS_US):
        raise ValueFaultError(
            f"{written!r} is no duration", f"wanted is a number with {', '.join(_UNITS_US)}"
        )
    if not named:
        raise ValueFaultError(f"{written!r} has no unit", f"is it {written}ms or {written}s?")
    exact = Decimal(match.group(1)) * _UNITS_US[named]
    if exact != int(exact):
        raise ValueFaultError(f"{written!r} is finer than a microsecond", "round it")
    if not 0 < exact <= _LONGEST_US:
        raise ValueFaultError(f"{written!r} is out of range", "wanted is 1us to 366d")
    return int(exact)


def duration_text(microseconds: int) -> str:
    """The shortest exact spelling with one unit: ``200ms``, ``90s``."""
    for unit, size in reversed(list(_UNITS_US.items())):
        if microseconds % size == 0:
            return f"{microseconds // size}{unit}"
    return f"{microseconds}us"


def ratio(written: str) -> Decimal:
    """``99.95%`` or ``0.9995`` as a fraction above 0 and at most 1."""
    text = written.strip()
    percent = _PERCENT.fullmatch(text)
    if percent:
        value = Decimal(percent.group(1)) / 100
    elif _RATIO.fullmatch(text):
        value = Decimal(text)
    else:
        advice = "wanted is a share such as 99.95% or 0.9995"
        if re.fullmatch(r"\d{1,3}(\.\d+)?", text):
            advice = f"is it {text}%?"
        raise ValueFaultError(f"{written!r} is no ratio", advice)
    if not 0 < value <= 1:
        raise ValueFaultError(f"{written!r} is out of range", "wanted is above 0% and at most 100%")
    return value.normalize()


def ratio_text(value: Decimal) -> str:
    """``99.95%``."""
    return f"{(value * 100).normalize():f}%"


def count(written: str) -> int:
    """A number of replicas, 1 or more."""
    number = int(written) if _COUNT.fullmatch(written) else 0
    if number < 1:
        raise ValueFaultError(f"{written!r} is no number of replicas", "wanted is 1 or more")
    return number
