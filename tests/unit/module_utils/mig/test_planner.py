# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from dataclasses import replace

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.mig import render
from ansible_collections.steadygpu.host.plugins.module_utils.mig.model import (
    Geometry,
    GpuLayout,
    MigError,
    Placement,
    Plan,
    Profile,
    Wanted,
)
from ansible_collections.steadygpu.host.plugins.module_utils.mig.planner import (
    plan,
    restore,
    verify,
)
from ansible_collections.steadygpu.host.tests.unit.module_utils.mig.machine import (
    Hardware,
    gpu,
    instance,
    table,
)

OFF = Wanted(enabled=False)


def want(**devices: int) -> Wanted:
    """``want(_3g_20gb=2)`` is two of 3g.20gb."""
    return Wanted(True, {name[1:].replace("_", "."): count for name, count in devices.items()})


def texts(made: Plan) -> list[str]:
    return [step.text.partition(": ")[2] for step in made.steps]


def after(start: GpuLayout, made: Plan, model: str) -> list[str]:
    """The layout after the plan was carried out, and that it is the one the plan promised."""
    done = Hardware(start, table(model)).run(made.steps)
    assert render.layout_text(done) == made.after
    assert verify(done, made.wanted) == []
    return made.after.splitlines()[1:]


def test_a_change_of_mode_and_layout_in_order() -> None:
    start = gpu("A100", on=False)

    made = plan(start, want(_3g_20gb=1, _4g_20gb=1))

    assert texts(made) == [
        "enable MIG mode",
        "create GPU instance 4g.20gb at 0:4",
        "create compute instance 4g.20gb in 4g.20gb at 0:4",
        "create GPU instance 3g.20gb at 4:4",
        "create compute instance 3g.20gb in 3g.20gb at 4:4",
    ]
    assert made.changes_mode
    assert made.before == f"GPU 0 ({start.uuid}) MIG off\n"
    assert after(start, made, "A100") == ["  4g.20gb@0:4", "  3g.20gb@4:4"]


def test_a_layout_that_is_there_needs_no_step() -> None:
    start = gpu("A100", instances=[instance("3g.20gb@0:4", 2), instance("3g.20gb@4:4", 1)])

    made = plan(start, want(_3g_20gb=2))

    assert made.steps == ()
    assert made.before == made.after
    assert made.kept == start.instances


def test_what_the_driver_allowed_is_left_alone_even_when_our_table_differs() -> None:
    start = gpu("A100", instances=[instance("1g.5gb@6:1", 1)])
    start = replace(start, geometry=table("A30"))

    assert plan(start, want(_1g_5gb=1)).steps == ()


def test_switching_off_takes_everything_down_first() -> None:
    start = gpu("A100", instances=[instance("3g.20gb@0:4", 2, 1, 2)])

    made = plan(start, OFF)

    assert texts(made) == [
        "destroy compute instance 0 (1c.3g.20gb) in GPU instance 2 (3g.20gb at 0:4)",
        "destroy compute instance 1 (2c.3g.20gb) in GPU instance 2 (3g.20gb at 0:4)",
        "destroy GPU instance 2 (3g.20gb at 0:4)",
        "disable MIG mode",
    ]
    assert after(start, made, "A100") == []


@pytest.mark.parametrize(
    ("current", "pending", "wanted", "steps"),
    [
        (False, False, OFF, []),
        (True, True, Wanted(True), []),
        # A mode that waits for a reset is asked for again: the GPU may be idle by now.
        (False, True, Wanted(True), ["enable MIG mode"]),
        (True, False, OFF, ["disable MIG mode"]),
        # One that was asked for by mistake is taken back.
        (False, True, OFF, ["disable MIG mode"]),
        (True, False, Wanted(True), ["enable MIG mode"]),
    ],
)
def test_the_mode_that_comes_with_a_reset_counts_too(
    current: bool, pending: bool, wanted: Wanted, steps: list[str]
) -> None:
    assert texts(plan(gpu("A100", on=current, pending=pending), wanted)) == steps


def test_the_mode_alone_leaves_the_instances() -> None:
    start = gpu("A100", instances=[instance("1g.5gb@0:1", 7)])

    made = plan(start, Wanted(True))

    assert made.steps == ()
    assert made.kept == start.instances


def test_mig_006_on_without_instances_is_pointed_out() -> None:
    made = plan(gpu("A100", on=False), Wanted(True, {}))

    assert "no program can use this GPU" in made.notes[0]


def test_an_instance_that_may_stay_stays_where_it_is() -> None:
    # Alone a new 1g.5gb would go to slice 6.
    start = gpu("A100", instances=[instance("1g.5gb@1:1", 9), instance("3g.20gb@4:4", 1)])

    made = plan(start, want(_1g_5gb=2, _3g_20gb=1))

    assert made.kept == start.instances
    assert after(start, made, "A100") == ["  1g.5gb@0:1", "  1g.5gb@1:1", "  3g.20gb@4:4"]


def test_an_instance_goes_only_when_its_place_is_needed() -> None:
    start = gpu("A100", instances=[instance("1g.5gb@0:1", 9), instance("1g.5gb@6:1", 10)])

    made = plan(start, want(_4g_20gb=1, _1g_5gb=2))

    assert [one.id for one in made.kept] == [10]
    assert after(start, made, "A100") == ["  4g.20gb@0:4", "  1g.5gb@5:1", "  1g.5gb@6:1"]


def test_slice_6_serves_a_1g_or_one_of_double_memory_but_not_both() -> None:
    start = gpu("A100", instances=[instance("1g.5gb@6:1", 13)])

    beside = plan(start, want(_1g_10gb=3, _1g_5gb=1))
    assert beside.kept == start.instances
    assert after(start, beside, "A100")[-1] == "  1g.5gb@6:1"
    instead = plan(start, want(_1g_10gb=4))
    assert instead.kept == ()
    assert after(start, instead, "A100")[-1] == "  1g.10gb@6:2"


@pytest.mark.parametrize(
    ("model", "wanted", "lines"),
    [
        # Slice 6 is of no use to a 4g, nor to a 2g.
        ("A100", {"1g.5gb": 1}, ["1g.5gb@6:1"]),
        ("A100", {"3g.20gb": 1}, ["3g.20gb@4:4"]),
        ("A100", {"2g.10gb": 1}, ["2g.10gb@4:2"]),
        ("A100", {"1g.10gb": 1}, ["1g.10gb@6:2"]),
        ("A30", {"1g.6gb": 1}, ["1g.6gb@3:1"]),
        ("RTX", {"1g.24gb": 1, "2g.48gb": 1}, ["2g.48gb@0:6", "1g.24gb@9:3"]),
        # 4g and 3g fill all eight memory slices and all seven compute slices.
        ("H100", {"4g.40gb": 1, "3g.40gb": 1}, ["4g.40gb@0:4", "3g.40gb@4:4"]),
        # Two 3g fill the memory; a compute slice is left that nothing can use.
        ("H100", {"3g.40gb": 2}, ["3g.40gb@0:4", "3g.40gb@4:4"]),
        # The eighth memory slice is there for a 1g with double memory only.
        (
            "H100",
            {"2g.20gb": 3, "1g.20gb": 1},
            [f"2g.20gb@{n}:2" for n in (0, 2, 4)] + ["1g.20gb@6:2"],
        ),
        ("H100", {"1g.10gb": 6, "1g.10gb+me": 1}, None),
    ],
)
def test_new_instances_leave_the_most_room(
    model: str, wanted: dict[str, int], lines: list[str] | None
) -> None:
    start = gpu(model)

    made = plan(start, Wanted(True, wanted))

    found = after(start, made, model)
    assert lines is None or [line.strip() for line in found] == lines


@pytest.mark.parametrize(
    ("model", "wanted", "reason"),
    [
        ("A100", {"3g.20gb": 3}, "3 × 3g.20gb do not fit: at most 2 on one A100-40GB"),
        ("A100", {"3g.20gb": 2, "1g.5gb": 1}, "need 9 memory slices, there are 8"),
        ("A100", {"4g.20gb": 1, "3g.20gb": 1, "1g.5gb": 1}, "need 8 compute slices, there are 7"),
        ("A100", {"1g.5gb+me": 2}, r"2 × 1g\.5gb\+me do not fit: at most 1"),
        ("A100", {"1g.5gb": 8}, "at most 7"),
        ("A100", {"1g.5gb": 10**9}, "at most 7"),
        # A 1g.10gb starts at even slices only: slice 7 serves nobody else.
        ("A100", {"1g.10gb": 3, "1g.5gb": 2, "2g.10gb": 1}, "need 10 memory slices"),
        (
            "A100",
            {"3g.20gb": 1, "2g.10gb": 1, "1g.5gb": 2, "1g.5gb+me": 1},
            "compute slices|places",
        ),
        ("A30", {"1g.6gb+me": 1, "2g.12gb+me": 1}, "need 2 optical flow engines, there are 1"),
        ("RTX", {"1g.24gb+me.all": 1, "1g.24gb": 1}, "need 5 decoders, there are 4"),
        ("A100", {"1g.6gb": 1}, r"no profile 1g\.6gb; A100-40GB has 1g\.5gb, "),
        ("A100", {"1c.3g.20gb": 7}, "at most 6"),
        ("A100", {"1c.3g.20gb": 4, "2c.3g.20gb": 2}, "3 × 3g.20gb do not fit"),
        ("A100", {"3c.4g.20gb": 1}, "no compute instance of 3c; it has 1c, 2c, 4c"),
        ("A100", {"mig-1g.5gb": 1}, "no MIG profile"),
    ],
)
def test_what_does_not_fit_is_refused_with_the_reason(
    model: str, wanted: dict[str, int], reason: str
) -> None:
    with pytest.raises(MigError, match=reason) as refused:
        plan(gpu(model), Wanted(True, wanted))

    assert str(refused.value).startswith(f"GPU 0 ({gpu(model).name}): ")


def test_places_can_be_what_is_missing() -> None:
    # On the models we know the sums decide. A driver may tell of a GPU where they do not.
    small = Profile("1g.6gb", 14, 1, (Placement(0, 1), Placement(1, 1)), 2)
    large = Profile("2g.12gb", 5, 2, (Placement(0, 2),), 1)
    odd = replace(gpu("future"), geometry=Geometry("X900", 4, 4, (small, large)))

    with pytest.raises(MigError, match=r"no choice of places .*1g\.6gb at 0,1 with 1 slices"):
        plan(odd, want(_1g_6gb=1, _2g_12gb=1))


def test_compute_instances_are_packed_into_few_gpu_instances() -> None:
    start = gpu("A100")

    made = plan(start, Wanted(True, {"1c.3g.20gb": 3, "3g.20gb": 1}))

    assert after(start, made, "A100") == ["  3g.20gb@0:4", "  3g.20gb@4:4 (1c, 1c, 1c)"]


def test_wrong_compute_instances_are_replaced_without_their_gpu_instance() -> None:
    start = gpu("A100", instances=[instance("3g.20gb@0:4", 2), instance("1g.5gb@6:1", 9)])

    made = plan(start, Wanted(True, {"2c.3g.20gb": 1, "1c.3g.20gb": 1, "1g.5gb": 1}))

    assert texts(made) == [
        "destroy compute instance 0 (3g.20gb) in GPU instance 2 (3g.20gb at 0:4)",
        "create compute instance 2c.3g.20gb in 3g.20gb at 0:4",
        "create compute instance 1c.3g.20gb in 3g.20gb at 0:4",
    ]
    after(start, made, "A100")


def test_compute_instances_that_fit_stay() -> None:
    start = gpu("A100", instances=[instance("3g.20gb@4:4", 1, 1, 2)])

    made = plan(start, Wanted(True, {"1c.3g.20gb": 3}))

    assert texts(made)[0].startswith("destroy compute instance 1 (2c.3g.20gb)")
    assert [[one.id for one in kept.compute] for kept in made.kept] == [[0]]
    assert after(start, made, "A100") == ["  3g.20gb@4:4 (1c, 1c, 1c)"]


@pytest.mark.parametrize("sizes", [((2,), (1, 1)), ((1, 1), (2,))])
def test_compute_instances_are_shared_out_so_that_all_may_stay(
    sizes: tuple[tuple[int, ...], tuple[int, ...]],
) -> None:
    start = gpu(
        "A100",
        instances=[instance("3g.20gb@0:4", 2, *sizes[0]), instance("3g.20gb@4:4", 1, *sizes[1])],
    )

    made = plan(start, Wanted(True, {"1c.3g.20gb": 3, "2c.3g.20gb": 1}))

    assert [step.verb for step in made.steps] == ["create_compute"]


def test_the_same_devices_in_more_gpu_instances_are_as_wanted() -> None:
    start = gpu("A100", instances=[instance("3g.20gb@0:4", 2, 1), instance("3g.20gb@4:4", 1, 1)])

    assert plan(start, Wanted(True, {"1c.3g.20gb": 2})).steps == ()
    # When one has to be added, both stay all the same.
    made = plan(start, Wanted(True, {"1c.3g.20gb": 3}))
    assert [one.id for one in made.kept] == [2, 1]
    assert len(made.steps) == 1


def test_a_gpu_instance_without_a_device_is_used_or_removed() -> None:
    hollow = replace(instance("3g.20gb@0:4", 2), compute=())
    start = gpu("A100", instances=[hollow])

    used = plan(start, want(_3g_20gb=1))
    assert texts(used) == ["create compute instance 3g.20gb in 3g.20gb at 0:4"]
    removed = plan(start, want(_1g_5gb=1))
    assert texts(removed)[0] == "destroy GPU instance 2 (3g.20gb at 0:4)"
    assert verify(start, want(_3g_20gb=1)) == [
        "GPU 0: 0 × 3g.20gb, wanted 1",
        "GPU 0: 3g.20gb@0:4 (no compute instance) holds slices and is no MIG device",
    ]


def test_what_is_in_use_stays_though_another_would_be_kept_otherwise() -> None:
    start = gpu(
        "A100",
        instances=[
            instance("1g.5gb@0:1", 7),
            instance("1g.5gb@5:1", 12),
            instance("1g.5gb@6:1", 13),
        ],
    )

    made = plan(start, want(_1g_5gb=1), protected=[12])

    assert [one.id for one in made.kept] == [12]


@pytest.mark.parametrize(
    ("wanted", "protected", "reason"),
    [
        (want(_7g_40gb=1), [7], r"GPU instance 7 \(1g\.5gb@0:1\) is in use"),
        (want(_4g_20gb=1, _1g_5gb=1), [7], r"GPU instance 7 \(1g\.5gb@0:1\) is in use"),
        # The 3g may stay beside a 4g: only what is in the way is named.
        (want(_4g_20gb=1, _3g_20gb=1), [7, 2], r"GPU instance 7 \(1g\.5gb@0:1\) is in use"),
        (Wanted(True, {}), [7], "is in use"),
        (Wanted(True, {"1c.3g.20gb": 1, "1g.5gb": 1}), [2], r"2 \(3g\.20gb@4:4\) is in use"),
        (OFF, [7, 2], r"MIG cannot be switched off: GPU instances 7 .*, 2 .* are in use"),
    ],
)
def test_what_is_in_use_is_never_touched(wanted: Wanted, protected: list[int], reason: str) -> None:
    start = gpu("A100", instances=[instance("1g.5gb@0:1", 7), instance("3g.20gb@4:4", 2)])

    with pytest.raises(MigError, match=reason):
        plan(start, wanted, protected=protected)
    assert plan(start, wanted).steps


def test_an_unknown_model_is_switched_on_first_and_planned_then() -> None:
    made = plan(gpu("future", on=False), want(_3g_20gb=1))

    assert texts(made) == ["enable MIG mode"]
    assert made.provisional
    assert "once MIG is on" in made.notes[0]
    with pytest.raises(MigError, match="unknown"):
        plan(gpu("future"), want(_3g_20gb=1))


def test_a_plan_from_our_tables_says_so() -> None:
    made = plan(gpu("A100", on=False), want(_3g_20gb=1))

    assert made.provisional
    assert "our table for A100-40GB" in made.notes[0]
    assert not plan(gpu("A100"), want(_3g_20gb=1)).provisional


def test_a_gpu_without_mig_can_only_have_it_off() -> None:
    assert plan(gpu("T4", on=False), OFF).steps == ()
    with pytest.raises(MigError, match=r"GPU 0 \(Tesla T4\): this GPU has no MIG"):
        plan(gpu("T4", on=False), Wanted(True))
    assert verify(gpu("T4", on=False), Wanted(True)) == ["GPU 0 (Tesla T4) has no MIG"]


@pytest.mark.parametrize(
    ("start", "wanted", "wrong"),
    [
        (gpu("A100", on=False), Wanted(True), "MIG is off, wanted on"),
        (gpu("A100"), OFF, "MIG is on, wanted off"),
        pytest.param(
            gpu("A100", on=False, pending=True),
            Wanted(True),
            "MIG will be on only after a reset",
            id="MG-002-pending",
        ),
        (gpu("A100", pending=False), Wanted(True), "will not be on any more after the next reset"),
        (gpu("A100"), want(_1g_5gb=2), "0 × 1g.5gb, wanted 2"),
    ],
)
def test_reading_back_names_what_is_wrong(start: GpuLayout, wanted: Wanted, wrong: str) -> None:
    assert any(wrong in line for line in verify(start, wanted))


def test_mg_001_a_lost_layout_comes_back_at_the_same_places() -> None:
    former = [instance("1g.5gb@2:1", 9), instance("3g.20gb@4:4", 1, 2, 1)]
    start = gpu("A100")

    made = restore(start, former)

    assert after(start, made, "A100") == ["  1g.5gb@2:1", "  3g.20gb@4:4 (2c, 1c)"]
    assert restore(gpu("A100", instances=former), former).steps == ()


def test_a_restored_layout_takes_away_what_came_between() -> None:
    former = [instance("1g.5gb@0:1", 9), instance("2g.10gb@2:2", 3)]
    start = gpu("A100", instances=[instance("4g.20gb@0:4", 1), instance("1g.5gb@6:1", 13)])

    made = restore(start, former)

    assert after(start, made, "A100") == ["  1g.5gb@0:1", "  2g.10gb@2:2"]
    with pytest.raises(MigError, match=r"13 .* is in use"):
        restore(start, former, protected=[13])
    with pytest.raises(MigError, match="no place that the driver offers"):
        restore(gpu("A30"), former)
    with pytest.raises(MigError, match="MIG is off"):
        restore(gpu("A100", on=False), former)


def test_what_comes_back_comes_in_the_order_of_its_making() -> None:
    """The driver numbers instances as they are made, and UUIDs follow from the numbers."""
    former = [instance("3g.20gb@4:4", 1, 1, 2), instance("3g.20gb@0:4", 2)]
    made = restore(gpu("A100"), former)
    assert [
        (step.verb, step.instance.placement.start, step.compute.slices if step.compute else None)
        for step in made.steps
        if step.instance
    ] == [
        ("create_gpu", 4, None),
        ("create_compute", 4, 1),
        ("create_compute", 4, 2),
        ("create_gpu", 0, None),
        ("create_compute", 0, 3),
    ]


def test_what_comes_back_is_more_than_empty_gpu_instances() -> None:
    former = [instance("3g.20gb@0:4", 1), instance("3g.20gb@4:4", 2, 1, 1, 1)]
    bare = replace(former[0], compute=())
    half = replace(former[1], compute=former[1].compute[1:])
    start = gpu("A100", instances=[bare, half])
    made = restore(start, former)
    assert [step.verb for step in made.steps] == ["create_compute", "create_compute"]
    assert after(start, made, "A100") == ["  3g.20gb@0:4", "  3g.20gb@4:4 (1c, 1c, 1c)"]


def test_texts_of_a_layout() -> None:
    shown = gpu("A100", instances=[instance("3g.20gb@4:4", 1, 1, 1), instance("1g.5gb@0:1", 9)])

    assert render.layout_text(shown).splitlines() == [
        f"GPU 0 ({shown.uuid}) MIG on",
        "  1g.5gb@0:1",
        "  3g.20gb@4:4 (1c, 1c)",
    ]
    assert render.layout_text(gpu("A100", on=False, pending=True)).endswith(
        "MIG off (on after a reset)\n"
    )
    assert render.layout_text(gpu("T4", on=False)).endswith("MIG not supported\n")
    assert render.device_counts(shown.instances) == {"1c.3g.20gb": 2, "1g.5gb": 1}
