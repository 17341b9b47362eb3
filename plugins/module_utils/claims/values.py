# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The values of a claim's keys, each with its units and words. Pure.

A function takes the text of a value and returns what it means; it raises :class:`ValueFaultError`,
which says what is wanted.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from .model import ALL, LINKS, Profile

_MIB = {"m": 1, "g": 1024, "t": 1024 * 1024}
_MEMORY = re.compile(r"(\d{1,7}(?:\.\d{1,3})?)\s*([a-z%]*)", re.IGNORECASE)
_SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_TIME = re.compile(r"(\d{1,9}(?:\.\d{1,6})?)\s*([a-z]*)", re.IGNORECASE)
_NUMBER = re.compile(r"\d{1,6}")
_PERCENT = re.compile(r"(\d{1,3}(?:\.\d{1,2})?)%")
# Names of mixed case are the driver's; UUIDs in tests and old MIG names have more than hex digits.
_DEVICE = re.compile(r"\d{1,3}(?::\d{1,2})?|GPU-[0-9A-Za-z-]+|MIG-[0-9A-Za-z/-]+")
_PROFILE = re.compile(r"(?:[1-7]c\.)?[1-7]g\.(\d{1,3})gb(?:\+me(?:\.all)?|\+gfx|-me)?")
_PRIORITIES = {"low": 25, "normal": 50, "high": 75, "urgent": 90}

MOST_DEVICES = 1024
_MOST_MIB = 64 * 1024 * 1024


class ValueFaultError(ValueError):
    """A value is not what its key takes; ``advice`` says what to write."""

    def __init__(self, said: str, advice: str) -> None:
        super().__init__(said)
        self.said = said
        self.advice = advice


def count(value: str) -> int:
    """``2``, or ``all``."""
    if value.lower() == "all":
        return ALL
    number = int(value) if _NUMBER.fullmatch(value) else 0
    if not 1 <= number <= MOST_DEVICES:
        raise ValueFaultError(f"count is {value!r}", f"wanted is 1 to {MOST_DEVICES}, or all")
    return number


def devices(value: str) -> tuple[str, ...]:
    """``0``, ``0:1``, ``GPU-…``, ``MIG-…``, or several with commas between them."""
    names = tuple(name.strip() for name in value.split(","))
    for name in names:
        if name.lower() == "all":
            raise ValueFaultError("device is 'all', which names none", "write count=all")
        if name.upper().startswith("UUID:"):
            raise ValueFaultError(f"device is {name!r}", "write the UUID alone: device=GPU-…")
        if re.match("gpu-|mig-", name, re.IGNORECASE) and name[:4] not in ("GPU-", "MIG-"):
            raise ValueFaultError(f"device is {name!r}", f"the driver writes {name[:4].upper()}…")
        if not _DEVICE.fullmatch(name):
            raise ValueFaultError(
                f"device is {name!r}",
                "wanted is an index (0), a MIG device (0:1), or a UUID as nvidia-smi -L shows it",
            )
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueFaultError(f"device names {', '.join(twice)} twice", "name each device once")
    return names


def models(value: str) -> tuple[str, ...]:
    """``A100``, ``H100 NVL``, or several with commas: any of them will do."""
    names = tuple(name.strip() for name in value.split(","))
    for name in names:
        if not re.search("[0-9A-Za-z]", name):
            raise ValueFaultError(
                f"model is {value!r}", "wanted is a part of a GPU's name, like A100"
            )
    return names


def mig(value: str) -> Profile | None:
    """``1g.10gb`` and the like; None for ``off``, which wants whole GPUs."""
    if value.lower() == "off":
        return None
    name = value.lower()
    match = _PROFILE.fullmatch(name)
    if match is None:
        raise ValueFaultError(
            f"mig is {value!r}",
            "wanted is a profile as nvidia-smi mig -lgip names it, like 1g.10gb, or off",
        )
    return Profile(name, int(match.group(1)))


def memory(value: str) -> int:
    """``20g``, ``20480m``: MiB of GPU memory on each device. Suffixes are powers of 1024."""
    match = _MEMORY.fullmatch(value)
    unit = match.group(2).lower() if match else ""
    if match and unit == "":
        raise ValueFaultError(
            f"memory is {value!r}, without a unit", f"write {value}g for GiB or {value}m for MiB"
        )
    factor = _MIB.get(re.sub("(?:i?b)$", "", unit)) if match else None
    if match is None or factor is None:
        raise ValueFaultError(f"memory is {value!r}", "wanted is a number with m, g or t, like 20g")
    mib = float(match.group(1)) * factor
    if not 1 <= mib <= _MOST_MIB:
        raise ValueFaultError(f"memory is {value!r}", "wanted is at least 1m")
    return int(mib)


def compute(value: str) -> float:
    """``on`` (all of a device), ``off`` (none: memory and tools only), or ``50%``."""
    if value.lower() in ("on", "off"):
        return 100.0 if value.lower() == "on" else 0.0
    match = _PERCENT.fullmatch(value)
    percent = float(match.group(1)) if match else 0.0
    if not 0 < percent <= 100:
        raise ValueFaultError(f"compute is {value!r}", "wanted is on, off, or 1% to 100%")
    return percent


def numa(value: str) -> str | None:
    """``single`` (all devices on one node), a node's number, or None for ``any``."""
    word = value.lower()
    if word == "any":
        return None
    if word == "single" or (_NUMBER.fullmatch(word) and int(word) < 1024):
        return word if word == "single" else str(int(word))
    raise ValueFaultError(f"numa is {value!r}", "wanted is single, any, or the number of a node")


def priority(value: str) -> int:
    """``low``, ``normal``, ``high``, ``urgent``, or 0 (gives way first) to 100."""
    word = value.lower()
    number = int(word) if _NUMBER.fullmatch(word) else _PRIORITIES.get(word, ALL)
    if not 0 <= number <= 100:
        words = ", ".join(_PRIORITIES)
        raise ValueFaultError(f"priority is {value!r}", f"wanted is one of {words}, or 0 to 100")
    return number


def duration(key: str, least_s: float = 0.0) -> Callable[[str], float]:
    """A time such as ``200ms``, ``30s``, ``10m``, ``1h``; ``0`` needs no unit."""

    def read(value: str) -> float:
        match = _TIME.fullmatch(value)
        unit = match.group(2).lower() if match else ""
        if match and unit == "" and float(match.group(1)) == 0 and least_s == 0:
            return 0.0
        if match and unit == "":
            raise ValueFaultError(
                f"{key} is {value!r}, without a unit", f"write {value}s for seconds or {value}ms"
            )
        factor = _SECONDS.get(unit)
        if match is None or factor is None:
            raise ValueFaultError(
                f"{key} is {value!r}", "wanted is a number with us, ms, s, m, h or d, like 30s"
            )
        seconds = float(match.group(1)) * factor
        if seconds < least_s or seconds > 366 * 86400:
            raise ValueFaultError(f"{key} is {value!r}", "wanted is more than 0 and at most a year")
        return seconds

    return read


def word_of(key: str, words: tuple[str, ...], nothing: str = "") -> Callable[[str], str | None]:
    """One of ``words``, in any case; ``nothing`` is a word that stands for "does not say"."""

    def read(value: str) -> str | None:
        word = value.lower()
        if nothing and word == nothing:
            return None
        if word not in words:
            known = ", ".join((*words, *((nothing,) if nothing else ())))
            raise ValueFaultError(f"{key} is {value!r}", f"wanted is one of {known}")
        return word

    return read


# Key -> (field of Claim, reader). The order is that of the documentation.
KEYS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "count": ("count", count),
    "device": ("devices", devices),
    "model": ("models", models),
    "mig": ("mig", mig),
    "memory": ("memory_mib", memory),
    "compute": ("compute_percent", compute),
    "link": ("link", word_of("link", LINKS, "any")),
    "numa": ("numa", numa),
    "policy": ("policy", word_of("policy", ("strict", "shared"))),
    "share": ("share", word_of("share", ("none", "time", "mps", "any"))),
    "rdma": ("rdma", word_of("rdma", ("on", "off", *LINKS[1:]))),
    "priority": ("priority", priority),
    "p99": ("p99_s", duration("p99", 1e-6)),
    "wait": ("wait_s", duration("wait")),
    "minruntime": ("minruntime_s", duration("minruntime")),
}
