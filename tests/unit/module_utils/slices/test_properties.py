# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.slices.properties import (
    Percent,
    PropertyError,
    advice,
    parse_properties,
)


def fault(properties: dict[str, Any]) -> str:
    with pytest.raises(PropertyError) as caught:
        parse_properties(properties)
    return str(caught.value)


def test_the_slice_of_the_articles() -> None:
    settings = parse_properties(
        {"MemoryMax": "8G", "CPUQuota": "300%", "IOWeight": 50, "TasksMax": "512"}
    )
    assert settings["MemoryMax"].value == 8 << 30
    assert settings["CPUQuota"].value == Percent(300)
    assert settings["IOWeight"].value == 50
    assert settings["TasksMax"].lines == ("512",)


def test_the_same_wish_is_always_rendered_in_the_same_order() -> None:
    one = parse_properties({"TasksMax": 5, "CPUWeight": 10})
    two = parse_properties({"CPUWeight": 10, "TasksMax": 5})
    assert list(one) == list(two) == ["CPUWeight", "TasksMax"]


@pytest.mark.parametrize(
    ("properties", "says"),
    [
        ({"CPUBurst": "20ms"}, "cpu.max.burst"),
        ({"cpuburst": "20ms"}, "cpu.max.burst"),
        ({"MemoryBandwidth": "50%"}, "resctrl"),
        ({"GPUMemoryMax": "8G"}, "no gpu controller"),
        ({"MemoryLimit": "8G"}, "MemoryMax"),
        ({"IOMax": "5M"}, "IOReadBandwidthMax"),
        ({"MemryMax": "8G"}, "Did you mean: MemoryMax"),
        ({"memorymax": "8G"}, "Did you mean: MemoryMax"),
        ({"Zebra": 1}, "Known are: CPUWeight"),
    ],
)
def test_a_property_that_does_not_exist_names_the_real_way(
    properties: dict[str, Any], says: str
) -> None:
    assert says in fault(properties)


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        ("CPUQuota", "300", "300% for three CPUs"),
        ("CPUQuota", "0%", "more than 0%"),
        ("CPUWeight", 0, "from 1 to 10000"),
        ("CPUWeight", "lazy", "from 1 to 10000"),
        ("IOWeight", 50000, "from 1 to 10000"),
        ("IOWeight", "idle", "from 1 to 10000"),
        ("MemoryMax", "8Q", "K, M, G or T"),
        ("MemoryMax", "101%", "at most 100%"),
        ("MemoryMax", True, "not bool"),
        ("MemoryMax", None, "not NoneType"),
        ("TasksMax", 0, "at least 1"),
        ("AllowedCPUs", "0-x", "0-3,8"),
        ("AllowedCPUs", "", "at least one"),
        ("IODeviceWeight", ["/dev/sda"], "PATH VALUE"),
        ("IODeviceWeight", ["sda 100"], "absolute paths"),
        ("IODeviceWeight", ["/dev/sda 100", "/dev/sda 200"], "only once"),
        ("IODeviceWeight", [], "at least one device"),
        ("IOReadBandwidthMax", ["/dev/sda 0"], "at least 1"),
        ("IODeviceLatencyTargetSec", ["/dev/sda fast"], "25ms"),
    ],
)
def test_a_bad_value_says_what_was_wanted(key: str, value: Any, says: str) -> None:
    text = fault({key: value})
    assert text.startswith(key + "=")
    assert says in text


def test_all_faults_are_told_at_once() -> None:
    assert len(fault({"CPUBurst": 1, "MemoryMax": "8Q", "TasksMax": 0}).splitlines()) == 3


@pytest.mark.parametrize(
    ("properties", "says"),
    [
        ({"MemoryHigh": "9G", "MemoryMax": "8G"}, "MemoryHigh=9G is above MemoryMax=8G"),
        ({"MemoryMin": "2G", "MemoryMax": "1G"}, "MemoryMin=2G is above MemoryMax=1G"),
        ({"CPUQuotaPeriodSec": "10ms"}, "no effect without CPUQuota"),
        ({"CPUQuotaPeriodSec": "2s", "CPUQuota": "50%"}, "1ms to 1s"),
        ({"CPUQuotaPeriodSec": "1ms", "CPUQuota": "50%"}, "under 1 ms"),
    ],
)
def test_contradictions_are_refused(properties: dict[str, Any], says: str) -> None:
    assert says in fault(properties)


def test_devices_as_a_list_or_a_mapping() -> None:
    as_list = parse_properties({"IOWriteBandwidthMax": ["/dev/vda 200M"]})
    as_mapping = parse_properties({"IOWriteBandwidthMax": {"/dev/vda": "200M"}})
    assert as_list == as_mapping
    assert as_list["IOWriteBandwidthMax"].value == (("/dev/vda", 200000000),)


def test_a_soft_limit_just_under_the_hard_one_is_warned_about() -> None:
    assert "throttled" in advice(parse_properties({"MemoryHigh": "7900M", "MemoryMax": "8G"}))[0]
    assert advice(parse_properties({"MemoryHigh": "7G", "MemoryMax": "8G"})) == []
