# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.steadygpu.host.plugins.module_utils.slices.properties import (
    parse_properties,
)
from ansible_collections.steadygpu.host.plugins.module_utils.slices.unit_text import (
    assignments,
    complaints,
    drop_in_directories,
    is_ours,
    name_fault,
    overridden,
    render,
)

UNIT = "/tmp/x/ai-workload.slice"

# What systemd 252 says of a unit with one fault of each kind; it exits 0 all the same.
SYSTEMD_252 = """\
/tmp/x/ai-workload.slice:4: Unknown key 'CPUBurst' in section [Slice], ignoring.
/tmp/x/ai-workload.slice:5: Invalid memory limit '8Q', ignoring: Invalid argument
/tmp/x/ai-workload.slice:6: Invalid CPU quota '300', ignoring.
/tmp/x/ai-workload.slice:7: Invalid weight, ignoring: 50000
/tmp/x/ai-workload.slice:9: Failed to parse CPU affinity '0-x'
/tmp/x/ai-workload.slice:10: Missing '=', ignoring line.
/tmp/x/ai-workload.slice:11: Invalid IO limit '5Z', ignoring.
/tmp/x/ai-workload.slice:13: Unknown section 'Bar'. Ignoring.
"""
OTHER_UNITS = """\
/usr/lib/systemd/system/plymouth-start.service:15: Unit uses KillMode=none. This is unsafe.
/etc/systemd/system/old.service:3: Unknown key 'Foo' in section [Service], ignoring.
"""


def test_every_complaint_of_systemd_is_heard() -> None:
    found = complaints(SYSTEMD_252, UNIT)
    assert len(found) == 8
    assert found[0] == "line 4: Unknown key 'CPUBurst' in section [Slice], ignoring."


def test_complaints_about_other_units_are_not_ours() -> None:
    assert complaints(OTHER_UNITS, UNIT) == []
    assert len(complaints(OTHER_UNITS + SYSTEMD_252, UNIT)) == 8


def test_silence_is_consent() -> None:
    assert complaints("", UNIT) == []


def test_what_is_rendered_is_ours_and_reads_back() -> None:
    settings = parse_properties(
        {"MemoryMax": "8G", "IOReadBandwidthMax": ["/dev/vda 5M", "/dev/vdb 6M"]}
    )
    text = render("Training", settings.values())
    assert is_ours(text)
    assert assignments(text) == [
        ("Description", "Training"),
        ("MemoryMax", "8G"),
        ("IOReadBandwidthMax", "/dev/vda 5M"),
        ("IOReadBandwidthMax", "/dev/vdb 6M"),
    ]
    assert overridden(text, settings) == {}


def test_a_percent_sign_is_no_specifier() -> None:
    assert "Description=80%% of the host\n" in render("80% of the host", [])


@given(st.text(alphabet="ab=#;[]\\ \n", max_size=60))
def test_any_text_can_be_read(text: str) -> None:
    for key, _value in assignments(text):
        assert not key.startswith("[")


def test_comments_and_continued_lines() -> None:
    text = "[Slice]\n# MemoryMax=1\n;TasksMax=2\nAllowedCPUs=0 \\\n# between\n  1\nCPUWeight = 5\n"
    assert assignments(text) == [("AllowedCPUs", "0 1"), ("CPUWeight", "5")]


def test_a_drop_in_that_overrides_is_named_and_one_that_agrees_is_not() -> None:
    settings = parse_properties({"MemoryMax": "8G", "TasksMax": 512})
    assert overridden("[Slice]\nMemoryMax=4G\nCPUWeight=5\n", settings) == {"MemoryMax": "4G"}
    assert overridden("[Slice]\nMemoryMax=8G\n", settings) == {}


@pytest.mark.parametrize(
    ("properties", "drop_in"),
    [
        ({"MemoryMax": "8G"}, "MemoryMax=8589934592"),
        ({"MemoryMax": "8G"}, "MemoryMax=4G\nMemoryMax=8192M"),
        ({"CPUQuota": "300%"}, "CPUQuota=300.00%"),
        ({"CPUQuota": "300%", "CPUQuotaPeriodSec": "10ms"}, "CPUQuotaPeriodSec=10000us"),
        ({"AllowedCPUs": "0-3"}, "AllowedCPUs=0 1\nAllowedCPUs=2,3"),
        (
            {"IOReadBandwidthMax": ["/dev/vda 5M", "/dev/vdb 6M"]},
            "IOReadBandwidthMax=/dev/vdb 6000K\nIOReadBandwidthMax=/dev/vda 5M",
        ),
    ],
)
def test_a_drop_in_with_the_same_value_in_other_words_agrees(
    properties: dict[str, Any], drop_in: str
) -> None:
    assert overridden("[Slice]\n" + drop_in + "\n", parse_properties(properties)) == {}


@pytest.mark.parametrize(
    "drop_in", ["MemoryMax=8589934593", "MemoryMax=8G\nMemoryMax=", "MemoryMax=8GB"]
)
def test_a_drop_in_that_resets_or_cannot_be_read_does_not_agree(drop_in: str) -> None:
    assert "MemoryMax" in overridden("[Slice]\n" + drop_in, parse_properties({"MemoryMax": "8G"}))


def test_drop_ins_of_prefixes_and_of_the_type_apply_too() -> None:
    assert drop_in_directories("a-b-c.slice") == [
        "slice.d",
        "a-.slice.d",
        "a-b-.slice.d",
        "a-b-c.slice.d",
    ]


@pytest.mark.parametrize("name", ["ai-workload.slice", "a.slice", "user-1000.slice"])
def test_good_names(name: str) -> None:
    assert name_fault(name) is None


@pytest.mark.parametrize(
    "name",
    ["ai-workload", "-a.slice", "a-.slice", "a--b.slice", "a/b.slice", "x.service", "a b.slice"],
)
def test_bad_names(name: str) -> None:
    assert "no slice name" in (name_fault(name) or "")


@pytest.mark.parametrize("name", ["system.slice", "user.slice", "machine.slice", "-.slice"])
def test_slices_of_systemd_are_left_alone(name: str) -> None:
    assert "belongs to systemd" in (name_fault(name) or "")
