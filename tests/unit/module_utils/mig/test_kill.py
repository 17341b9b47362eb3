# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""kill -9 at every step of a MIG change: the next run, or the next boot, ends it well."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.steadygpu.host.tests.unit.module_utils.mig.simulated import (
    Host,
    run_jobs,
)

BEFORE = {"0": {"3g.20gb": 2}}
WANTED = {"0": {"3g.20gb": 1, "1g.5gb": 2}, "1": {"7g.40gb": 1}}
TARGET = [["1g.5gb", "1g.5gb", "3g.20gb"], ["7g.40gb"]]
UNITS = {"dcgm.service": {"active": True}, "nvidia-persistenced.service": {"active": True}}
OPTIONS = {"stop": ["dcgm.service", "nvidia-persistenced.service"]}


class Sweep:
    """Hosts that all start from the same layout, one for each kill."""

    def __init__(self, built: Path, directory: Path) -> None:
        self.built = built
        self._directory = directory

    def host(self, name: str) -> Host:
        """A host of its own."""
        host = Host(self.built, self._directory / name)
        host.set_units(UNITS)
        return host

    def events(self, **job: Any) -> int:
        """How many events the change has that is not killed."""
        host = self.host("whole")
        host.apply(BEFORE, options={"persist": False})
        count: int = host.apply(WANTED, options=OPTIONS, **job)["events"]
        return count


@pytest.fixture
def sweep(built: Callable[[str], Path], tmp_path: Path) -> Sweep:
    """A machine with eight A100."""
    return Sweep(built("dgx-a100"), tmp_path)


def devices(view: dict[str, Any]) -> list[list[str]]:
    """Profile and place of every MIG device, by GPU."""
    return [
        [
            f"{one['profile']}@{one['start']}"
            for one in gpu["instances"]
            for unused in one["devices"]
        ]
        for gpu in view["gpus"][:2]
    ]


def profiles(view: dict[str, Any]) -> list[list[str]]:
    """Profiles alone: where a killed run left something, other places may be as good."""
    return [sorted(one.partition("@")[0] for one in gpu) for gpu in devices(view)]


def former(view: dict[str, Any]) -> list[list[str]]:
    """The same of what undo goes back to."""
    return [
        sorted(f"{one['profile']}@{one['start']}" for one in gpu["instances"] or ())
        for gpu in sorted(view["previous"], key=lambda gpu: not gpu["mig"])
    ]


def killed_and_run_again(host: Host, number: int, **job: Any) -> list[dict[str, Any] | None]:
    """Answers of: the layout before, the run that is killed, the next run, the view."""
    return run_jobs(
        host.built,
        [
            host.job("apply", BEFORE, options={"persist": False}),
            host.job("apply", WANTED, options=OPTIONS, kill_at=number, **job),
            host.job("apply", WANTED, options=OPTIONS),
            host.job("view"),
        ],
    )


def after(answers: list[dict[str, Any] | None], number: int) -> dict[str, Any]:
    """The view, which is the last answer; the run before it must have succeeded."""
    run, view = answers[-2:]
    assert run is not None
    assert view is not None
    assert "error" not in run, f"kill at {number}: {run['error']}"
    return view


def check(host: Host, answers: list[dict[str, Any] | None], number: int) -> None:
    """The target is reached, nothing stays stopped, and undo goes back behind the kill."""
    assert answers[1] is None, f"event {number} did not come"
    view = after(answers, number)
    assert profiles(view) == TARGET, number
    assert not view["unfinished"], number
    assert host.active == sorted(UNITS), f"kill at {number} left a service stopped: {host.log}"
    assert former(view) == [["3g.20gb@0", "3g.20gb@4"], []], number


def test_the_next_run_ends_what_a_kill_cut_off(sweep: Sweep) -> None:
    for number in range(1, sweep.events() + 1):
        host = sweep.host(f"kill{number}")
        check(host, killed_and_run_again(host, number), number)


def test_a_kill_between_two_nvml_calls_of_any_kind(sweep: Sweep) -> None:
    events = sweep.events(every_call=True)
    for number in range(7, events + 1, events // 9):
        host = sweep.host(f"call{number}")
        check(host, killed_and_run_again(host, number, every_call=True), number)


def test_undo_after_a_kill_goes_back_behind_it(sweep: Sweep) -> None:
    events = sweep.events()
    for number in range(3, events, 4):
        host = sweep.host(f"undo{number}")
        answers = run_jobs(
            host.built,
            [
                host.job("apply", BEFORE, options={"persist": False}),
                host.job("apply", WANTED, options=OPTIONS, kill_at=number),
                host.job("apply", options={"previous": True, **OPTIONS}),
                host.job("view"),
            ],
        )
        view = after(answers, number)
        assert devices(view) == [["3g.20gb@0", "3g.20gb@4"], []], number
        assert host.active == sorted(UNITS), number


def test_a_power_loss_comes_back_with_the_layout_of_the_last_whole_change(sweep: Sweep) -> None:
    events = sweep.events()
    # The last events write down what undo and the next boot go by.
    for number in [*range(2, events - 6, 6), *range(events - 6, events)]:
        host = sweep.host(f"boot{number}")
        run_jobs(
            host.built,
            [
                host.job("apply", BEFORE),
                host.job("apply", WANTED, options=OPTIONS, kill_at=number),
            ],
        )
        host.reboot()
        view = after(
            run_jobs(host.built, [host.job("apply", options={"boot": True}), host.job("view")]),
            number,
        )
        assert profiles(view) in (TARGET, [["3g.20gb"] * 2, []]), number
        assert host.active == sorted(UNITS), number
        assert not view["unfinished"], number
        if profiles(view) == TARGET:
            host.apply(options={"previous": True})
            assert profiles(host.view()) == [["3g.20gb"] * 2, []], number


def test_a_boot_that_is_cut_off_does_not_become_what_undo_goes_back_to(sweep: Sweep) -> None:
    for number in (1, 2, 4):
        host = sweep.host(f"cut{number}")
        host.apply(BEFORE)
        host.apply(WANTED)
        host.reboot()
        cut = host.job("apply", options={"boot": True}, kill_at=number)
        assert run_jobs(host.built, [cut]) == [None]
        host.apply(WANTED)
        assert not host.view()["unfinished"]
        host.apply(options={"previous": True})
        assert devices(host.view()) == [["3g.20gb@0", "3g.20gb@4"], []], number


def test_a_change_of_another_gpu_does_not_forget_the_one_that_was_cut_off(sweep: Sweep) -> None:
    host = sweep.host("two")
    host.apply(BEFORE)
    cut = host.job("apply", {"0": {"7g.40gb": 1}}, kill_at=5)
    assert run_jobs(host.built, [cut]) == [None]
    assert devices(host.view())[0] != ["3g.20gb@0", "3g.20gb@4"]
    host.apply({"1": {"7g.40gb": 1}})
    host.apply(options={"previous": True})
    assert devices(host.view()) == [["3g.20gb@0", "3g.20gb@4"], []]


def test_undo_after_a_kill_leaves_gpus_alone_that_the_change_was_not_for(sweep: Sweep) -> None:
    host = sweep.host("alone")
    host.apply(BEFORE)
    cut = host.job("apply", {"0": {"7g.40gb": 1}}, kill_at=5)
    assert run_jobs(host.built, [cut]) == [None]
    journal = json.loads(host.file("/var/lib/steadygpu/mig/journal.json").read_text())
    assert [one["index"] for one in journal["before"]] == [0]


def test_resume_starts_what_was_stopped_and_keeps_what_undo_needs(sweep: Sweep) -> None:
    host = sweep.host("resume")
    host.apply(BEFORE)
    cut = host.job("apply", WANTED, options=OPTIONS, kill_at=10)
    assert run_jobs(host.built, [cut]) == [None]
    assert host.active == []
    resumed = host.do("resume")
    assert host.active == sorted(UNITS)
    assert resumed["actions"] == [f"start {unit}" for unit in reversed(OPTIONS["stop"])]
    assert host.do("resume")["actions"] == []
    host.apply(options={"previous": True})
    assert devices(host.view()) == [["3g.20gb@0", "3g.20gb@4"], []]


def test_containers_of_a_killed_change_come_back_although_the_boot_fails(sweep: Sweep) -> None:
    host = sweep.host("containers")
    host.apply(BEFORE)
    cut = host.job("apply", WANTED, options=OPTIONS, kill_at=8)
    assert run_jobs(host.built, [cut]) == [None]
    path = host.file("/var/lib/steadygpu/mig/journal.json")
    journal = json.loads(path.read_text())
    path.write_text(json.dumps({**journal, "stopped": ["container:exporter", "dcgm.service"]}))
    host.reboot()
    no_driver = {"call": "nvmlInit", "code": 9}
    boot = {"boot": True, "deadline_s": 0.5}
    assert "not loaded" in host.do("apply", options=boot, fail=no_driver)["error"]
    assert "start dcgm.service" in host.log
    assert host.log[-1] == "resume once Docker runs"
    # Until they are started, they are not forgotten.
    assert json.loads(path.read_text())["stopped"] == ["container:exporter"]


def test_a_kill_during_the_restoring_is_ended_by_the_next_run(sweep: Sweep) -> None:
    fail = {"call": "nvmlGpuInstanceCreateComputeInstance", "nth": 2, "code": 23}
    host = sweep.host("whole-failure")
    host.apply(BEFORE, options={"persist": False})
    events = host.do("apply", WANTED, options=OPTIONS, fail=fail)["events"]
    for number in range(2, events + 1, 4):
        host = sweep.host(f"restore{number}")
        check(host, killed_and_run_again(host, number, fail=fail), number)


def test_what_undo_goes_back_to_outlives_a_run_that_ends_in_an_error(sweep: Sweep) -> None:
    events = sweep.events()
    host = sweep.host("disk")
    run_jobs(
        host.built,
        [
            host.job("apply", BEFORE, options={"persist": False}),
            # The change is made, and nothing of it is written down.
            host.job("apply", WANTED, options=OPTIONS, kill_at=events - 6),
        ],
    )
    blocker = host.file("/etc/steadygpu/mig.json")
    blocker.mkdir(parents=True)
    assert "error" in host.do("apply", WANTED, options=OPTIONS)
    blocker.rmdir()
    host.apply(WANTED, options=OPTIONS)
    host.apply(options={"previous": True, **OPTIONS})
    assert devices(host.view()) == [["3g.20gb@0", "3g.20gb@4"], []]
