# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How much burst a slice is to have, and what its quota allows. Pure.

The kernel's rule: ``cpu.max.burst`` lies in [0, quota of one period]
(admin-guide/cgroup-v2.rst, scheduler/sched-bwc.rst).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..slices.quantities import QuantityError, format_span_us, parse_percent, parse_span_us
from ..slices.unit_text import name_fault

_PERIOD_US = 100_000
_LEAST_QUOTA_US = 1_000
_LONGEST_PERIOD_US = 1_000_000
_UNITS_US = {
    "us": 1.0,
    "ms": 1e3,
    "s": 1e6,
    "min": 60e6,
    "h": 3600e6,
    "d": 86400e6,
    "w": 7 * 86400e6,
    "month": 30.44 * 86400e6,
    "y": 365.25 * 86400e6,
}


class BurstError(Exception):
    """The burst cannot be what was asked. The message says what was seen and what to do."""


@dataclass(frozen=True)
class Wish:
    """``percent`` is of the quota, which it then follows; else ``span_us`` is one fixed amount."""

    slice: str
    text: str
    percent: float | None = None
    span_us: int | None = None

    def wanted_us(self, quota_us: int) -> int:
        """The burst for a quota, as much of it as the kernel allows."""
        if self.percent is not None:
            return int(quota_us * self.percent / 100)
        return min(self.span_us or 0, quota_us)


@dataclass(frozen=True)
class Seen:
    """A slice as systemd and the kernel have it.

    ``known`` says that there is a unit file of that name, or a living group; ``control_group`` is
    "" while it is not active. ``quota_us`` and ``period_us`` are those of ``cpu.max``,
    ``asked_us`` and ``asked_period_us`` what systemd was told; a quota of None is no limit.
    ``burst_us`` is None without such a file, ``has_cpu_max`` says whether there is a cpu
    controller at all.
    """

    slice: str
    known: bool = False
    control_group: str = ""
    has_cpu_max: bool = False
    quota_us: int | None = None
    period_us: int = _PERIOD_US
    burst_us: int | None = None
    asked_us: int | None = None
    asked_period_us: int = _PERIOD_US


def parse(name: str, raw: object) -> Wish:
    """``100%`` of the quota, or a span such as ``50ms``. Raises BurstError."""
    fault = name_fault(name)
    if fault:
        raise BurstError(fault)
    wanted = "wanted a percentage of the slice's quota, up to 100%, or a time span such as 50ms"
    if isinstance(raw, bool) or not isinstance(raw, str):
        raise BurstError(f"burst of {name}: {raw!r}; {wanted}, as text")
    text = raw.strip()
    try:
        if text.endswith("%"):
            percent = parse_percent(text)
            if percent > 100:
                raise BurstError(
                    f"burst of {name}: {text} is more than its quota, and the kernel allows no "
                    f"more than the quota (cpu.max.burst in cgroup-v2.rst); {wanted}"
                )
            return Wish(name, text, percent=percent)
        return Wish(name, format_span_us(parse_span_us(text)), span_us=parse_span_us(text))
    except QuantityError as error:
        raise BurstError(f"burst of {name}: {text!r}; {wanted}") from error


def above_quota(wish: Wish, seen: Seen) -> str | None:
    """Why a fixed burst does not fit the quota that systemd was told, or None."""
    quota_us = seen.asked_us if seen.asked_us is not None else seen.quota_us
    if wish.span_us is None or quota_us is None or wish.span_us <= quota_us:
        return None
    return (
        f"burst of {wish.slice}: {format_span_us(wish.span_us)} is above its quota of "
        f"{format_span_us(quota_us)} in each period of {format_span_us(seen.asked_period_us)}, and "
        "the kernel takes no burst above the quota. Wanted at most that, or 100%, which follows "
        "the quota"
    )


def why_not(wish: Wish, seen: Seen) -> tuple[str, str] | None:
    """("unsupported", "inert" or "pending", the reason) where nothing can be written, or None."""
    name = wish.slice
    if not seen.control_group:
        return "pending", f"{name} is not active: its burst is set as soon as it starts"
    if not seen.has_cpu_max:
        return "unsupported", f"{name} has no cpu.max: its cgroup has no cpu controller"
    if seen.burst_us is None:
        return "unsupported", "this kernel has no cpu.max.burst (there from Linux 5.14 on)"
    if seen.quota_us is None and seen.asked_us is None:
        return "inert", f"{name} has no CPUQuota, so there is nothing to burst above"
    return None


def blocked(seen: Seen) -> bool:
    """Did the burst keep systemd from lowering the quota? Then what it was told is not so."""
    if seen.asked_us is None or seen.burst_us is None or not seen.burst_us:
        return False
    asked, has = (seen.asked_us, seen.asked_period_us), (seen.quota_us, seen.period_us)
    return asked != has and seen.burst_us > seen.asked_us


def asked_quota(per_second: str, period: str) -> tuple[int | None, int]:
    """(quota, period) in microseconds that systemd writes for the two properties it shows.

    ``CPUQuotaPerSecUSec`` and ``CPUQuotaPeriodUSec`` as ``systemctl show`` prints them. A quota is
    at least 1 ms, and the period is lengthened for that, up to 1 s (systemd, core/cgroup.c).
    """
    second_us, wanted_us = span_us(per_second), span_us(period)
    if not second_us:
        return None, wanted_us or _PERIOD_US
    period_us = wanted_us or _PERIOD_US
    period_us = min(max(period_us, _LEAST_QUOTA_US * 1_000_000 // second_us), _LONGEST_PERIOD_US)
    return max(second_us * period_us // 1_000_000, _LEAST_QUOTA_US), period_us


def span_us(text: str) -> int | None:
    """``1min 1.5s`` in microseconds; None for ``infinity`` and for what is no span."""
    total = 0.0
    words = text.split()
    for word in words:
        match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)(us|ms|s|min|h|d|w|month|y)", word)
        if match is None:
            return None
        total += float(match.group(1)) * _UNITS_US[match.group(2)]
    return round(total) if words else None
