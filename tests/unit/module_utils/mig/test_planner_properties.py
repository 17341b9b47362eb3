# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Random layouts, planned and carried out on hardware that checks every step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.steadygpu.host.plugins.module_utils.mig import names, render
from ansible_collections.steadygpu.host.plugins.module_utils.mig.model import (
    ComputeInstance,
    Geometry,
    GpuInstance,
    GpuLayout,
    MigError,
    Wanted,
)
from ansible_collections.steadygpu.host.plugins.module_utils.mig.planner import (
    plan,
    restore,
    verify,
)
from ansible_collections.steadygpu.host.tests.unit.module_utils.mig.machine import (
    Hardware,
    cannot_hold,
    gpu,
    table,
)

MODELS = st.sampled_from(["A100", "A30", "RTX"])


@st.composite
def layouts(draw: st.DrawFn, model: str, partial: bool = True) -> list[GpuInstance]:
    """Any valid layout of a model, some of its instances divided, some hollow."""
    geometry = table(model)
    places = [
        GpuInstance(profile.name, place)
        for profile in geometry.profiles
        for place in profile.placements
    ]
    chosen: list[GpuInstance] = []
    for candidate in draw(st.lists(st.sampled_from(places), max_size=9)):
        if cannot_hold(geometry, [*chosen, candidate]) is None:
            chosen.append(candidate)
    return [
        replace(one, id=number, compute=draw(_inside(one, partial)))
        for number, one in enumerate(chosen, 1)
    ]


@st.composite
def _inside(draw: st.DrawFn, one: GpuInstance, partial: bool) -> tuple[ComputeInstance, ...]:
    slices = names.slices_of(one.profile)
    if not partial:
        return (ComputeInstance(slices, 0),)
    sizes: list[int] = []
    for size in draw(st.lists(st.sampled_from(names.compute_sizes(slices)), max_size=slices)):
        if sum(sizes) + size <= slices:
            sizes.append(size)
    return tuple(ComputeInstance(size, number) for number, size in enumerate(sizes))


def counts_of(layout: list[GpuInstance]) -> dict[str, int]:
    return render.device_counts(layout)


def at(instance: GpuInstance) -> tuple[str, int]:
    return instance.profile, instance.placement.start


@given(st.data(), MODELS)
def test_every_reachable_layout_is_reached_and_nothing_overlaps_on_the_way(
    data: st.DataObject, model: str
) -> None:
    start = gpu(model, instances=data.draw(layouts(model)))
    wanted = Wanted(True, counts_of(data.draw(layouts(model))))

    made = plan(start, wanted)
    done = Hardware(start, table(model)).run(made.steps)

    assert verify(done, wanted) == []
    assert render.layout_text(done) == made.after
    # What is kept was there, is there, and is no other than before.
    for kept in made.kept:
        former = next(one for one in start.instances if one.id == kept.id)
        left = next(one for one in done.instances if one.id == kept.id)
        assert left.placement == former.placement
        assert set(kept.compute) <= set(former.compute) & set(left.compute)
    assert plan(done, wanted).steps == ()


@given(st.data(), MODELS)
def test_as_many_instances_are_kept_as_any_plan_could_keep(data: st.DataObject, model: str) -> None:
    geometry = table(model)
    present = data.draw(layouts(model, partial=False))
    wanted = counts_of(data.draw(layouts(model, partial=False)))

    made = plan(gpu(model, instances=present), Wanted(True, wanted))

    assert len(made.kept) == _most_kept(geometry, present, wanted)


@given(st.data(), MODELS)
def test_instances_in_use_are_never_touched(data: st.DataObject, model: str) -> None:
    start = gpu(model, instances=data.draw(layouts(model)))
    numbers = [one.id for one in start.instances if one.id is not None]
    protected = data.draw(st.sets(st.sampled_from(numbers))) if numbers else set()
    wanted = data.draw(
        st.one_of(
            st.just(Wanted(False)),
            st.builds(lambda one: Wanted(True, counts_of(one)), layouts(model)),
        )
    )

    try:
        made = plan(start, wanted, protected=protected)
    except MigError:
        # Without them the wish can be fulfilled, so nothing else may be the reason.
        with pytest.raises(MigError, match="in use"):
            plan(start, wanted, protected=protected)
        assert protected
        return
    done = Hardware(start, table(model)).run(made.steps)
    for one in start.instances:
        if one.id in protected:
            left = next(other for other in done.instances if other.id == one.id)
            assert set(one.compute) <= set(left.compute)
    assert verify(done, wanted) == []


@given(st.data(), MODELS)
def test_a_wish_is_fulfilled_exactly_when_it_can_be(data: st.DataObject, model: str) -> None:
    geometry = table(model)
    profiles = [profile.name for profile in geometry.profiles]
    wanted = data.draw(st.dictionaries(st.sampled_from(profiles), st.integers(0, 4), max_size=3))
    possible = next(_all_layouts(geometry, wanted), None) is not None

    try:
        made = plan(gpu(model), Wanted(True, wanted))
    except MigError:
        assert not possible
    else:
        assert possible
        Hardware(gpu(model), geometry).run(made.steps)


@given(st.data(), MODELS)
def test_any_layout_comes_back_from_any_other(data: st.DataObject, model: str) -> None:
    start = gpu(model, instances=data.draw(layouts(model)))
    former = data.draw(layouts(model))

    made = restore(start, former)
    done = Hardware(start, table(model)).run(made.steps)

    assert render.layout_text(done) == made.after
    assert made.after == render.layout_text(replace(start, instances=tuple(former)))


@given(st.data(), MODELS)
def test_the_order_in_which_a_wish_is_written_changes_nothing(
    data: st.DataObject, model: str
) -> None:
    start = gpu(model, instances=data.draw(layouts(model)))
    wanted = counts_of(data.draw(layouts(model)))
    shuffled = dict(data.draw(st.permutations(list(wanted.items()))))

    assert plan(start, Wanted(True, shuffled)).steps == plan(start, Wanted(True, wanted)).steps


def _most_kept(geometry: Geometry, present: list[GpuInstance], wanted: dict[str, int]) -> int:
    """The most of ``present`` that any layout with ``wanted`` has as well, by trying them all."""
    there = {at(one) for one in present}
    return max(sum(at(one) in there for one in layout) for layout in _all_layouts(geometry, wanted))


def _all_layouts(geometry: Geometry, wanted: dict[str, int]) -> Iterator[list[GpuInstance]]:
    """Every layout with so many instances of each profile, found without any cleverness."""

    def extend(
        left: list[tuple[str, int]], chosen: list[GpuInstance]
    ) -> Iterator[list[GpuInstance]]:
        if not left:
            yield chosen
            return
        (name, count), *rest = left
        profile = geometry.profile(name)
        assert profile is not None
        for places in combinations(profile.placements, count):
            more = [*chosen, *(GpuInstance(name, place) for place in places)]
            if cannot_hold(geometry, more) is None:
                yield from extend(rest, more)

    yield from extend([(name, count) for name, count in Counter(wanted).items() if count], [])


def test_the_naive_search_is_right_about_a_case_worked_out_by_hand() -> None:
    # A 3g lies at 0 or 4; with a 2g beside it there are three places for the 2g and two for it:
    # (0: 2g at 4), (4: 2g at 0 or 2).
    assert len(list(_all_layouts(table("A100"), {"3g.20gb": 1, "2g.10gb": 1}))) == 3


def test_the_hardware_of_these_tests_refuses_what_real_hardware_refuses() -> None:
    geometry = table("A100")
    one = geometry.profiles[0]
    instances = [GpuInstance(one.name, one.placements[0])] * 2

    assert cannot_hold(geometry, instances)
    assert cannot_hold(geometry, instances[:1]) is None
    assert isinstance(gpu("A100"), GpuLayout)
