# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import contextlib
import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.atomic import write_atomic
from ansible_collections.steadygpu.host.plugins.module_utils.engine.daemon_apply import (
    DaemonFailedError,
    carry_out,
)
from ansible_collections.steadygpu.host.plugins.module_utils.engine.daemon_json import dump_record
from ansible_collections.steadygpu.host.plugins.module_utils.engine.daemon_plan import (
    DaemonRefusedError,
)
from ansible_collections.steadygpu.host.tests.unit.module_utils.engine.fake_docker import (
    CDI,
    NVIDIA,
    FakeDocker,
    Host,
)


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


def test_hot_keys_are_reloaded_and_no_container_dies(host: Host) -> None:
    docker = host.docker(running=("train",))
    assert host.run(docker, {**NVIDIA, "live-restore": True}).applied == "reload"
    assert (docker.done, docker.killed) == (["reload"], [])
    assert "nvidia" in docker.live["runtimes"]


def test_a_second_run_does_nothing(host: Host) -> None:
    docker = host.docker()
    host.run(docker, {**NVIDIA, **CDI})
    docker.done.clear()
    plan = host.plan(docker, {**NVIDIA, **CDI})
    assert (plan.changed, plan.how, plan.actions) == (False, "none", ())
    carry_out(plan, docker, record_path=host.record)
    assert docker.done == []


def test_a_restart_that_would_kill_is_refused_before_anything_is_written(host: Host) -> None:
    docker = host.docker(running=("train-7b",))
    with pytest.raises(DaemonRefusedError) as caught:
        host.run(docker, CDI)
    for words in ("train-7b", "features", "live-restore: true", "restart: always", "never"):
        assert words in str(caught.value)
    assert (host.text(), docker.done, os.path.exists(host.record)) == (None, [], False)


def test_live_restore_among_the_wished_is_made_true_before_the_restart(host: Host) -> None:
    docker = host.docker(running=("train",))
    outcome = host.run(docker, {**CDI, "live-restore": True})
    assert outcome.applied == "restart"
    assert (docker.done, docker.killed, docker.running) == (["reload", "restart"], [], ("train",))
    assert docker.live["features"] == {"cdi": True}


def test_a_restart_on_a_swarm_node_is_refused_with_its_own_way_out(host: Host) -> None:
    docker = host.docker(running=("task",), swarm=True)
    with pytest.raises(DaemonRefusedError, match="drain this Swarm node"):
        host.run(docker, CDI)
    assert host.text() is None


@pytest.mark.parametrize("restart", ["when_safe", "never", "always"])
@pytest.mark.parametrize("there", [None, '{"live-restore": true}'])
def test_live_restore_on_a_swarm_node_is_an_error(
    host: Host, there: str | None, restart: str
) -> None:
    if there:
        host.write(there)
    docker = host.docker(swarm=True)
    with pytest.raises(DaemonRefusedError, match=r"Swarm node and live-restore .*engine_config"):
        host.run(docker, {"live-restore": True}, restart=restart, validate=False)
    assert (host.text(), docker.done) == (there, [])


def test_a_swarm_node_that_would_not_start_again_is_not_restarted(host: Host) -> None:
    host.write('{"live-restore": true}')
    docker = host.docker(swarm=True)
    assert host.run(docker, NVIDIA).applied == "reload"
    with pytest.raises(DaemonRefusedError, match="refuses its next start"):
        host.run(docker, CDI, restart="always")
    assert docker.done == ["reload"]


@pytest.mark.parametrize(
    ("config", "named"),
    [
        ({"data-root": "/srv/docker"}, "data-root"),
        ({"bip": "10.9.0.1/24"}, "bip"),
        ({"features": {"containerd-snapshotter": True}}, "features.containerd-snapshotter"),
        ({"exec-opts": ["native.cgroupdriver=cgroupfs"]}, "exec-opts native.cgroupdriver"),
    ],
)
def test_live_restore_does_not_excuse_a_change_it_does_not_cover(
    host: Host, config: dict[str, Any], named: str
) -> None:
    before = '{"live-restore": true}'
    host.write(before)
    docker = host.docker(running=("train",))
    with pytest.raises(DaemonRefusedError) as caught:
        host.run(docker, config)
    assert f"over a change of {named}" in str(caught.value)
    assert "set live-restore" not in str(caught.value)
    with pytest.raises(DaemonRefusedError, match="train"):
        host.run(docker, {**config, "live-restore": True})
    assert (host.text(), docker.done) == (before, [])
    host.write("{}")
    docker.live = {}
    with pytest.raises(DaemonRefusedError, match="train"):
        host.run(docker, {**config, "live-restore": True})
    docker.running = ()
    assert host.plan(docker, config).how == "restart"


def test_live_restore_covers_the_other_parts_of_the_same_keys(host: Host) -> None:
    host.write('{"live-restore": true, "features": {"containerd-snapshotter": true}}')
    docker = host.docker(running=("train",))
    assert host.run(docker, CDI).applied == "restart"
    assert docker.killed == []


def test_never_writes_and_says_what_is_pending_each_time(host: Host) -> None:
    docker = host.docker(running=("train",))
    first = host.run(docker, CDI, restart="never")
    assert first.applied == "none"
    assert first.pending is not None
    assert "features" in first.pending
    plan = host.plan(docker, CDI, restart="never")
    assert (plan.changed, plan.pending) == (False, first.pending)
    assert host.run(docker, CDI, restart="always").applied == "restart"
    assert host.plan(docker, CDI).pending is None


def test_a_pending_key_the_daemon_does_not_show_is_remembered(host: Host) -> None:
    docker = host.docker(running=("train",))
    host.run(docker, {"default-ulimits": {"n": {"Name": "n", "Hard": 1}}}, restart="never")
    docker.running = ()
    again = {"default-ulimits": {"n": {"Name": "n", "Hard": 1}}}
    assert host.run(docker, again).applied == "restart"
    docker.done.clear()
    assert host.run(docker, again).applied == "none"
    assert docker.done == []


def test_always_restarts_over_running_containers(host: Host) -> None:
    docker = host.docker(running=("train",))
    assert host.run(docker, CDI, restart="always").applied == "restart"
    assert docker.killed == ["train"]


def test_absent_makes_the_daemon_forget_and_restores_the_file(host: Host) -> None:
    before = '{"log-driver": "journald"}\n'
    host.write(before)
    docker = host.docker(running=("train",))
    host.run(docker, {**NVIDIA, "default-runtime": "nvidia"})
    assert docker.live["default-runtime"] == "nvidia"
    outcome = host.run(docker, {}, present=False)
    assert outcome.applied == "reload"
    assert (docker.live["default-runtime"], docker.live["runtimes"]) == ("runc", {})
    assert (host.text(), docker.killed) == (before, [])
    assert not os.path.exists(host.record)


def test_live_restore_is_given_up_last(host: Host) -> None:
    before = '{"labels": ["a=1"]}'
    host.write(before)
    docker = host.docker(running=("train",))
    host.run(docker, {**CDI, "live-restore": True})
    docker.done.clear()
    assert host.run(docker, {}, present=False).applied == "restart"
    assert (docker.done, docker.killed) == (["restart", "reload"], [])
    assert host.text() == before
    assert not docker.live["live-restore"]
    assert "features" not in docker.live


def test_a_daemon_that_does_not_start_gets_its_former_file_back(host: Host) -> None:
    before = '{"labels": ["a=1"]}'
    host.write(before)
    docker = host.docker(refuses="cdi")
    with pytest.raises(DaemonFailedError) as caught:
        host.run(docker, CDI)
    assert "unable to configure the Docker daemon" in str(caught.value)
    assert "file was put back; Docker runs with it again" in str(caught.value)
    assert (host.text(), docker.status, docker.live) == (before, "running", {"labels": ["a=1"]})
    assert not os.path.exists(host.record)


def test_a_reload_that_was_not_taken_is_undone_in_file_and_daemon(host: Host) -> None:
    docker = host.docker(running=("train",), deaf=("default-runtime",))
    wanted = {**NVIDIA, "default-runtime": "nvidia"}
    with pytest.raises(DaemonFailedError, match='default-runtime is "runc", wanted "nvidia"'):
        host.run(docker, wanted)
    assert (host.text(), docker.live["runtimes"], docker.killed) == (None, {}, [])


def test_a_container_that_starts_meanwhile_is_not_killed(host: Host) -> None:
    docker = host.docker(running=("a",), appears_on_reload="newcomer")
    with pytest.raises(DaemonFailedError):
        host.run(docker, {**CDI, "live-restore": True})
    assert (docker.killed, host.text()) == ([], None)
    assert "restart" not in docker.done


@pytest.mark.parametrize("status", ["stopped", "absent"])
def test_without_a_daemon_the_file_is_written_and_nothing_started(host: Host, status: str) -> None:
    docker = host.docker(status=status)
    assert host.run(docker, CDI).applied == "not_running"
    assert docker.done == []
    assert json.loads(host.text() or "") == CDI


def test_a_hung_daemon_stops_us_before_the_file(host: Host) -> None:
    with pytest.raises(DaemonRefusedError, match="could not be asked"):
        host.run(host.docker(status="unreachable"), CDI)
    assert host.text() is None


@pytest.mark.parametrize(
    ("config", "flags", "words"),
    [
        ({"default-shm-size": "1G"}, {"--default-shm-size": "1G"}, "flag of docker.service"),
        ({"hosts": ["fd://"]}, {"--host": "fd://"}, "dockerd would not start"),
        ({"insecure-registries": ["a"]}, {"--insecure-registry": "b"}, "insecure-registries"),
        ({"proxies": {"no-proxy": "a"}}, {"--no-proxy": "b"}, "no-proxy is a flag"),
        ({"ai-scheduler": "on"}, {}, "dockerd --validate: unknown key"),
        ({"default-runtime": "nvidia"}, {}, "runtimes does not define"),
        ({"runtimes": {"n": {"path": "/missing"}}}, {}, "no such program"),
        ({"runtimes": {"runc": {"path": "/x"}}}, {}, "reserved"),
        ({"exec-opts": ["native.cgroupdriver=bogus"]}, {}, "systemd or cgroupfs"),
        ({"log-driver": "loki"}, {}, "this daemon has journald, json-file"),
        ({"debug": True}, {"--config-file": "/other.json"}, "reads /other.json"),
    ],
)
def test_what_would_break_the_daemon_is_refused(
    host: Host, config: dict[str, Any], flags: dict[str, str], words: str
) -> None:
    docker = host.docker(flags=flags)
    with pytest.raises(DaemonRefusedError, match=words):
        host.run(docker, config)
    assert (host.text(), docker.done) == (None, [])


def test_an_unknown_feature_of_somebody_else_is_a_warning(host: Host) -> None:
    host.write('{"features": {"gpu-scheduler": true}}')
    plan = host.plan(host.docker(), CDI)
    assert "features.gpu-scheduler" in plan.warnings[0]


def test_a_broken_file_is_left_alone(host: Host) -> None:
    host.write('{"a": 1,}\n')
    with pytest.raises(DaemonRefusedError, match=r"line 1 column [89]"):
        host.run(FakeDocker("/nonexistent"), CDI)
    assert host.text() == '{"a": 1,}\n'


def test_a_unit_that_would_be_restarted_along_is_named(host: Host) -> None:
    docker = host.docker(bound=("train.service",))
    assert host.run(docker, NVIDIA).applied == "reload"
    text = host.text()
    for config in (CDI, {**CDI, "live-restore": True}):
        with pytest.raises(DaemonRefusedError, match=r"stop and start train\.service"):
            host.run(docker, config)
    assert (host.text(), docker.done) == (text, ["reload"])
    assert host.run(docker, CDI, restart="always").applied == "restart"


@pytest.mark.parametrize("key", ["runtimes", "labels"])
def test_killed_before_the_record_was_removed_a_later_run_needs_no_restart(
    host: Host, key: str
) -> None:
    docker = host.docker(running=("train",))
    config = {"runtimes": NVIDIA["runtimes"], "labels": ["a=1"]}
    host.run(docker, {key: config[key]})
    plan = host.plan(docker, {}, present=False)
    carry_out(plan, docker, timeout_s=0.01, record_path=host.record)
    claims = dump_record(replace(plan.record_before, pending=(key,)))
    Path(host.record).write_text(claims)
    docker.done.clear()
    assert host.run(docker, {}, present=False).applied == "reload"
    assert (docker.killed, host.text(), os.path.exists(host.record)) == ([], None, False)


class Killed(BaseException):
    """Stands for kill -9: nothing of ours catches it."""


@pytest.mark.parametrize("present", [True, False])
@pytest.mark.parametrize("cut", range(8))
def test_killed_at_any_write_a_later_run_finishes_and_undo_is_exact(
    host: Host, present: bool, cut: int
) -> None:
    before = '{\n    "labels": ["a=1"]\n}\n'
    config = {**NVIDIA, "default-runtime": "nvidia", "default-ulimits": {"n": {"Hard": 1}}}
    host.write(before)
    docker = host.docker()
    if not present:
        host.run(docker, config)
    writes = iter(range(100))

    def write(path: str, text: str, mode: int | None = None) -> None:
        if next(writes) == cut:
            raise Killed()
        write_atomic(path, text, mode)

    plan = host.plan(docker, config, present=present)
    with contextlib.suppress(Killed):
        carry_out(plan, docker, timeout_s=0.01, record_path=host.record, write=write)
    host.run(docker, config, present=present)
    if present:
        assert docker.live["default-runtime"] == "nvidia"
        assert "default-ulimits" in docker.live
        host.run(docker, {}, present=False)
    assert (host.text(), docker.live) == (before, {"labels": ["a=1"]})
    assert not os.path.exists(host.record)
