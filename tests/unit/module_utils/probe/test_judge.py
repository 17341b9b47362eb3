# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.probe.judge import (
    Check,
    Expectation,
    SliceSight,
    failure_text,
    judge_bare,
    judge_device,
    judge_later,
    judge_slice,
    skipped,
    summary,
)
from ansible_collections.steadygpu.host.plugins.module_utils.probe.limits import Group
from ansible_collections.steadygpu.host.plugins.module_utils.probe.sight import (
    DENIED,
    NO_DRIVER,
    Sight,
)

EXPECTED = Expectation("/dev/nvidia0", {"/dev/nvidia0": "195:0", "/dev/nvidia1": "195:1"})
SIMULATED = replace(EXPECTED, accept_simulated=True)

DEVICE = Sight(
    nodes={"/dev/nvidia0": "opened", "/dev/nvidiactl": "opened", "/dev/nvidia-uvm": "opened"},
    made={"195:0": "opened", "195:1": DENIED},
)
BARE = Sight(made={"195:0": DENIED, "195:1": f"mknod: {DENIED}"})


def by_id(checks: list[Check]) -> dict[str, Check]:
    return {check.id: check for check in checks}


def failed(checks: list[Check]) -> set[str]:
    return {check.id for check in checks if check.ok is False}


def seen(nodes: dict[str, str] | None = None, made: dict[str, str] | None = None) -> Sight:
    return Sight(dict(DEVICE.nodes, **(nodes or {})), dict(DEVICE.made, **(made or {})))


def test_a_good_host_proves_everything() -> None:
    checks = judge_device(DEVICE, EXPECTED) + judge_bare(BARE, EXPECTED)
    assert [check.ok for check in checks] == [True] * 6
    assert summary(checks) == "6 proved"


@pytest.mark.parametrize(
    ("sight", "fails"),
    [
        (seen({"/dev/nvidia1": "opened"}), {"one_gpu_visible"}),
        (Sight(made=DEVICE.made), {"one_gpu_visible", "gpu_opens", "control_nodes"}),
        (seen({"/dev/nvidia0": DENIED}), {"gpu_opens"}),
        (seen({"/dev/nvidia0": NO_DRIVER}), {"gpu_opens"}),
        (seen({"/dev/nvidia0": "Input/output error"}), {"gpu_opens"}),
        (seen({"/dev/nvidia-uvm": DENIED}), {"control_nodes"}),
        (seen(made={"195:1": "opened"}), {"other_gpus_denied"}),
        (seen(made={"195:1": NO_DRIVER}), {"other_gpus_denied"}),
        (seen(made={"195:1": "Input/output error"}), {"other_gpus_denied"}),
        (Sight(nodes=DEVICE.nodes), {"other_gpus_denied"}),
    ],
)
def test_each_promise_of_the_device_container_can_fail(sight: Sight, fails: set[str]) -> None:
    checks = judge_device(sight, EXPECTED)
    assert failed(checks) == fails
    assert all(check.advice for check in checks if check.ok is False)


@pytest.mark.parametrize(
    ("sight", "fails"),
    [
        (replace(BARE, nodes={"/dev/nvidia1": DENIED}), {"bare_sees_none"}),
        (replace(BARE, made={"195:0": "opened", "195:1": DENIED}), {"bare_denied"}),
        (replace(BARE, made={"195:0": NO_DRIVER, "195:1": DENIED}), {"bare_denied"}),
        (Sight(), {"bare_denied"}),
    ],
)
def test_each_promise_of_the_bare_container_can_fail(sight: Sight, fails: set[str]) -> None:
    assert failed(judge_bare(sight, EXPECTED)) == fails


def test_a_simulated_gpu_opens_only_where_the_user_said_it_is_one() -> None:
    sight = seen(dict.fromkeys(DEVICE.nodes, NO_DRIVER))
    assert failed(judge_device(sight, SIMULATED)) == set()
    assert "simulated" in by_id(judge_device(sight, SIMULATED))["gpu_opens"].seen
    real = by_id(judge_device(sight, EXPECTED))["gpu_opens"]
    assert "driver does not answer" in real.advice


def test_a_simulation_does_not_excuse_a_missing_denial() -> None:
    sight = seen(made={"195:1": NO_DRIVER})
    assert failed(judge_device(sight, SIMULATED)) == {"other_gpus_denied"}
    assert failed(judge_bare(Sight(made={"195:0": NO_DRIVER, "195:1": DENIED}), SIMULATED)) == {
        "bare_denied"
    }


def test_a_host_with_one_gpu_cannot_prove_the_denial_of_another() -> None:
    single = Expectation("/dev/nvidia0", {"/dev/nvidia0": "195:0"})
    check = by_id(judge_device(DEVICE, single))["other_gpus_denied"]
    assert check.ok is None
    assert "only this GPU" in check.advice


def test_a_missing_control_node_says_how_to_make_it() -> None:
    nodes = {path: result for path, result in DEVICE.nodes.items() if path != "/dev/nvidia-uvm"}
    check = by_id(judge_device(Sight(nodes, DEVICE.made), EXPECTED))["control_nodes"]
    assert check.ok is False
    assert "nvidia-modprobe -u" in check.advice


def test_a_gpu_lost_by_a_reload_is_told_as_such() -> None:
    lost = seen({"/dev/nvidia0": DENIED})
    check = judge_later("holds_after_reload", "a reload", lost, BARE, EXPECTED)
    assert check.ok is False
    assert "Operation not permitted" in check.seen
    assert "given by CDI" in check.advice


def test_isolation_lost_by_an_update_is_told_too() -> None:
    open_wide = Sight(made={"195:0": "opened", "195:1": DENIED})
    check = judge_later("holds_after_update", "an update", DEVICE, open_wide, EXPECTED)
    assert check.ok is False
    assert "opened: 195:0" in check.seen
    assert judge_later("holds_after_update", "an update", DEVICE, BARE, EXPECTED).ok is True


WANTED = "/ai.slice/ai-workload.slice"
SCOPE = WANTED + "/docker-abc.scope"
HELD = {"memory.max": "8589934592", "cpu.max": "300000 100000", "pids.max": "512"}


def way_up(own: Mapping[str, str | None], above: Mapping[str, str | None]) -> list[Group]:
    return [
        Group(SCOPE, {"memory.max": "max", "cpu.max": "max 100000", "pids.max": "64"}),
        Group(WANTED, own),
        Group("/ai.slice", above),
    ]


SLICE = SliceSight(
    name="ai-workload.slice",
    wanted=WANTED,
    path=way_up(HELD, {"memory.max": "max"}),
    limits={"memory.max": 8589934592, "cpu.max": 300},
    tasks=2,
)
ELSEWHERE = [Group("/system.slice/docker-abc.scope", {})]


def test_a_slice_that_holds_its_containers() -> None:
    checks = judge_slice(SLICE)
    assert [check.ok for check in checks] == [True, True]
    assert checks[1].seen == "cpu.max 300% of a CPU, memory.max 8589934592, 2 tasks inside"


def test_a_tighter_limit_on_the_way_up_is_named() -> None:
    path = way_up(HELD, {"memory.max": "4294967296"})
    check = judge_slice(replace(SLICE, path=path, limits={**SLICE.limits, "pids.max": 512}))[1]
    assert check.ok is True
    assert "memory.max 8589934592 (memory.max 4294967296 at /ai.slice)" in check.seen
    assert f"pids.max 512 (pids.max 64 at {SCOPE})" in check.seen


@pytest.mark.parametrize(
    ("sight", "oks"),
    [
        (replace(SLICE, path=ELSEWHERE), [False, None]),
        (replace(SLICE, path=[Group(WANTED + "-2/docker-abc.scope", {})]), [False, None]),
        (replace(SLICE, path=()), [False, None]),
        (replace(SLICE, wanted=""), [False, None]),
        (replace(SLICE, path=way_up({**HELD, "memory.max": "max"}, {})), [True, False]),
        (replace(SLICE, path=way_up({**HELD, "memory.max": "4096"}, {})), [True, False]),
        (replace(SLICE, path=way_up({**HELD, "cpu.max": None}, {})), [True, False]),
        (replace(SLICE, tasks=0), [True, False]),
        (replace(SLICE, tasks=None), [True, False]),
        (replace(SLICE, limits={}), [True, None]),
    ],
)
def test_each_promise_of_the_slice_can_fail(sight: SliceSight, oks: list[bool | None]) -> None:
    assert [check.ok for check in judge_slice(sight)] == oks


def test_the_failure_text_has_a_paragraph_for_each_failed_check_only() -> None:
    checks = [
        Check("a", "it opens", True, "opened", "opened"),
        Check("b", "it is denied", False, "opened", DENIED, "look there"),
        skipped("c", "it lasts", "no systemd"),
    ]
    text = failure_text(checks)
    assert text.startswith("GPU verification: 1 proved, 1 failed, 1 not judged")
    assert "it is denied" in text
    assert "look there" in text
    assert "it opens" not in text
