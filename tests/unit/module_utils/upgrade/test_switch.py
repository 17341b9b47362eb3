# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from dataclasses import replace

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.upgrade.model import (
    Container,
    Daemon,
    Host,
    Shim,
)
from ansible_collections.steadygpu.host.plugins.module_utils.upgrade.switch import (
    SwitchFailedError,
    SwitchRefusedError,
    Wish,
    carry_out,
)
from ansible_collections.steadygpu.host.tests.unit.module_utils.upgrade.fake_machine import (
    FakeMachine,
    old,
    upgraded,
)
from ansible_collections.steadygpu.host.tests.unit.module_utils.upgrade.upgrade_hosts import (
    JOB,
    host,
)

BOTH = ["containerd.service", "docker.service"]


def test_both_daemons_are_started_anew_in_order_and_the_job_is_the_same() -> None:
    machine = FakeMachine(upgraded())
    outcome = carry_out(Wish(containers={"trainer": 4711}), machine)
    assert machine.restarts == BOTH
    assert outcome.kept == {"trainer": 4711}
    assert outcome.after["docker"] == "28.5.2+dfsg4"
    again = carry_out(Wish(containers={"trainer": 4711}), machine)
    assert (again.restarted, machine.restarts) == ((), BOTH)


def test_check_mode_says_it_and_does_nothing() -> None:
    machine = FakeMachine(upgraded())
    assert carry_out(Wish(), machine, check=True).restarted == tuple(BOTH)
    assert machine.restarts == []


def test_a_run_that_was_killed_between_the_two_is_finished() -> None:
    machine = FakeMachine(upgraded())
    machine.restart(BOTH[0])
    carry_out(Wish(), machine)
    assert machine.restarts == BOTH


def test_complaint_39_nothing_is_restarted_where_a_container_would_end() -> None:
    machine = FakeMachine(replace(upgraded(), info={}))
    with pytest.raises(SwitchRefusedError) as refused:
        carry_out(Wish(), machine)
    for words in ("nothing was changed", "trainer", "live-restore: true", "live-restore-off"):
        assert words in str(refused.value)
    assert machine.restarts == []
    carry_out(Wish(accept=frozenset(["live-restore-off"])), machine)
    assert machine.restarts == BOTH


@pytest.mark.parametrize("unit", BOTH)
def test_a_configuration_that_the_new_program_does_not_take_is_found_before(unit: str) -> None:
    machine = FakeMachine(upgraded())
    machine.complaint = (unit, "unknown key graph")
    with pytest.raises(SwitchRefusedError, match="unknown key graph"):
        carry_out(Wish(), machine)
    assert machine.restarts == []


def test_what_the_programs_say_is_told_without_secrets() -> None:
    now = upgraded()
    proxies = {"https-proxy": "http://build:hunter2hunter2@proxy.example.com"}
    machine = FakeMachine(replace(now, config={**now.config, "proxies": proxies}))
    machine.complaint = ("docker.service", f"invalid proxy {proxies['https-proxy']}")
    with pytest.raises(SwitchRefusedError, match="invalid proxy") as refused:
        carry_out(Wish(), machine)
    assert "hunter2" not in str(refused.value)


def test_rt_027_a_container_that_is_not_adopted_is_a_failure_with_its_name() -> None:
    machine = FakeMachine(upgraded())
    machine.kills = {"trainer": 255}
    with pytest.raises(SwitchFailedError) as failed:
        carry_out(Wish(), machine)
    assert "container trainer (process 4711) has ended with status 255" in str(failed.value)
    assert "docker.service said goodbye" in str(failed.value)


def test_a_container_that_is_gone_or_started_anew_is_a_failure() -> None:
    for changes, words in (
        ({"kills": {"trainer": None}}, "is gone"),
        ({"renews": {"trainer": 5}}, "anew"),
    ):
        machine = FakeMachine(upgraded())
        vars(machine).update(changes)
        with pytest.raises(SwitchFailedError, match=words):
            carry_out(Wish(), machine)


def test_a_job_that_has_done_its_work_is_a_word_and_no_failure() -> None:
    machine = FakeMachine(upgraded())
    machine.kills = {"trainer": 0}
    outcome = carry_out(Wish(), machine)
    assert "ended by itself" in outcome.warnings[0]


def test_a_gpu_that_is_lost_by_it_is_a_failure_and_one_lost_before_is_not() -> None:
    machine = FakeMachine(upgraded())
    machine.lost = {"trainer": "/dev/nvidia0"}
    carry_out(Wish(), machine)
    machine = FakeMachine(upgraded())
    machine.loses = {"trainer": "/dev/nvidia0"}
    with pytest.raises(SwitchFailedError, match="trainer may no longer open /dev/nvidia0"):
        carry_out(Wish(), machine)


def test_docker_is_waited_for_until_it_answers_and_not_for_ever() -> None:
    machine = FakeMachine(upgraded())
    machine.silent = 2
    carry_out(Wish(timeout_s=30), machine)
    machine = FakeMachine(upgraded())
    machine.silent = 1 << 30
    with pytest.raises(SwitchFailedError, match="did not answer"):
        carry_out(Wish(timeout_s=0), machine)


def test_a_restart_that_puts_nothing_in_force_is_a_failure() -> None:
    machine = FakeMachine(upgraded())
    machine.useless = True
    with pytest.raises(SwitchFailedError, match="not in force although restarted"):
        carry_out(Wish(), machine)


def test_the_way_back_starts_a_daemon_that_does_not_come_up() -> None:
    down = Daemon(True, True, True, 0, None, "26.1.5+dfsg1", kill_mode="process")
    gone = host(status="unreachable", reason="nobody listens on it", docker=down, containers=())
    with pytest.raises(SwitchFailedError, match="trainer"):
        carry_out(Wish(containers={"trainer": 4711}), FakeMachine(gone))
    machine = FakeMachine(gone)
    # Docker finds the containers that its shims kept.
    machine.host = replace(gone, containers=(JOB,))
    outcome = carry_out(Wish(start=True, containers={"trainer": 4711}), machine)
    assert outcome.restarted == ("docker.service",)
    assert outcome.kept == {"trainer": 4711}


def test_a_stopped_docker_stays_stopped_unless_told() -> None:
    idle = Daemon(True, False, False, 0, None, "28.5.2+dfsg4")
    stopped = host(status="stopped", docker=idle, containers=(), info={})
    machine = FakeMachine(stopped)
    assert carry_out(Wish(), machine).restarted == ()
    assert carry_out(Wish(start=True), machine).restarted == ("docker.service",)
    machine = FakeMachine(stopped)
    machine.ends_at_start = "its start would end train"
    with pytest.raises(SwitchRefusedError, match=r"docker\.service not started: .* end train"):
        carry_out(Wish(start=True), machine)
    assert machine.restarts == []


LATER = Container("ab" * 32, "later", running=True, pid=4712, gpus="cdi", runtime="runc")


def downgraded() -> Host:
    """As after the packages of the former release, with a job that the newer one has started."""
    return replace(
        upgraded(),
        containers=(JOB, LATER),
        containerd=old(90, "2.1.9+ds1", "1.7.24~ds1"),
        docker=old(100, "28.5.2+dfsg4", "26.1.5+dfsg1"),
        flags={"--containerd": "/run/containerd/containerd.sock"},
        shims=(Shim("containerd.service", "containerd-shim-runc-v2", "moby", LATER.id, 3),),
    )


def test_whom_the_older_containerd_would_end_is_named_before_the_first_restart() -> None:
    machine = FakeMachine(downgraded())
    with pytest.raises(SwitchRefusedError, match=r"shim-newer(.|\n)*would end: later"):
        carry_out(Wish(), machine)
    assert machine.restarts == []
    # Once it was too late, nothing is saved by not starting Docker.
    machine = FakeMachine(
        replace(downgraded(), containerd=replace(old(91, "1.7.24", "1.7.24"), stale=False))
    )
    assert carry_out(Wish(), machine).restarted == ("docker.service",)


def test_who_was_given_up_may_end_and_the_others_live() -> None:
    machine = FakeMachine(downgraded())
    machine.kills = {"later": 255}
    outcome = carry_out(
        Wish(accept=frozenset({"shim-newer"}), containers={"trainer": 4711, "later": 4712}), machine
    )
    assert (outcome.kept, outcome.lost) == ({"trainer": 4711}, ("later",))
    assert outcome.warnings == ("container later was to end, as was accepted (shim-newer)",)


class KilledError(Exception):
    """The module died here."""


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("unit", BOTH)
def test_a_switch_that_was_killed_at_a_restart_is_finished_by_the_next_run(
    monkeypatch: pytest.MonkeyPatch, unit: str, after: bool
) -> None:
    machine = FakeMachine(upgraded())
    whole = machine.restart

    def killed(name: str) -> None:
        if name != unit or after:
            whole(name)
        if name == unit:
            raise KilledError

    monkeypatch.setattr(machine, "restart", killed)
    with pytest.raises(KilledError):
        carry_out(Wish(), machine)
    monkeypatch.setattr(machine, "restart", whole)
    outcome = carry_out(Wish(), machine)
    # Nobody is restarted twice, and the job has lived through it.
    assert machine.restarts == list(BOTH)
    assert outcome.kept == {"trainer": 4711}
    assert carry_out(Wish(), machine).restarted == ()


# -- between the plan and the switch -------------------------------------------------------


def test_a_job_that_ended_before_the_switch_is_a_word_and_the_others_are_proved() -> None:
    machine = FakeMachine(upgraded())
    outcome = carry_out(Wish(containers={"trainer": 4711, "short": 4712}), machine)
    assert (outcome.restarted, outcome.kept) == (tuple(BOTH), {"trainer": 4711})
    assert outcome.lost == ("short",)
    assert "by the time of the switch container short is gone" in outcome.warnings
    machine = FakeMachine(upgraded())
    machine.kills = {"trainer": 255}
    with pytest.raises(SwitchFailedError) as failed:
        carry_out(Wish(containers={"trainer": 4711, "short": 4712}), machine)
    assert "container trainer (process 4711) has ended with status 255" in str(failed.value)
    assert "short" not in str(failed.value)


def test_a_job_that_was_started_anew_before_the_switch_is_not_the_doing_of_the_switch() -> None:
    outcome = carry_out(Wish(containers={"trainer": 7}), FakeMachine(upgraded()))
    assert (outcome.kept, outcome.lost) == ({}, ("trainer",))
    assert "container trainer was started anew: process 4711, was 7" in outcome.warnings[0]


def test_a_job_that_came_after_the_plan_is_proved_too() -> None:
    machine = FakeMachine(upgraded())
    machine.kills = {"trainer": 137}
    with pytest.raises(SwitchFailedError, match="trainer"):
        carry_out(Wish(containers={}), machine)


def test_a_process_that_was_not_known_is_no_other_process() -> None:
    unknown = replace(JOB, pid=0, looked_into=False)
    for before, now in ((0, JOB), (4711, unknown), (0, unknown)):
        machine = FakeMachine(replace(upgraded(), containers=(now,)))
        outcome = carry_out(Wish(containers={"trainer": before}), machine)
        assert (outcome.lost, outcome.warnings) == ((), ())
        assert outcome.kept == {"trainer": now.pid}
    # What runs without a process waits to be started anew by its policy.
    machine = FakeMachine(replace(upgraded(), containers=(replace(JOB, pid=0),)))
    assert carry_out(Wish(containers={"trainer": 4711}), machine).lost == ("trainer",)


def test_where_nothing_is_due_a_job_that_has_ended_is_no_failure() -> None:
    machine = FakeMachine(host(containers=()))
    outcome = carry_out(Wish(containers={"trainer": 4711}), machine)
    assert (outcome.restarted, outcome.lost, machine.restarts) == ((), ("trainer",), [])


def test_a_container_that_the_former_daemon_finds_again_is_not_lost() -> None:
    machine = FakeMachine(replace(upgraded(), containers=()))
    machine.finds = (JOB,)
    outcome = carry_out(Wish(start=True, containers={"trainer": 4711}), machine)
    assert (outcome.lost, outcome.warnings) == ((), ())
    assert outcome.kept == {"trainer": 4711}


def test_it_is_looked_again_right_before_the_first_restart() -> None:
    both = (JOB, replace(JOB, name="short", pid=4712))
    machine = FakeMachine(replace(upgraded(), containers=both))
    machine.then = (JOB,)
    outcome = carry_out(Wish(containers={"trainer": 4711, "short": 4712}), machine)
    assert outcome.lost == ("short",)
