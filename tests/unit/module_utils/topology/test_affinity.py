# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Affinity as a rank and as a measured share."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.steadygpu.host.plugins.module_utils.topology import affinity
from ansible_collections.steadygpu.host.plugins.module_utils.topology.levels import PCIE_LEVELS
from ansible_collections.steadygpu.host.tests.unit.module_utils.topology.recorded import (
    IDS,
    MACHINES,
    Recorded,
    by_name,
)

NEAREST_FIRST = ["X", "NV18", "NV12", "NV4", "NV1", *PCIE_LEVELS]


@pytest.mark.parametrize("machine", MACHINES, ids=IDS)
def test_a_matrix_is_symmetric_and_in_0_to_1(machine: Recorded) -> None:
    found = affinity.derived(machine.matrix)
    for i, row in enumerate(found):
        assert row[i] == 1.0
        for j, value in enumerate(row):
            assert value is not None
            assert 0 < value <= 1
            assert value == found[j][i]


@given(st.lists(st.sampled_from(NEAREST_FIRST[1:]), min_size=2, max_size=6))
def test_a_nearer_word_is_never_lower(words: list[str]) -> None:
    (row,) = affinity.derived([words])
    ranked = sorted(range(len(words)), key=lambda i: NEAREST_FIRST.index(words[i]))
    values = [row[i] for i in ranked]
    assert values == sorted(values, key=lambda value: -(value or 0))
    assert all(row[i] == row[j] for i in ranked for j in ranked if words[i] == words[j])
    assert len(set(values)) == len(set(words))


def test_the_hybrid_mesh_has_two_kinds_of_neighbours() -> None:
    found = affinity.derived(by_name("hybrid cube mesh").matrix)
    assert found[0] == [1.0, 0.85, 1.0, 0.85, 0.1, 0.1, 0.1, 1.0]


def test_an_unknown_level_has_no_affinity() -> None:
    assert affinity.derived([["X", None], [None, "X"]]) == [[1.0, None], [None, 1.0]]
    assert affinity.derived([]) == []


def test_measured_is_a_share_of_the_best_pair_by_its_slower_direction() -> None:
    levels = [["X", "NV4", "SYS"], ["NV4", "X", "SYS"], ["SYS", "SYS", "X"]]
    speeds = [[None, 90.0, 11.0], [80.0, None, 20.0], [12.0, None, None]]
    assert affinity.measured(levels, speeds) == [
        [1.0, 1.0, 0.1375],
        [1.0, 1.0, 0.25],
        [0.1375, 0.25, 1.0],
    ]


def test_a_pair_that_was_not_measured_is_unknown_and_not_derived() -> None:
    levels = [["X", "PHB", "SYS"], ["PHB", "X", "SYS"], ["SYS", "SYS", "X"]]
    speeds = [[None, 20.0, None], [20.0, None, None], [None, None, None]]
    assert affinity.measured(levels, speeds)[2] == [None, None, 1.0]
    assert affinity.measured(levels, [[None] * 3] * 3)[0] == [1.0, None, None]


def test_a_matrix_of_another_machine_is_refused() -> None:
    with pytest.raises(ValueError, match="2 GPUs and a bandwidth matrix of 1 rows"):
        affinity.measured([["X", "PHB"], ["PHB", "X"]], [[1.0]])
