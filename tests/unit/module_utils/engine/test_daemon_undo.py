# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What goes wrong on the way is undone, and no container ends for it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.atomic import write_atomic
from ansible_collections.steadygpu.host.plugins.module_utils.engine.daemon_apply import (
    DaemonFailedError,
    carry_out,
)
from ansible_collections.steadygpu.host.plugins.module_utils.engine.daemon_plan import (
    DaemonRefusedError,
)
from ansible_collections.steadygpu.host.plugins.module_utils.engine.docker_api import (
    EngineError,
    EngineUnreachableError,
)
from ansible_collections.steadygpu.host.plugins.module_utils.process import CommandMissingError
from ansible_collections.steadygpu.host.plugins.module_utils.units import UnitError
from ansible_collections.steadygpu.host.tests.unit.module_utils.engine.fake_docker import (
    CDI,
    NVIDIA,
    Host,
)

BEFORE = '{"labels": ["a=1"]}'


@pytest.fixture
def host(tmp_path: Path) -> Host:
    made = Host(tmp_path)
    made.write(BEFORE)
    return made


def test_a_daemon_that_is_slow_to_reload_is_not_restarted(host: Host) -> None:
    late = UnitError("no reload within 120 s")
    docker = host.docker(running=("train",), hangs_after="reload", raises={"reload": late})
    with pytest.raises(DaemonFailedError) as caught:
        host.run(docker, NVIDIA)
    assert (docker.done, docker.killed, host.text()) == (["reload"], [], BEFORE)
    for words in ("was put back", "not restarted", "runtimes", "systemctl restart docker"):
        assert words in str(caught.value)


def test_always_restarts_even_a_daemon_that_cannot_list_its_containers(host: Host) -> None:
    late = UnitError("no reload within 120 s")
    docker = host.docker(running=("train",), hangs_after="reload", raises={"reload": late})
    with pytest.raises(DaemonFailedError, match="runs with it again"):
        host.run(docker, NVIDIA, restart="always")
    assert (docker.done[-1], host.text()) == ("restart", BEFORE)


def test_a_daemon_that_died_of_the_reload_is_started_with_the_former_file(host: Host) -> None:
    docker = host.docker(dies_after="reload", raises={"reload": UnitError("dead")})
    with pytest.raises(DaemonFailedError, match="runs with it again"):
        host.run(docker, NVIDIA)
    assert (docker.done, docker.status) == (["reload", "restart"], "running")
    assert (host.text(), os.path.exists(host.record)) == (BEFORE, False)


def test_a_daemon_that_falls_silent_before_the_restart_is_left_alone(host: Host) -> None:
    docker = host.docker(running=("train",), hangs_after="reload")
    with pytest.raises(DaemonFailedError):
        host.run(docker, {**CDI, "live-restore": True})
    assert (docker.done, docker.killed, host.text()) == (["reload"], [], BEFORE)


def test_a_daemon_that_falls_silent_after_the_restart_may_hold_new_containers(host: Host) -> None:
    docker = host.docker(hangs_after="restart")
    with pytest.raises(DaemonFailedError, match=r"may hold features"):
        host.run(docker, CDI)
    assert (docker.done, host.text()) == (["restart"], BEFORE)


def test_containers_that_live_restore_carried_survive_the_way_back_too(host: Host) -> None:
    docker = host.docker(running=("train",), refuses="cdi")
    with pytest.raises(DaemonFailedError, match="runs with it again"):
        host.run(docker, {**CDI, "live-restore": True})
    assert (docker.killed, docker.running) == ([], ("train",))
    assert (host.text(), docker.live["live-restore"]) == (BEFORE, False)


def test_keys_that_stay_in_the_daemon_are_named_and_remembered(host: Host) -> None:
    docker = host.docker(running=("train",), deaf=("features",))
    with pytest.raises(DaemonFailedError, match=r"keeps features until its next restart") as caught:
        host.run(docker, {**CDI, "live-restore": True})
    assert "train" in str(caught.value)
    assert (docker.killed, host.text()) == ([], BEFORE)
    assert json.loads(Path(host.record).read_text())["pending"] == ["features"]


@pytest.mark.parametrize(
    "error",
    [
        OSError(5, "Input/output error"),
        CommandMissingError("systemctl: no such program on this host"),
        EngineUnreachableError("nobody listens"),
        EngineError(500, "GET /events", "busy"),
        UnitError("systemctl reload failed"),
    ],
)
def test_whatever_a_reload_raises_the_file_is_put_back(host: Host, error: Exception) -> None:
    docker = host.docker(running=("train",), raises={"reload": error})
    with pytest.raises(DaemonFailedError) as caught:
        host.run(docker, NVIDIA)
    assert str(error) in str(caught.value)
    assert (host.text(), docker.killed) == (BEFORE, [])


def test_a_full_disk_leaves_file_and_daemon_alone(host: Host) -> None:
    docker = host.docker(running=("train",))
    plan = host.plan(docker, NVIDIA)

    def write(path: str, text: str, mode: int | None = None) -> None:
        if path == host.path:
            raise OSError(28, "No space left on device")
        write_atomic(path, text, mode)

    with pytest.raises(DaemonFailedError, match=r"could not be changed: .*No space left"):
        carry_out(plan, docker, timeout_s=0.01, record_path=host.record, write=write)
    assert (host.text(), docker.done, os.path.exists(host.record)) == (BEFORE, [], False)


# -- start -------------------------------------------------------------------------------


def test_a_stopped_daemon_starts_with_the_new_file(host: Host) -> None:
    docker = host.docker(status="stopped")
    plan = host.plan(docker, CDI, start=True)
    assert (plan.how, plan.changed, docker.done) == ("start", True, [])
    assert host.run(docker, CDI, start=True).applied == "start"
    assert (docker.done, docker.live["features"]) == (["start"], {"cdi": True})
    again = host.plan(docker, CDI, start=True)
    assert (again.how, again.changed) == ("none", False)


def test_a_stopped_daemon_starts_though_the_file_is_right(host: Host) -> None:
    docker = host.docker(status="stopped")
    host.run(docker, CDI)
    text = host.text()
    assert host.plan(docker, CDI).changed is False
    assert host.plan(docker, CDI, start=True).changed is True
    assert host.run(docker, CDI, start=True).applied == "start"
    assert (docker.status, host.text()) == ("running", text)


def test_with_nothing_to_set_it_starts_and_file_and_record_stay(host: Host) -> None:
    docker = host.docker(status="stopped")
    host.run(docker, CDI)
    kept = (host.text(), Path(host.record).read_text())
    assert host.run(docker, {}, start=True).applied == "start"
    assert (host.text(), Path(host.record).read_text()) == kept
    assert host.run(docker, {}, start=True).applied == "none"


def test_a_start_that_fails_takes_the_file_back_and_ends_stopped(host: Host) -> None:
    docker = host.docker(status="stopped", refuses="cdi")
    with pytest.raises(DaemonFailedError) as caught:
        host.run(docker, CDI, start=True)
    for words in ("put back", "stopped, as it was", "unable to configure the Docker daemon"):
        assert words in str(caught.value)
    assert (host.text(), docker.done) == (BEFORE, ["start", "stop"])
    assert (docker.status, os.path.exists(host.record)) == ("stopped", False)


def test_a_start_that_does_not_take_the_keys_is_undone(host: Host) -> None:
    docker = host.docker(status="stopped", deaf=("features",))
    with pytest.raises(DaemonFailedError, match="CDI is false, wanted true"):
        host.run(docker, CDI, start=True)
    assert (host.text(), docker.status) == (BEFORE, "stopped")


def test_containers_that_came_up_with_the_daemon_are_not_ended(host: Host) -> None:
    docker = host.docker(status="stopped", deaf=("features",), running=("always-on",))
    with pytest.raises(DaemonFailedError, match=r"not stopped again.*always-on"):
        host.run(docker, CDI, start=True)
    assert (host.text(), docker.killed, docker.status) == (BEFORE, [], "running")


def test_a_file_that_was_not_changed_is_not_said_to_be_put_back(host: Host) -> None:
    docker = host.docker(status="stopped", refuses="labels")
    with pytest.raises(DaemonFailedError, match=r"did not start with .*It was not changed"):
        host.run(docker, {}, start=True)


def test_no_docker_is_not_started(host: Host) -> None:
    docker = host.docker(status="absent")
    assert host.run(docker, CDI, start=True).applied == "not_running"
    assert docker.done == []


def test_a_silent_daemon_is_no_started_one(host: Host) -> None:
    docker = host.docker(status="unreachable")
    with pytest.raises(DaemonRefusedError, match="could not be asked"):
        host.run(docker, {}, start=True)


# -- containers that live on without the daemon --------------------------------------------


def test_containers_of_a_daemon_that_died_of_the_reload_are_adopted(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    dead = {"reload": UnitError("dead")}
    docker = host.docker(living=("train",), dies_after="reload", raises=dead)
    restart = docker.restart

    def restart_and_be_well() -> None:
        docker.dies_after, docker.raises = "", {}
        restart()

    monkeypatch.setattr(docker, "restart", restart_and_be_well)
    with pytest.raises(DaemonFailedError, match="runs with it again"):
        host.run(docker, NVIDIA)
    assert (host.text(), docker.killed, docker.running) == (BEFORE, [], ("train",))
    assert not docker.live.get("live-restore")
