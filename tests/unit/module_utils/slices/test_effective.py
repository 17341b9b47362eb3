# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.slices.effective import (
    Machine,
    Reading,
    compare,
    inert,
)
from ansible_collections.steadygpu.host.plugins.module_utils.slices.properties import (
    parse_properties,
)
from ansible_collections.steadygpu.host.plugins.module_utils.slices.verdicts import judge

MACHINE = Machine(
    memory_bytes=2 << 30,
    swap_bytes=1 << 30,
    tasks_max=15000,
    page_bytes=4096,
    devices={"/dev/vda": "254:0"},
    io_cost=False,
    bfq=False,
)


def read(key: str, value: Any, file: str, text: str | None, **more: Any) -> Reading:
    settings = parse_properties({key: value, **more})
    return next(r for r in compare(settings, {file: text}, MACHINE) if r.key == key)


@pytest.mark.parametrize(
    ("key", "value", "file", "good", "bad"),
    [
        ("CPUWeight", 50, "cpu.weight", "50", "100"),
        ("CPUWeight", "idle", "cpu.idle", "1", "0"),
        ("CPUQuota", "300%", "cpu.max", "300000 100000", "200000 100000"),
        ("CPUQuota", "300%", "cpu.max", "30000 10000", "max 100000"),
        ("CPUQuota", "33.33%", "cpu.max", "33330 100000", "33500 100000"),
        ("AllowedCPUs", "0-1", "cpuset.cpus.effective", "0-1", "0"),
        ("AllowedMemoryNodes", "1", "cpuset.mems.effective", "1", "0-1"),
        ("MemoryMin", "1G", "memory.min", "1073741824", "0"),
        ("MemoryLow", "1G", "memory.low", "1073741824", "0"),
        ("MemoryHigh", "1G", "memory.high", "1073741824", "max"),
        ("MemoryMax", "8G", "memory.max", "8589934592", "max"),
        ("MemoryMax", 4097, "memory.max", "4096", "8192"),
        ("MemoryMax", "infinity", "memory.max", "max", "4096"),
        ("MemoryMax", "50%", "memory.max", "1073741824", "2147483648"),
        ("MemorySwapMax", 0, "memory.swap.max", "0", "max"),
        ("MemorySwapMax", "50%", "memory.swap.max", "536870912", "0"),
        ("TasksMax", 512, "pids.max", "512", "513"),
        ("TasksMax", "10%", "pids.max", "1500", "15000"),
        ("IOWeight", 50, "io.weight", "default 50", "default 100"),
        ("IODeviceWeight", ["/dev/vda 7"], "io.weight", "default 100\n254:0 7", "default 100"),
        ("IOReadBandwidthMax", ["/dev/vda 5M"], "io.max", "254:0 rbps=5000000 wbps=max", ""),
        (
            "IOWriteBandwidthMax",
            ["/dev/vda 5M"],
            "io.max",
            "254:0 wbps=5000000",
            "8:0 wbps=5000000",
        ),
        ("IOReadIOPSMax", ["/dev/vda 5K"], "io.max", "254:0 riops=5000", "254:0 riops=max"),
        ("IOWriteIOPSMax", ["/dev/vda 5"], "io.max", "254:0 wiops=5", "254:0 riops=5"),
        ("IODeviceLatencyTargetSec", ["/dev/vda 25ms"], "io.latency", "254:0 target=25000", ""),
    ],
)
def test_what_the_kernel_holds_is_recognised_and_anything_else_is_not(
    key: str, value: Any, file: str, good: str, bad: str
) -> None:
    assert read(key, value, file, good + "\n").ok
    assert not read(key, value, file, bad + "\n").ok


def test_the_period_is_judged_too() -> None:
    good = read("CPUQuotaPeriodSec", "10ms", "cpu.max", "5000 10000", CPUQuota="50%")
    bad = read("CPUQuotaPeriodSec", "10ms", "cpu.max", "50000 100000", CPUQuota="50%")
    assert (good.ok, bad.ok, bad.seen) == (True, False, "100ms")


def test_a_difference_is_told_in_the_words_of_the_unit_file() -> None:
    reading = read("MemoryMax", "8G", "memory.max", "4294967296\n")
    assert (reading.seen, reading.wanted) == ("4G", "8G")


def test_a_missing_controller_is_a_fault_with_a_reason() -> None:
    reading = read("MemoryMax", "8G", "memory.max", None)
    assert not reading.ok
    assert "controller is not enabled" in reading.hint


def test_a_kernel_without_io_weight_is_no_fault_but_the_weight_is_called_inert() -> None:
    settings = parse_properties({"IOWeight": 50})
    assert compare(settings, {}, MACHINE)[0].ok
    assert "no effect" in (inert(settings, MACHINE) or "")


def test_a_weight_that_a_scheduler_heeds_is_not_called_inert() -> None:
    settings = parse_properties({"IOWeight": 50})
    assert inert(settings, replace(MACHINE, bfq=True)) is None
    assert inert(settings, replace(MACHINE, io_cost=True)) is None
    assert inert(parse_properties({"MemoryMax": "8G"}), MACHINE) is None


@pytest.mark.parametrize(
    ("key", "wanted", "text", "ok"),
    [
        ("IOWeight", 400, "default 127\n", True),
        ("IOWeight", 10000, "1000\n", True),
        ("IOWeight", 50, "50\n", True),
        # systemd before 250 passes the number on.
        ("IOWeight", 400, "default 400\n", True),
        ("IOWeight", 400, "default 100\n", False),
        ("IODeviceWeight", {"/dev/vda": 400}, "default 100\n254:0 127\n", True),
        ("IODeviceWeight", {"/dev/vda": 400}, "default 100\n254:0 100\n", False),
    ],
)
def test_a_weight_under_bfq_is_read_where_bfq_reads_it(
    key: str, wanted: Any, text: str, ok: bool
) -> None:
    settings = parse_properties({key: wanted})
    files = {"io.weight": "default 400\n254:0 400\n", "io.bfq.weight": text}
    (reading,) = compare(settings, files, replace(MACHINE, bfq=True))
    assert (reading.ok, reading.file) == (ok, "io.bfq.weight")
    # Where iocost acts, its own file counts.
    (reading,) = compare(
        settings, {**files, "io.weight": "default 1"}, replace(MACHINE, io_cost=True)
    )
    assert not reading.ok


def test_a_weight_without_any_file_does_nothing() -> None:
    settings = parse_properties({"IOWeight": 400})
    machine = replace(MACHINE, bfq=True)
    readings = compare(settings, {}, machine)
    (verdict,) = judge("a.slice", "/a.slice", settings, readings, machine, {}, {})
    assert (verdict.verdict, readings[0].ok) == ("inert", True)
    readings = compare(settings, {"io.bfq.weight": "127"}, machine)
    (verdict,) = judge("a.slice", "/a.slice", settings, readings, machine, {}, {})
    assert verdict.verdict == "effective"
    assert verdict.source.endswith("/a.slice/io.bfq.weight")
