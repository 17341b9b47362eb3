# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import math

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.probe.limits import (
    Group,
    limits_of_unit,
    span_us,
    spelled,
    tightest,
)


def test_the_limits_of_a_slice_as_systemd_shows_them() -> None:
    shown = {"MemoryMax": "8589934593", "TasksMax": "512", "CPUQuotaPerSecUSec": "3s"}
    assert limits_of_unit(shown, 4096) == {
        "memory.max": 8589934592,
        "pids.max": 512,
        "cpu.max": 300,
    }


def test_what_is_not_limited_is_not_listed() -> None:
    shown = {"MemoryMax": "infinity", "TasksMax": "infinity", "CPUQuotaPerSecUSec": "infinity"}
    assert limits_of_unit(shown, 4096) == {}


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("3s", 3000000),
        ("1min 500ms", 60500000),
        ("333.3ms", 333300),
        ("infinity", None),
        ("", None),
    ],
)
def test_time_spans_of_systemctl(text: str, span: int | None) -> None:
    assert span_us(text) == span


def test_the_kernels_texts_are_the_same_numbers() -> None:
    group = Group("/ai.slice", {"cpu.max": "150000 100000", "pids.max": "max"})
    assert group.limit("cpu.max") == 150
    assert group.limit("pids.max") == math.inf
    assert group.limit("memory.max") is None
    assert spelled("cpu.max", 150) == "cpu.max 150% of a CPU"
    assert spelled("memory.max", 8589934592) == "memory.max 8589934592"
    assert spelled("pids.max", math.inf) == "pids.max max"
    assert spelled("pids.max", None) == "pids.max: no such file"


def test_the_tightest_limit_on_the_way_up_is_found_with_its_place() -> None:
    path = [
        Group("/a.slice/a-b.slice/x.scope", {"memory.max": "max", "pids.max": "64"}),
        Group("/a.slice/a-b.slice", {"memory.max": "8192", "pids.max": "64"}),
        Group("/a.slice", {"memory.max": "4096", "pids.max": None}),
    ]
    assert tightest(path, "memory.max") == (4096, "/a.slice")
    assert tightest(path, "pids.max") == (64, "/a.slice/a-b.slice/x.scope")
    assert tightest(path, "cpu.max") == (math.inf, "")
