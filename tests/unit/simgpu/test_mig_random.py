# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whatever is created and destroyed, instances never overlap, and only what the tables refuse is
refused. The rule is written a second time here, over sets of slices instead of intervals.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from .test_mig_instances import A100

Layout = list[tuple[int, int]]  # (profile id, start)

WORKER = """
h = gpu()
n.nvmlDeviceSetMigMode(h, 1)
def clear():
    for id_, *_ in instances(h):
        n.nvmlGpuInstanceDestroy(n.nvmlDeviceGetGpuInstanceById(h, id_))
def latest(h, profile, start):
    [id_] = [one[0] for one in instances(h) if one[1:3] == [profile, start]]
    return n.nvmlDeviceGetGpuInstanceById(h, id_)
def step(verb, *arguments):
    if verb == "create":
        return answer(create, h, *arguments)
    if verb == "try":
        created = answer(create, h, *arguments)
        if created == "object":
            n.nvmlGpuInstanceDestroy(latest(h, *arguments))
        return created
    if verb == "destroy":
        there = instances(h)
        if there:
            n.nvmlGpuInstanceDestroy(
                n.nvmlDeviceGetGpuInstanceById(h, there[arguments[0] % len(there)][0]))
        return 0
    return {p: n.nvmlDeviceGetGpuInstanceRemainingCapacity(h, p) for p in offers(h)}
def answer_to(steps):
    clear()
    return [[step(*one), instances(h)] for one in steps]
"""


def slices(profile: int, start: int) -> set[int]:
    """The memory slices an instance takes."""
    return set(range(start, start + A100[profile][4]))


def fits(layout: Layout, profile: int, start: int) -> bool:
    """The rule of the real GPU."""
    _name, compute, most, starts, _size = A100[profile]
    taken = set().union(*(slices(*one) for one in layout)) if layout else set()
    return (
        start in starts
        and not taken & slices(profile, start)
        and compute + sum(A100[other][1] for other, _start in layout) <= 7
        and sum(other == profile for other, _start in layout) < most
    )


def capacity(layout: Layout, profile: int) -> int:
    """How many more fit, by trying every set of places."""
    starts = A100[profile][3]
    return max(
        count
        for count in range(len(starts) + 1)
        for places in itertools.combinations(starts, count)
        if all(
            fits([*layout, *((profile, before) for before in places[:number])], profile, place)
            for number, place in enumerate(places)
        )
    )


@pytest.fixture(scope="module")
def worker(tmp_path_factory: pytest.TempPathFactory, library: Any) -> Iterator[Callable[..., Any]]:
    """Runs a list of steps on an empty GPU; one process for the module."""
    from .conftest import Driver

    simulated = Driver(tmp_path_factory.mktemp("random"), library, "dgx-a100")
    with simulated.talk(WORKER) as ask:
        yield ask


def test_every_pair_of_places_is_decided_by_the_rule(worker: Callable[..., Any]) -> None:
    places = [(profile, start) for profile, row in A100.items() for start in row[3]]
    for one in places:
        first, *others = worker([("create", *one), *(("try", *other) for other in places)])
        assert first[0] == "object"
        for other, (answer, _layout) in zip(places, others):
            wanted = "object" if fits([one], *other) else "NVMLError_InsufficientResources"
            assert answer == wanted, (one, other)


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("create"), st.sampled_from(sorted(A100)), st.integers(0, 7)),
        st.tuples(st.just("create"), st.sampled_from(sorted(A100))),
        st.tuples(st.just("destroy"), st.integers(0, 6)),
        st.tuples(st.just("capacity")),
    ),
    max_size=12,
)


@settings(max_examples=150, deadline=None)
@given(STEPS)
def test_random_layouts_follow_the_rule(worker: Callable[..., Any], steps: list[Any]) -> None:
    layout: Layout = []
    for step, (answer, seen) in zip(steps, worker(steps)):
        after = [(profile, start) for _id, profile, start, _size in seen]
        if step[0] == "create" and len(step) == 3:
            allowed = fits(layout, step[1], step[2])
            assert answer == ("object" if allowed else "NVMLError_InsufficientResources")
            assert sorted(after) == sorted([*layout, (step[1], step[2])] if allowed else layout)
        elif step[0] == "create":
            free = [start for start in A100[step[1]][3] if fits(layout, step[1], start)]
            assert (answer == "object") == bool(free)
            assert sorted(after) == sorted([*layout, *((step[1], s) for s in free[-1:])])
        elif step[0] == "capacity":
            assert answer == {str(profile): capacity(layout, profile) for profile in A100}
        taken = [s for one in after for s in slices(*one)]
        assert len(taken) == len(set(taken))
        assert len({one[0] for one in seen}) == len(seen)
        assert sum(A100[profile][1] for profile, _start in after) <= 7
        layout = after
