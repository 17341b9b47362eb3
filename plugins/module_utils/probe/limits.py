# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The limits of memory, tasks and CPU on the way from a container up to its slice. Pure.

A limit is a number: bytes, tasks, or percent of one CPU; no limit is infinity.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

FILES = ("memory.max", "pids.max", "cpu.max")


@dataclass(frozen=True)
class Group:
    """One cgroup: its path, and the text of each of :data:`FILES` (None: no such file)."""

    path: str
    files: Mapping[str, str | None]

    def limit(self, file: str) -> float | None:
        """The limit in ``file``; None when there is no such file."""
        text = self.files.get(file)
        return None if text is None else _number(file, text)


def limits_of_unit(shown: Mapping[str, str], page_bytes: int) -> dict[str, float]:
    """The limits of a slice as systemd holds them, by cgroup file; only those that are set.

    ``shown`` is ``systemctl show`` of MemoryMax, TasksMax and CPUQuotaPerSecUSec. Memory is
    rounded to pages, as the kernel does.
    """
    limits: dict[str, float] = {}
    if shown.get("MemoryMax", "").isdigit():
        limits["memory.max"] = int(shown["MemoryMax"]) // page_bytes * page_bytes
    if shown.get("TasksMax", "").isdigit():
        limits["pids.max"] = int(shown["TasksMax"])
    quota_us = span_us(shown.get("CPUQuotaPerSecUSec", ""))
    if quota_us is not None:
        limits["cpu.max"] = round(quota_us / 10000, 1)
    return limits


def tightest(path: Sequence[Group], file: str) -> tuple[float, str]:
    """The lowest limit on the way up, and the path of the (lowest) group that sets it."""
    found = [(group.limit(file), group.path) for group in path]
    return min(
        ((limit, where) for limit, where in found if limit is not None),
        key=lambda pair: pair[0],
        default=(math.inf, ""),
    )


def spelled(file: str, limit: float | None) -> str:
    """``memory.max 8589934592``, ``cpu.max 300% of a CPU``, ``pids.max max``."""
    if limit is None:
        return f"{file}: no such file"
    if math.isinf(limit):
        return f"{file} max"
    return f"{file} {limit:g}% of a CPU" if file == "cpu.max" else f"{file} {limit:.0f}"


def _number(file: str, text: str) -> float:
    amount, _space, period = text.partition(" ")
    if amount == "max":
        return math.inf
    return round(int(amount) * 100 / int(period), 1) if file == "cpu.max" else int(amount)


_SPAN_UNITS = {"us": 1, "ms": 10**3, "s": 10**6, "min": 60 * 10**6, "h": 3600 * 10**6}


def span_us(text: str) -> int | None:
    """A time span as systemctl prints it (``3s``, ``1min 500ms``) in microseconds."""
    parts = [re.fullmatch(r"([0-9.]+)(us|ms|s|min|h)", word) for word in text.split()]
    if not parts or None in parts:
        return None
    return round(sum(float(m.group(1)) * _SPAN_UNITS[m.group(2)] for m in parts if m))
