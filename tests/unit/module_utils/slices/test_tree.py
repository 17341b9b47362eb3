# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.steadygpu.host.plugins.module_utils.slices.model import SliceError
from ansible_collections.steadygpu.host.plugins.module_utils.slices.properties import (
    parse_properties,
)
from ansible_collections.steadygpu.host.plugins.module_utils.slices.quantities import parse_size
from ansible_collections.steadygpu.host.plugins.module_utils.slices.tree import (
    Host,
    expand,
    merge,
)

# Two nodes of four cores with two threads each, as Linux numbers them.
CORES = tuple((node, (core, core + 8)) for node in (0, 1) for core in range(4 * node, 4 * node + 4))
HOST = Host(64 << 30, 100000, CORES)


def test_the_default_tree_has_all_presets_under_what_the_reserve_leaves() -> None:
    slices = expand({}, HOST)
    assert list(slices) == [
        "gpu.slice",
        "gpu-training.slice",
        "gpu-inference.slice",
        "gpu-batch.slice",
    ]
    top = slices["gpu.slice"]["properties"]
    assert parse_size(top["MemoryMax"]) == pytest.approx((64 << 30) * 0.9, rel=0.001)
    assert top["TasksMax"] == 90000
    assert "AllowedCPUs" not in top
    inference = slices["gpu-inference.slice"]["properties"]
    assert inference["MemoryLow"] == top["MemoryLow"]
    assert slices["gpu-training.slice"]["properties"]["TasksMax"] == 54000
    for said in slices.values():
        parse_properties(said["properties"])


def test_the_reserve_takes_whole_cores_from_all_nodes_in_turn() -> None:
    def cpus(cores: Any) -> str:
        return str(
            expand({"reserve": {"cores": cores}}, HOST)["gpu.slice"]["properties"]["AllowedCPUs"]
        )

    assert cpus(1) == "1-7,9-15"
    assert cpus(2) == "1-3,5-7,9-11,13-15"
    assert cpus("0-1,8-9") == "2-7,10-15"


def test_members_are_presets_or_their_own_and_may_drop_a_property() -> None:
    members = {
        "inference": {"properties": {"MemoryLow": None, "CPUWeight": 900}},
        "notebooks": {"preset": "batch", "description": "Notebooks"},
        "plain": None,
    }
    slices = expand({"name": "ai", "members": members, "properties": {"CPUQuota": "300%"}}, HOST)
    assert "MemoryLow" not in slices["ai-inference.slice"]["properties"]
    assert slices["ai-inference.slice"]["properties"]["CPUWeight"] == 900
    assert slices["ai-notebooks.slice"]["description"] == "Notebooks"
    assert slices["ai-notebooks.slice"]["properties"]["IOWeight"] == 25
    assert slices["ai-plain.slice"]["properties"] == {}
    assert slices["ai.slice"]["properties"]["CPUQuota"] == "300%"
    assert "MemoryLow" not in slices["ai.slice"]["properties"]


@pytest.mark.parametrize(
    ("tree", "said"),
    [
        ({"reserve": {"cores": 8}}, "no CPU"),
        ({"reserve": {"memory": "100%"}}, "less than all"),
        ({"reserve": {"memory": "much"}}, "a percentage, or"),
        ({"reserve": {"disk": 1}}, "no disk"),
        ({"reserve": {"cores": "a-b"}}, "a number of cores, or"),
        ({"name": "gpu-x"}, "since a dash nests"),
        ({"members": {"A": {}}}, "small letters"),
        ({"members": {"x": {"preset": "fast"}}}, "training, inference, batch"),
        ({"members": {"x": {"properties": {"TasksMax": "200%"}}}}, "at most 100%"),
        ({"members": {"x": {"properties": {"MemoryMin": "80G"}}}}, "what the reserve leaves"),
    ],
)
def test_what_cannot_be_shared_out_is_told(tree: dict[str, Any], said: str) -> None:
    with pytest.raises(SliceError, match=said):
        expand(tree, HOST)


def test_a_slice_beside_the_tree_and_one_that_adds_to_it() -> None:
    more = {
        "gpu-batch.slice": {"properties": {"CPUQuota": "200%"}},
        "scratch.slice": {"description": "Scratch", "properties": {"TasksMax": 9}},
    }
    merged = merge(expand({}, HOST), more)
    assert merged["gpu-batch.slice"]["properties"]["CPUQuota"] == "200%"
    assert merged["gpu-batch.slice"]["properties"]["IOWeight"] == 25
    assert merged["scratch.slice"]["description"] == "Scratch"
    with pytest.raises(SliceError, match="no property"):
        merge({}, {"a.slice": {"property": {}}})


@given(
    memory=st.integers(1 << 30, 1 << 42),
    reserve=st.integers(0, 90),
    shares=st.lists(st.integers(1, 100), max_size=4),
)
def test_no_member_may_have_more_than_the_slice_above_it(
    memory: int, reserve: int, shares: list[int]
) -> None:
    members = {
        f"m{number}": {"properties": {"MemoryMax": f"{share}%", "TasksMax": f"{share}%"}}
        for number, share in enumerate(shares)
    }
    tree = {"reserve": {"memory": f"{reserve}%"}, "members": members}
    slices = expand(tree, Host(memory, 5000, CORES))
    top = slices.pop("gpu.slice")["properties"]
    for said in slices.values():
        assert parse_size(said["properties"]["MemoryMax"]) <= parse_size(top["MemoryMax"])
        assert 1 <= said["properties"]["TasksMax"] <= top["TasksMax"]
