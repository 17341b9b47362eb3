# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The chosen set has the best links there are: every free mask, every size, every machine."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import combinations

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.placement import (
    choose,
    fabric,
    weights,
)
from ansible_collections.steadygpu.host.plugins.module_utils.placement.model import (
    Host,
    PlacementError,
    Request,
)
from ansible_collections.steadygpu.host.tests.unit.module_utils.placement import hosts
from ansible_collections.steadygpu.host.tests.unit.module_utils.topology.recorded import MACHINES

# The objective's numbers, written down a second time: what is tested must not judge itself.
PCIE = {"SYS": 1.0, "NODE": 2.0, "PHB": 3.0, "PXB": 4.0, "PIX": 5.0}

MADE = {
    "gpu 2 lost its nvlinks": hosts.lost_links(),
    "bridged pairs 0-2,1-3,4-5,6-7": hosts.bridged([(0, 2), (1, 3), (4, 5), (6, 7)]),
    "pairs across sockets": hosts.bridged([(0, 4), (1, 5), (2, 6), (3, 7)]),
    "four cards": hosts.bridged([], 4),
}
ALL = {
    **{one.name: hosts.of_recorded(one) for one in MACHINES if one.size > 2},
    **MADE,
}


def _worth(host: Host, chosen: Sequence[int]) -> float:
    total = 0.0
    for i, j in combinations(chosen, 2):
        word = host.levels[i][j] or ""
        if word.startswith("NV"):
            total += 5 + 10 * int(word[2:])
            continue
        one, other = host.gpus[i].device.numa_node, host.gpus[j].device.numa_node
        total += PCIE[word] + (0.5 if one is not None and one == other else 0.0)
    return total


def _masks(size: int) -> list[list[int]]:
    """Every free mask of a machine; of a large one a sample."""
    if size <= 8:
        masks = list(range(1, 1 << size))
    else:
        drawn = random.Random(9)
        masks = [drawn.getrandbits(size) | 1 for _number in range(6)]
    return [[i for i in range(size) if mask >> i & 1] for mask in masks]


@pytest.mark.parametrize("name", ALL)
def test_no_free_set_of_any_size_has_better_links(name: str) -> None:
    host = ALL[name]
    size = len(host.gpus)
    ready = fabric.of_host(host)
    for free in _masks(size):
        now = hosts.busy(host, set(range(size)) - set(free))
        for count in range(2, len(free)):
            best = max(_worth(host, one) for one in combinations(free, count))
            found = choose.place(now, Request(count=count), ready)
            chosen = hosts.names(found.chosen)
            assert set(chosen) <= set(free)
            assert found.links == _worth(host, chosen) == best
            assert found.exact


@pytest.mark.parametrize("size", [5, 8, 11, 16])
def test_counting_alike_gpus_finds_what_the_table_finds(size: int) -> None:
    drawn = random.Random(size)
    for _round in range(3):
        groups = [drawn.randrange(3) for _gpu in range(size)]
        words = ["NV4", "PHB", "SYS", "NODE", "PIX"]
        between = {(a, b): drawn.choice(words) for a in range(3) for b in range(a, 3)}
        matrix = [
            [
                "X" if i == j else between[min(groups[i], groups[j]), max(groups[i], groups[j])]
                for j in range(size)
            ]
            for i in range(size)
        ]
        one = fabric.Fabric(matrix, [None] * size)
        other = fabric.Fabric(matrix, [None] * size)
        one.counted, other.counted = True, False
        for _try in range(10):
            pool = drawn.getrandbits(size)
            free = bin(pool).count("1")
            for count in range(1, free + 1):
                a, b = one.best(pool, count), other.best(pool, count)
                assert one.worth(a.masks[0]) == other.worth(b.masks[0])
                assert set(a.masks) == set(b.masks)


def test_seventy_two_gpus_behind_nvswitch_are_no_more_work_than_eight() -> None:
    size = 72
    matrix = [["X" if i == j else "NV18" for j in range(size)] for i in range(size)]
    host = hosts.made(matrix, [i // 18 for i in range(size)])
    found = choose.place(hosts.busy(host, range(0, 72, 5)), Request(count=14))
    assert found.exact
    assert len({device.numa_node for device in found.chosen}) == 1


def test_a_large_irregular_machine_is_searched_and_says_that_it_is_not_proven() -> None:
    drawn = random.Random(1)
    size = 24
    matrix = [["X"] * size for _row in range(size)]
    for i, j in combinations(range(size), 2):
        matrix[i][j] = matrix[j][i] = drawn.choice(["NV1", "NV2", "PHB", "SYS"])
    found = choose.place(hosts.made(matrix, [None] * size), Request(count=8))
    assert len(found.chosen) == 8
    assert not found.exact


@pytest.mark.parametrize(
    ("matrix", "said"),
    [
        ([["X", "NV1"], ["NV2", "X"]], "not symmetric: GPU 0 to 1 is NV1, 1 to 0 is NV2"),
        ([["X", "FAST"], ["FAST", "X"]], "between GPU 0 and 1 stands 'FAST'"),
        ([["X", "X"], ["X", "X"]], "X belongs on the diagonal only"),
        ([["X", "SYS"]], "wanted is 2 × 2"),
    ],
)
def test_a_wrong_matrix_is_refused_with_its_place(matrix: list[list[str]], said: str) -> None:
    with pytest.raises(PlacementError, match=said.replace("(", r"\(")):
        weights.check(matrix, 2)
