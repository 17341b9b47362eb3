# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.steadygpu.host.plugins.module_utils.mig.config import parse
from ansible_collections.steadygpu.host.plugins.module_utils.mig.model import (
    ConfigError,
    GpuLayout,
    Wanted,
)
from ansible_collections.steadygpu.host.plugins.module_utils.mig.resolve import resolve
from ansible_collections.steadygpu.host.plugins.module_utils.mig.selectors import select
from ansible_collections.steadygpu.host.tests.unit.module_utils.mig.machine import gpu

HOST = [gpu("A100", 0), gpu("A100-80", 1), gpu("A30", 2), gpu("T4", 3, on=False)]
OFF, MODE = Wanted(False), Wanted(True)
DEFAULT = parse(
    json.loads(
        (Path(__file__).parent / "data" / "mig-parted-config-default.json").read_text("utf-8")
    )
)


def entry(devices: object = "all", **more: Any) -> dict[str, Any]:
    made = {"devices": devices, "mig-enabled": True, "mig-devices": {}}
    return {**made, **{key.replace("_", "-"): value for key, value in more.items()}}


def by_index(
    layout: object, gpus: Sequence[GpuLayout] = tuple(HOST), **files: Any
) -> dict[int, Wanted]:
    configs = parse({"version": "v1", "mig-configs": files}) if files else {}
    wanted = resolve(layout, configs, list(gpus)).wanted
    return {one.index: wanted[one.uuid] for one in gpus if one.uuid in wanted}


@pytest.mark.parametrize(
    ("selector", "indices"),
    [
        ("all", [0, 1, 2, 3]),
        (2, [2]),
        ("2", [2]),
        (HOST[1].uuid, [1]),
        (HOST[1].uuid.upper(), [1]),
        ("0000:08:00.0", [1]),
        ("00000000:08:00.0", [1]),
        ("08:00.0", [1]),
        ("8:0", [1]),
        ("NVIDIA A100-SXM4-40GB", [0]),
        ("A100-SXM4-40GB", [0]),
        ("a100", [0, 1]),
        ("*A100*", [0, 1]),
        ("Tesla T?", [3]),
        ("NVIDIA *", [0, 1, 2]),
    ],
)
def test_a_gpu_is_named_in_many_ways(selector: object, indices: list[int]) -> None:
    assert [one.index for one in select(selector, HOST, "here")] == indices


@pytest.mark.parametrize(
    "selector", [4, "²", "A10", "A3", "H20", "GPU-nonsense", "0001:07:00.0", "09:00.1", "", True]
)
def test_a_selector_that_names_nothing_lists_what_there_is(selector: object) -> None:
    with pytest.raises(
        ConfigError, match=r"here: .* names no GPU here; there are: 0 = NVIDIA A100"
    ):
        select(selector, HOST, "here")


def test_a_mig_device_is_not_a_gpu() -> None:
    with pytest.raises(ConfigError, match="is a MIG device"):
        select("MIG-1c88c6f6-0000-0000-0000-000000000000", HOST, "here")


def test_a_model_is_matched_by_whole_words() -> None:
    two = [replace(HOST[0], name="NVIDIA H200"), replace(HOST[1], name="NVIDIA GB200")]

    assert [one.index for one in select("H200", two, "here")] == [0]
    for word in ("H20", "B200"):
        with pytest.raises(ConfigError):
            select(word, two, "here")


@pytest.mark.parametrize(
    ("layout", "wanted"),
    [
        ("all-disabled", {0: OFF, 1: OFF, 2: OFF}),
        ("all-enabled", {index: Wanted(True, {}) for index in range(3)}),
        (
            "all-balanced",
            {
                0: Wanted(True, {"1g.5gb": 2, "2g.10gb": 1, "3g.20gb": 1}),
                1: Wanted(True, {"1g.10gb": 2, "2g.20gb": 1, "3g.40gb": 1}),
                2: Wanted(True, {"1g.6gb": 2, "2g.12gb": 1}),
            },
        ),
        # Seven on 80 GB, four on 40 GB; an A30 has none and is left alone.
        ("all-1g.10gb", {0: Wanted(True, {"1g.10gb": 4}), 1: Wanted(True, {"1g.10gb": 7})}),
        (
            [entry(mig_devices={"1g.10gb": 1})],
            dict.fromkeys(range(3), Wanted(True, {"1g.10gb": 1})),
        ),
        (entry([0, "08:00.0"], mig_enabled=False), {0: OFF, 1: OFF}),
        ({"A30": {"2g.12gb": 2}}, {2: Wanted(True, {"2g.12gb": 2})}),
        ({0: True, "A30": False}, {0: MODE, 2: OFF}),
        # The narrowest selector decides, wherever it stands.
        ({0: True, "A100": False, "all": "all-enabled"}, {0: MODE, 1: OFF, 2: Wanted(True, {})}),
        ({"all": "all-enabled", "A100": False, 0: True}, {0: MODE, 1: OFF, 2: Wanted(True, {})}),
    ],
)
def test_a_layout_is_written_in_many_ways(layout: object, wanted: dict[int, Wanted]) -> None:
    assert by_index(layout) == wanted


def test_a_name_of_the_file_comes_first() -> None:
    file = {"all-enabled": [entry(mig_devices={"1g.5gb": 1})], "other": [entry()]}

    assert by_index("all-enabled", HOST[:1], **file) == {0: Wanted(True, {"1g.5gb": 1})}
    assert by_index("all-disabled", HOST[:1], **file) == {0: OFF}
    assert by_index({0: "other"}, HOST[:1], **file) == {0: Wanted(True, {})}


def test_a_selector_takes_its_part_of_a_layout_of_the_file() -> None:
    file = {"mine": [entry([0], mig_devices={"1g.5gb": 1}), entry([1], mig_devices={})]}

    assert by_index({0: "mine"}, HOST, **file) == {0: Wanted(True, {"1g.5gb": 1})}
    with pytest.raises(ConfigError, match=r"layout\.A30: 'mine' has nothing for NVIDIA A30"):
        by_index({"A30": "mine"}, HOST, **file)
    with pytest.raises(ConfigError, match=r"has nothing for NVIDIA A30; .*all-2g\.12gb"):
        by_index({"A30": "all-3g.20gb"})


def test_a_document_with_one_layout_needs_no_name() -> None:
    one = {"version": "v1", "mig-configs": {"mine": [entry()]}}
    assert by_index(one, HOST[:1]) == {0: Wanted(True, {})}

    one["mig-configs"]["other"] = [entry()]  # type: ignore[index]
    with pytest.raises(ConfigError, match=r"several layouts \(mine, other\)"):
        by_index(one)


def test_mig_parteds_balanced_layout_gives_each_model_its_own() -> None:
    wanted = resolve("all-balanced", DEFAULT, HOST).wanted

    assert dict(wanted) == {
        HOST[0].uuid: Wanted(True, {"1g.5gb": 2, "2g.10gb": 1, "3g.20gb": 1}),
        HOST[1].uuid: Wanted(True, {"1g.10gb": 2, "2g.20gb": 1, "3g.40gb": 1}),
        HOST[2].uuid: Wanted(True, {"1g.6gb": 2, "2g.12gb": 1}),
    }


def test_an_unknown_name_lists_those_there_are() -> None:
    with pytest.raises(ConfigError) as refused:
        by_index("all-balancd", HOST, mine=[entry()])

    for name in ("mine", "all-balanced", "all-disabled", "all-1g.5gb.me", "all-4g.24gb"):
        assert name in str(refused.value)


def test_a_model_that_is_not_known_says_how_it_becomes_known() -> None:
    future = [gpu("future", on=False)]

    assert by_index("all-enabled", future) == {0: Wanted(True, {})}
    with pytest.raises(ConfigError, match=r"NVIDIA X900 offers is known once MIG is on"):
        by_index("all-balanced", future)


def test_the_last_entry_for_a_gpu_decides() -> None:
    entries = [entry(mig_devices={"1g.5gb": 7}), entry([0], mig_devices={"3g.20gb": 2})]

    assert by_index(entries, HOST[:1]) == {0: Wanted(True, {"3g.20gb": 2})}
    assert by_index(entries[::-1], HOST[:1]) == {0: Wanted(True, {"1g.5gb": 7})}


def test_entries_that_switch_mig_on_and_off_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"layout\[0\] and layout\[1\] both name GPU 0"):
        by_index([entry(mig_enabled=False, mig_devices=None), entry([0])])


def test_two_selectors_as_narrow_as_each_other_must_agree() -> None:
    assert by_index({"A100-SXM4-40GB": False, "NVIDIA A100-SXM4-40GB": False}) == {0: OFF}
    with pytest.raises(ConfigError, match=r"'A100' and .* both name GPU 0"):
        by_index({"A100": False, "*40GB": True})


def test_a_gpu_without_mig_is_passed_over_under_all_and_refused_when_named() -> None:
    found = resolve([entry()], {}, HOST)

    assert HOST[3].uuid not in found.wanted
    assert found.notes == ("there is no MIG on GPU 3 (Tesla T4): left alone",)
    for layout in ([entry([3])], {"T4": True}, {3: "all-enabled"}, {3: {"1g.5gb": 1}}):
        with pytest.raises(ConfigError, match=r"GPU 3 \(Tesla T4\) has no MIG"):
            resolve(layout, {}, HOST)
    # Off is what it is.
    assert resolve({3: False}, {}, HOST) == resolve({3: "all-disabled"}, {}, HOST)
    assert resolve("all-disabled", {}, HOST).notes == ()
    assert resolve("all-enabled", {}, HOST[3:]).wanted == {}


def test_a_gpu_that_no_entry_is_for_is_left_alone_and_named() -> None:
    found = resolve([entry([0])], {}, HOST[:2])

    assert list(found.wanted) == [HOST[0].uuid]
    assert found.notes == (
        "no entry of layout is for GPU 1 (NVIDIA A100-SXM4-80GB): left alone",
    )  # fmt: skip


def test_gpus_that_are_left_alone_for_one_reason_are_one_note() -> None:
    host = [gpu("A100", index) for index in range(8)]
    found = resolve([entry([0])], {}, host)
    assert found.notes == (
        "no entry of layout is for GPU 1, 2, 3, 4, 5, 6, 7 (NVIDIA A100-SXM4-40GB): left alone",
    )


def test_a_gpu_that_a_narrower_selector_is_for_is_not_said_to_be_left_alone() -> None:
    host = [gpu("A100", 0), gpu("A30", 1)]
    found = resolve({"all": "all-1g.5gb", 1: False}, {}, host)
    assert set(found.wanted) == {one.uuid for one in host}
    assert found.notes == ()


def test_a_layout_for_other_gpus_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"no entry is for any GPU .* 0x20B010DE"):
        resolve([entry(device_filter="0x233010DE")], {}, HOST)


@pytest.mark.parametrize("text", ["0x20b010de", "0x20B010DE", ["0x233010DE", "0x20B010DE"]])
def test_a_filter_is_a_number_and_not_a_spelling(text: object) -> None:
    assert list(by_index([entry(device_filter=text)])) == [0]


def test_a_filter_by_board_needs_the_board() -> None:
    board = [entry(device_filter="0x20B010DE:0x134F10DE")]
    known = [replace(HOST[0], subsystem_id="0x134f10de")]
    other = [replace(HOST[0], subsystem_id="0x144E10DE")]

    assert list(by_index(board, known)) == [0]
    with pytest.raises(ConfigError, match="no entry is for any GPU"):
        by_index(board, other)
    with pytest.raises(ConfigError, match="asks for a board"):
        by_index(board)


@pytest.mark.parametrize(
    ("layout", "reason"),
    [
        ({}, "layout is empty"),
        # What YAML makes of 0000:07:00.0 without quotes.
        ({420.0: True}, "unless it is written in quotes"),
        ([entry([420.0])], "unless it is written in quotes"),
        ([], "layout has no entry"),
        (None, "layout must be a list of entries"),
        (7, "layout must be a list of entries"),
        ({"all": None}, "layout.all is None"),
        ({"all": 7}, "layout.all is 7"),
        ({"all": {"1g.5gb": "7"}}, r"layout.all.1g\.5gb is '7'"),
        ({"all": "nonsense"}, "layout.all: there is no layout 'nonsense'"),
        ({"GPU-gone": "all-enabled"}, "layout.GPU-gone: 'GPU-gone' names no GPU here"),
        ([entry([9])], r"layout\[0\]\.devices: 9 names no GPU here"),
    ],
)
def test_what_cannot_be_meant_is_refused(layout: object, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        by_index(layout)


@given(
    st.dictionaries(
        st.sampled_from(["all", "A100", "A30", "T4", 0, "1", "9", "GPU-1", "*"]),
        st.none() | st.booleans() | st.sampled_from(["all-balanced", "x", "all-1g.6gb"]),
    )
)
def test_whatever_is_asked_for_is_resolved_or_refused(layout: object) -> None:
    try:
        found = resolve(layout, {}, HOST)
    except ConfigError:
        return
    assert set(found.wanted) <= {one.uuid for one in HOST[:3]}
