# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The resource-control properties of a slice: what exists, and what a value may be. Pure.

Names, ranges and units: systemd.resource-control(5). What the field keeps asking for and
systemd does not have is listed too, with what is real in its place.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Callable, Union, cast

from .quantities import (
    QuantityError,
    format_indices,
    format_size,
    format_span_us,
    parse_indices,
    parse_percent,
    parse_size,
    parse_span_us,
)

INFINITY = "infinity"
IDLE = "idle"


@dataclass(frozen=True)
class Percent:
    """A share of something that only the host knows: its memory, its swap, one CPU."""

    value: float

    def __str__(self) -> str:
        return f"{self.value:.10g}%"


Scalar = Union[int, str, Percent]
DeviceValues = tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Setting:
    """One validated property.

    ``lines`` are the texts behind ``Key=`` in the unit file, one line each. ``value`` is
    for comparing: bytes, tasks, weight or microseconds as int, a :class:`Percent`,
    ``infinity`` or ``idle``, CPU numbers as ints, or pairs of device path and int.
    """

    key: str
    lines: tuple[str, ...]
    value: Scalar | tuple[int, ...] | DeviceValues


class PropertyError(ValueError):
    """Properties that systemd would ignore or misread; one line for each of them."""


_Parsed = tuple[tuple[str, ...], Union[Scalar, tuple[int, ...], DeviceValues]]


def _weight(raw: Any) -> _Parsed:
    text = _text(raw)
    if not text.isdigit() or not 1 <= int(text) <= 10000:
        raise QuantityError("a whole number from 1 to 10000 (the default is 100)")
    return (str(int(text)),), int(text)


def _cpu_weight(raw: Any) -> _Parsed:
    return ((IDLE,), IDLE) if raw == IDLE else _weight(raw)


def _cpu_quota(raw: Any) -> _Parsed:
    try:
        share = Percent(parse_percent(_text(raw)))
    except QuantityError:
        raise QuantityError("a percentage of one CPU, so 300% for three CPUs") from None
    if share.value <= 0:
        raise QuantityError("more than 0%; leave the property out for no limit")
    return (str(share),), share


def _cpu_period(raw: Any) -> _Parsed:
    span_us = parse_span_us(_text(raw))
    if not 1000 <= span_us <= 1000000:
        raise QuantityError("a time span from 1ms to 1s")
    return (format_span_us(span_us),), span_us


def _indices(raw: Any) -> _Parsed:
    text = ",".join(_text(item) for item in raw) if isinstance(raw, list) else _text(raw)
    numbers = parse_indices(text)
    if not numbers:
        raise QuantityError("at least one number; leave the property out for no restriction")
    return (format_indices(numbers),), numbers


def _amount(raw: Any, form: Callable[[int], str]) -> _Parsed:
    text = _text(raw)
    if text == INFINITY:
        return (INFINITY,), INFINITY
    if text.endswith("%"):
        share = Percent(parse_percent(text))
        if share.value > 100:
            raise QuantityError("at most 100%")
        return (str(share),), share
    amount = parse_size(text)
    return (form(amount),), amount


def _memory(raw: Any) -> _Parsed:
    return _amount(raw, format_size)


def _tasks(raw: Any) -> _Parsed:
    lines, value = _amount(raw, str)
    if value == 0:
        raise QuantityError("at least 1: with 0 tasks nothing could start in the slice")
    return lines, value


def _per_device(raw: Any, parse: Callable[[str], int], form: Callable[[int], str]) -> _Parsed:
    """``["/dev/sda 100M"]`` or ``{"/dev/sda": "100M"}``."""
    if isinstance(raw, dict):
        pairs = [(_text(path), _text(value)) for path, value in raw.items()]
    else:
        words = [_text(item).split() for item in (raw if isinstance(raw, list) else [raw])]
        if not all(len(word) == 2 for word in words):
            raise QuantityError('a list of "PATH VALUE" texts, or a mapping of path to value')
        pairs = [(word[0], word[1]) for word in words]
    if not pairs:
        raise QuantityError("at least one device; leave the property out for none")
    if not all(path.startswith("/") for path, _value in pairs):
        raise QuantityError("absolute paths of block devices or of files on them")
    if len({path for path, _value in pairs}) != len(pairs):
        raise QuantityError("each device only once")
    values = tuple((path, parse(value)) for path, value in pairs)
    return tuple(f"{path} {form(value)}" for path, value in values), values


def _device_weight(raw: Any) -> _Parsed:
    def parse(text: str) -> int:
        return cast(int, _weight(text)[1])

    return _per_device(raw, parse, str)


def _positive_rate(text: str) -> int:
    rate = parse_size(text, decimal=True)
    if rate < 1:
        raise QuantityError("at least 1 for each device")
    return rate


def _device_rate(raw: Any) -> _Parsed:
    return _per_device(raw, _positive_rate, lambda rate: format_size(rate, decimal=True))


def _device_latency(raw: Any) -> _Parsed:
    return _per_device(raw, parse_span_us, format_span_us)


PARSERS: Mapping[str, Callable[[Any], _Parsed]] = {
    "CPUWeight": _cpu_weight,
    "CPUQuota": _cpu_quota,
    "CPUQuotaPeriodSec": _cpu_period,
    "AllowedCPUs": _indices,
    "AllowedMemoryNodes": _indices,
    "MemoryMin": _memory,
    "MemoryLow": _memory,
    "MemoryHigh": _memory,
    "MemoryMax": _memory,
    "MemorySwapMax": _memory,
    "TasksMax": _tasks,
    "IOWeight": _weight,
    "IODeviceWeight": _device_weight,
    "IOReadBandwidthMax": _device_rate,
    "IOWriteBandwidthMax": _device_rate,
    "IOReadIOPSMax": _device_rate,
    "IOWriteIOPSMax": _device_rate,
    "IODeviceLatencyTargetSec": _device_latency,
}

# What people write and systemd would ignore with exit status 0, or what is not for a slice.
_NOT_HERE: Mapping[str, str] = {
    "CPUBurst": "systemd has no such property; the kernel's cpu.max.burst is a file that "
    "systemd does not write, so a value set by hand is not kept for a new cgroup",
    "CPUShares": "the cgroup v1 name; on v2 it is CPUWeight (1-10000, default 100)",
    "CPURTRuntime": "cgroup v2 has no real-time bandwidth in its cpu controller; for the "
    "host see the sysctl kernel.sched_rt_runtime_us",
    "CPUAffinity": "a property of services; a slice restricts CPUs by AllowedCPUs",
    "NUMAMask": "a property of services; a slice restricts memory nodes by AllowedMemoryNodes",
    "NUMAPolicy": "a property of services; a slice restricts memory nodes by AllowedMemoryNodes",
    "MemoryLimit": "the cgroup v1 name; on v2 it is MemoryMax",
    "MemorySwappiness": "cgroup v2 has no swappiness for a group; limit swap by MemorySwapMax",
    "MemoryBandwidth": "no cgroup controller limits memory bandwidth; the kernel's way is "
    "resctrl (Intel RDT, AMD QoS)",
    "BlockIOWeight": "the cgroup v1 name; on v2 it is IOWeight (1-10000, default 100)",
    "IOMax": "the kernel's io.max is set by IOReadBandwidthMax, IOWriteBandwidthMax, "
    "IOReadIOPSMax and IOWriteIOPSMax",
    "GPUMemoryMax": "cgroup v2 has no gpu controller; limit GPU memory by MIG, or by the "
    "driver's memory limits (R615 and later)",
    "GPUWeight": "cgroup v2 has no gpu controller; share a GPU by MIG or MPS",
    "GPUQuota": "cgroup v2 has no gpu controller; share a GPU by MIG or MPS",
    "Delegate": "a property of services and scopes; what is below a slice is systemd's, and one "
    "that others write to loses its controllers when systemd looks again",
    "DeviceAllow": "systemd knows it, this module does not set it: each container gets its "
    "own device rules, from its CDI devices",
    "DevicePolicy": "systemd knows it, this module does not set it: each container gets its "
    "own device rules, from its CDI devices",
}


def parse_properties(raw: Mapping[str, Any]) -> dict[str, Setting]:
    """Validate a mapping of property to value. Raises PropertyError that names them all."""
    settings: dict[str, Setting] = {}
    faults: list[str] = []
    for key, value in raw.items():
        parser = PARSERS.get(key)
        if parser is None:
            faults.append(_unknown(key))
            continue
        try:
            lines, parsed = parser(value)
        except QuantityError as error:
            faults.append(f"{key}={value}: wanted {error}")
            continue
        settings[key] = Setting(key, lines, parsed)
    faults.extend(_contradictions(settings))
    if faults:
        raise PropertyError("\n".join(faults))
    return {key: settings[key] for key in PARSERS if key in settings}


def means(values: Sequence[str], setting: Setting) -> bool:
    """Do these values, the ``Key=VALUE`` lines of a unit file, say what ``setting`` says?

    As systemd.unit(5) has it: an empty value forgets those before it, a list grows by each
    line, and of anything else the last line counts.
    """
    lines = list(values)
    if "" in lines:
        lines = lines[len(lines) - lines[::-1].index("") :]
    if not lines:
        return False
    grows = isinstance(setting.value, tuple)
    try:
        _lines, value = PARSERS[setting.key](lines if grows else lines[-1])
    except QuantityError:
        # systemd may read what this module does not; then it is not known to agree.
        return False
    if isinstance(value, tuple) and isinstance(setting.value, tuple):
        return set(value) == set(setting.value)
    return value == setting.value


def advice(settings: Mapping[str, Setting]) -> list[str]:
    """What is allowed and still likely to hurt."""
    high, limit = _bytes(settings, "MemoryHigh"), _bytes(settings, "MemoryMax")
    # Seen in the lab: just under the maximum, reclaim throttles the slice for minutes
    # before the OOM killer may act.
    if high is not None and limit is not None and limit * 9 // 10 < high < limit:
        return [
            f"MemoryHigh={format_size(high)} is just under MemoryMax={format_size(limit)}: "
            "work that grows into the gap is throttled for minutes instead of failing. Keep "
            "MemoryHigh at or below 90% of MemoryMax, or leave it out."
        ]
    return []


def _unknown(key: str) -> str:
    truths = {name.lower(): text for name, text in _NOT_HERE.items()}
    known = truths.get(key.lower())
    if known is not None:
        return f"{key}: {known}"
    lowered = {name.lower(): name for name in PARSERS}
    near = [lowered[n] for n in difflib.get_close_matches(key.lower(), lowered, 3, 0.6)]
    return "{}: no such property here. {}: {}".format(
        key, "Did you mean" if near else "Known are", ", ".join(near or PARSERS)
    )


# A protection above a limit, or a soft limit above the hard one, can never come true.
_MEMORY_ORDER = ("MemoryMin", "MemoryLow", "MemoryHigh", "MemoryMax")


def _contradictions(settings: Mapping[str, Setting]) -> list[str]:
    faults = []
    named = [(key, _bytes(settings, key)) for key in _MEMORY_ORDER]
    sizes = [(key, size) for key, size in named if size is not None]
    for (lower, small), (upper, large) in zip(sizes, sizes[1:]):
        if small > large:
            faults.append(
                f"{lower}={format_size(small)} is above {upper}={format_size(large)}: wanted "
                "MemoryMin <= MemoryLow <= MemoryHigh <= MemoryMax"
            )
    quota, period = settings.get("CPUQuota"), settings.get("CPUQuotaPeriodSec")
    if period is not None and quota is None:
        faults.append("CPUQuotaPeriodSec: has no effect without CPUQuota")
    elif period is not None and quota is not None:
        share, period_us = cast(Percent, quota.value), cast(int, period.value)
        # systemd lengthens the period silently where the quota would be under 1 ms.
        if share.value / 100 * period_us < 1000:
            faults.append(
                f"CPUQuota={quota.lines[0]} of CPUQuotaPeriodSec={period.lines[0]} is under "
                "1 ms, the smallest quota of the kernel: wanted a longer period"
            )
    return faults


def _bytes(settings: Mapping[str, Setting], key: str) -> int | None:
    setting = settings.get(key)
    return setting.value if setting is not None and isinstance(setting.value, int) else None


def _text(raw: Any) -> str:
    if isinstance(raw, bool) or not isinstance(raw, (str, int, float)):
        raise QuantityError(f"a text or a number, not {type(raw).__name__}")
    return str(raw).strip()
