# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Is what was asked for what the kernel holds? Settings against cgroup files. Pure.

File names and formats: the kernel's admin-guide/cgroup-v2.rst. What systemd writes into
which file: systemd.resource-control(5).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Callable, Optional, cast

from .properties import IDLE, INFINITY, Percent, Setting
from .quantities import format_indices, format_size, format_span_us, parse_indices

Files = Mapping[str, Optional[str]]


@dataclass(frozen=True)
class Machine:
    """What a host must say before a percentage or a device path means a number.

    ``memory_bytes`` and ``swap_bytes`` are totals; ``tasks_max`` is the smaller of
    pid_max and threads-max; ``page_bytes`` is the grain of memory limits; ``devices``
    maps a path of the settings to ``MAJOR:MINOR`` of the whole disk behind it; ``io_cost``
    and ``bfq`` say whether any disk heeds IO weights, ``heedless`` which disks do not.
    """

    memory_bytes: int
    swap_bytes: int
    tasks_max: int
    page_bytes: int
    devices: Mapping[str, str]
    io_cost: bool
    bfq: bool
    heedless: tuple[str, ...] = ()


@dataclass(frozen=True)
class Reading:
    """One property as the kernel has it: ``seen`` and ``wanted`` in the unit's spelling.

    ``hint`` names the likely reason when the two differ. ``file`` is the cgroup file that was
    read, where it is another than in :data:`FILES`; ``idle`` is why the value does nothing.
    """

    key: str
    seen: str
    wanted: str
    ok: bool
    hint: str = ""
    file: str = ""
    idle: str = ""


# The file that holds a property in the slice's cgroup directory.
FILES: Mapping[str, str] = {
    "CPUWeight": "cpu.weight",
    "CPUQuota": "cpu.max",
    "CPUQuotaPeriodSec": "cpu.max",
    "AllowedCPUs": "cpuset.cpus.effective",
    "AllowedMemoryNodes": "cpuset.mems.effective",
    "MemoryMin": "memory.min",
    "MemoryLow": "memory.low",
    "MemoryHigh": "memory.high",
    "MemoryMax": "memory.max",
    "MemorySwapMax": "memory.swap.max",
    "TasksMax": "pids.max",
    "IOWeight": "io.weight",
    "IODeviceWeight": "io.weight",
    "IOReadBandwidthMax": "io.max",
    "IOWriteBandwidthMax": "io.max",
    "IOReadIOPSMax": "io.max",
    "IOWriteIOPSMax": "io.max",
    "IODeviceLatencyTargetSec": "io.latency",
}
_BFQ_FILE = "io.bfq.weight"
# Read as well, for the judgement of an idle weight and of weights that bfq heeds.
EXTRA_FILES = ("cpu.idle", _BFQ_FILE)

_WEIGHTS = ("IOWeight", "IODeviceWeight")


def compare(settings: Mapping[str, Setting], files: Files, machine: Machine) -> list[Reading]:
    """One reading for each setting. ``files`` maps a cgroup file name to its text or None."""
    return [_reading(setting, files, machine) for setting in settings.values()]


def inert(settings: Mapping[str, Setting], machine: Machine) -> str | None:
    """Why IO weights do nothing on this host, or None. It is no error: it is a truth."""
    named = [key for key in _WEIGHTS if key in settings]
    if not named or machine.io_cost or machine.bfq:
        return None
    return (
        "{} has no effect on this host now: no disk has iocost enabled (io.cost.qos in the "
        "root cgroup) or the bfq scheduler (/sys/block/*/queue/scheduler). Limits such as "
        "IOReadBandwidthMax work without either. The role io gives disks one of the two.".format(
            " and ".join(named)
        )
    )


def inert_in_part(settings: Mapping[str, Setting], machine: Machine) -> str | None:
    """On which disks IO weights do nothing while others heed them, or None."""
    named = [key for key in _WEIGHTS if key in settings]
    if not named or not machine.heedless or not (machine.io_cost or machine.bfq):
        return None
    return "{} has no effect on {}: neither iocost nor bfq is in use there.".format(
        " and ".join(named), ", ".join(machine.heedless)
    )


def _reading(setting: Setting, files: Files, machine: Machine) -> Reading:
    wanted = "; ".join(setting.lines)
    text = files.get(FILES[setting.key])
    if setting.value == IDLE:
        text = files.get("cpu.idle")
    if setting.key in _WEIGHTS and machine.bfq and not machine.io_cost:
        by_bfq = _bfq_reading(setting, files.get(_BFQ_FILE), wanted, machine)
        if by_bfq is not None:
            return by_bfq
    if text is None:
        if setting.key in _WEIGHTS:
            # A kernel that schedules by no weight has no such file.
            idle = "the slice has no file for weights, so the kernel heeds none here"
            return Reading(setting.key, "no io.weight file", wanted, True, idle=idle)
        return Reading(
            setting.key,
            f"no file {FILES[setting.key]}",
            wanted,
            False,
            "the controller is not enabled here: look at cgroup.controllers in the parent's "
            "cgroup directory and at cgroup_disable= on the kernel command line",
        )
    seen, ok = _COMPARE[setting.key](setting, text.strip(), machine)
    return Reading(setting.key, seen, wanted, ok, "" if ok else _HINTS.get(setting.key, ""))


def _bfq_reading(
    setting: Setting, text: str | None, wanted: str, machine: Machine
) -> Reading | None:
    """What bfq itself goes by; None where the kernel or systemd has no such value."""
    table = _per_device(text or "")
    if setting.key == "IOWeight":
        # Kernels before 5.4 print the number alone.
        seen = _number(table.get("default") or (text or "").strip())
        if seen is None:
            return None
        weight = cast(int, setting.value)
        ok = seen in _bfq_weights(weight)
        shown = str(weight) if ok else f"{seen} of bfq"
        return Reading(setting.key, shown, wanted, ok, "" if ok else _BFQ_HINT, _BFQ_FILE)
    pairs = cast("tuple[tuple[str, int], ...]", setting.value)
    weights = [_number(table.get(machine.devices.get(path, ""))) for path, _weight in pairs]
    if None in weights:
        # Not all of these disks have bfq, or systemd tells bfq of no single disks.
        return None
    ok = all(seen in _bfq_weights(weight) for seen, (_path, weight) in zip(weights, pairs))
    shown = "; ".join(f"{path} {seen} of bfq" for seen, (path, _weight) in zip(weights, pairs))
    return Reading(
        setting.key, wanted if ok else shown, wanted, ok, "" if ok else _BFQ_HINT, _BFQ_FILE
    )


_BFQ_HINT = "bfq goes by io.bfq.weight, which systemd sets when it sets the weight"


def _bfq_weights(weight: int) -> tuple[int, int]:
    """What systemd makes of 1..10000 for bfq's 1..1000: two straight lines that meet at 100.

    Before version 250 it was the weight itself.
    """
    spread = weight if weight <= 100 else 100 + (weight - 100) * 900 // 9900
    return spread, min(weight, 1000)


_HINTS: Mapping[str, str] = {
    "AllowedCPUs": "a parent slice allows fewer CPUs, or some of these are not online",
    "AllowedMemoryNodes": "a parent slice allows fewer nodes, or some of these have no memory",
    "CPUQuota": "cpu.max.burst above the quota, set by hand, blocks a lower quota",
}


def _same_weight(setting: Setting, text: str, _machine: Machine) -> tuple[str, bool]:
    if setting.value == IDLE:
        return (IDLE if text == "1" else "not idle"), text == "1"
    return text, text == str(setting.value)


def _same_quota(setting: Setting, text: str, _machine: Machine) -> tuple[str, bool]:
    quota, _space, period = text.partition(" ")
    if not quota.isdigit():
        return INFINITY, False
    wanted = cast(Percent, setting.value)
    percent = int(quota) * 100 / int(period)
    # systemd rounds the quota to whole microseconds.
    return f"{percent:.6g}%", abs(percent - wanted.value) <= 200 / int(period)


def _same_period(setting: Setting, text: str, _machine: Machine) -> tuple[str, bool]:
    period_us = int(text.split()[-1])
    return format_span_us(period_us), period_us == setting.value


def _same_indices(setting: Setting, text: str, _machine: Machine) -> tuple[str, bool]:
    numbers = parse_indices(text)
    return format_indices(numbers) or "none", numbers == setting.value


def _same_amount(
    setting: Setting, text: str, whole: int, grain: int, form: Callable[[int], str]
) -> tuple[str, bool]:
    """Compare a limit; ``whole`` is what 100% means, ``grain`` what the kernel rounds to."""
    if text == "max":
        return INFINITY, setting.value == INFINITY
    seen = int(text)
    if isinstance(setting.value, Percent):
        target = whole * setting.value.value / 100
        # A total may be counted a little differently by systemd: one part in a hundred.
        return form(seen), abs(seen - target) <= max(grain, target / 100)
    if not isinstance(setting.value, int):
        return form(seen), False
    return form(seen), seen == setting.value // grain * grain


def _same_memory(setting: Setting, text: str, machine: Machine) -> tuple[str, bool]:
    whole = machine.swap_bytes if setting.key == "MemorySwapMax" else machine.memory_bytes
    return _same_amount(setting, text, whole, machine.page_bytes, format_size)


def _same_tasks(setting: Setting, text: str, machine: Machine) -> tuple[str, bool]:
    return _same_amount(setting, text, machine.tasks_max, 1, str)


def _per_device(text: str) -> dict[str, str]:
    """``8:0 rbps=1 wbps=max`` as {"8:0": "rbps=1 wbps=max"}; ``default`` is a key as well."""
    pairs = (line.strip().partition(" ") for line in text.splitlines() if line.strip())
    return {device: rest for device, _space, rest in pairs}


def _same_io_weight(setting: Setting, text: str, _machine: Machine) -> tuple[str, bool]:
    seen = _per_device(text).get("default", "none")
    return seen, seen == str(setting.value)


def _same_on_devices(
    setting: Setting, machine: Machine, seen_for: Callable[[str], int | None]
) -> tuple[str, bool]:
    shown, ok = [], True
    pairs = cast("tuple[tuple[str, int], ...]", setting.value)
    for (path, wanted), line in zip(pairs, setting.lines):
        seen = seen_for(machine.devices.get(path, ""))
        shown.append(line if seen == wanted else f"{path} {seen or INFINITY}")
        ok = ok and seen == wanted
    return "; ".join(shown), ok


def _same_device_weight(setting: Setting, text: str, machine: Machine) -> tuple[str, bool]:
    table = _per_device(text)
    return _same_on_devices(setting, machine, lambda device: _number(table.get(device)))


_IO_FIELDS: Mapping[str, str] = {
    "IOReadBandwidthMax": "rbps",
    "IOWriteBandwidthMax": "wbps",
    "IOReadIOPSMax": "riops",
    "IOWriteIOPSMax": "wiops",
    "IODeviceLatencyTargetSec": "target",
}


def _same_device_field(setting: Setting, text: str, machine: Machine) -> tuple[str, bool]:
    table, field = _per_device(text), _IO_FIELDS[setting.key]

    def seen_for(device: str) -> int | None:
        fields = dict(part.split("=", 1) for part in table.get(device, "").split() if "=" in part)
        return _number(fields.get(field))

    return _same_on_devices(setting, machine, seen_for)


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdigit() else None


_COMPARE: Mapping[str, Callable[[Setting, str, Machine], tuple[str, bool]]] = {
    "CPUWeight": _same_weight,
    "CPUQuota": _same_quota,
    "CPUQuotaPeriodSec": _same_period,
    "AllowedCPUs": _same_indices,
    "AllowedMemoryNodes": _same_indices,
    "MemoryMin": _same_memory,
    "MemoryLow": _same_memory,
    "MemoryHigh": _same_memory,
    "MemoryMax": _same_memory,
    "MemorySwapMax": _same_memory,
    "TasksMax": _same_tasks,
    "IOWeight": _same_io_weight,
    "IODeviceWeight": _same_device_weight,
    "IOReadBandwidthMax": _same_device_field,
    "IOWriteBandwidthMax": _same_device_field,
    "IOReadIOPSMax": _same_device_field,
    "IOWriteIOPSMax": _same_device_field,
    "IODeviceLatencyTargetSec": _same_device_field,
}
