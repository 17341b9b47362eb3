# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""go-gpuallocator's own cases, with its scoring and its policies as an option."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.placement import partition

DATA = Path(__file__).parents[3] / "data" / "placement" / "gpuallocator_cases.json"
TOLD = json.loads(DATA.read_text(encoding="utf-8"))
FIXED = {
    "static_dgx1_pascal": partition.DGX1_PASCAL,
    "static_dgx1_volta": partition.DGX1_VOLTA,
}
SINGLE, SEQUENCES = TOLD["single_step_cases"], TOLD["sequence_cases"]


def _answer(
    case: dict[str, Any], available: Sequence[int], size: int, required: Sequence[int] = ()
) -> list[int]:
    if case["policy"] == "simple":
        return partition.simple(available, size, required)
    if case["policy"] == "besteffort":
        pairs = TOLD["topologies"][case["topology"]]["pair_score"]
        return partition.best_effort(pairs, available, size, required)
    return partition.fixed(FIXED[case["policy"]], available, size, required)


def test_all_cases_are_here() -> None:
    assert len(SINGLE) == 32
    assert sum(len(case["steps"]) for case in SEQUENCES) == 98


@pytest.mark.parametrize("case", SINGLE, ids=lambda case: f"{case['policy']} {case['description']}")
def test_single_case(case: dict[str, Any]) -> None:
    found = _answer(case, case["available"], case["size"], case["required"])
    assert found == case["expected"]


@pytest.mark.parametrize("case", SEQUENCES, ids=lambda case: case["source"].split(":")[1])
def test_sequence(case: dict[str, Any]) -> None:
    free = list(range(TOLD["topologies"][case["topology"]]["gpus"]))
    for step in case["steps"]:
        found = _answer(case, free, step["size"])
        assert found == step["expected"]
        free = [place for place in free if place not in found]


@pytest.mark.parametrize("name", TOLD["topologies"])
def test_pair_scores_follow_from_levels_and_links(name: str) -> None:
    told = TOLD["topologies"][name]
    for i, row in enumerate(told["pair_score"]):
        for j, wanted in enumerate(row):
            if i != j:
                level, links = told["pcie_level"][i][j], told["nvlink_count"][i][j]
                if level is not None:
                    assert partition.pair_score(level, links) == wanted


def test_the_dgx2_has_sets_of_neighbours() -> None:
    assert partition.fixed(partition.DGX2_VOLTA, range(1, 16), 2) == [2, 3]
    assert partition.fixed(partition.DGX2_VOLTA, range(1, 16), 8) == list(range(8, 16))


def test_more_gpus_than_can_be_parted_in_time_are_refused() -> None:
    with pytest.raises(ValueError, match="11 GPUs"):
        partition.best_effort([[0] * 11] * 11, range(11), 2)
