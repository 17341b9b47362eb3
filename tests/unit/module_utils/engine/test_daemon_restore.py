# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""daemon.json is given a former text: the daemon follows, and no container ends or is lost."""

from __future__ import annotations

import contextlib
import itertools
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.steadygpu.host.plugins.module_utils.atomic import write_atomic
from ansible_collections.steadygpu.host.plugins.module_utils.engine import daemon_restore
from ansible_collections.steadygpu.host.plugins.module_utils.engine.daemon_apply import (
    DaemonFailedError,
)
from ansible_collections.steadygpu.host.plugins.module_utils.engine.daemon_restore import Restored
from ansible_collections.steadygpu.host.plugins.module_utils.units import UnitError
from ansible_collections.steadygpu.host.tests.unit.module_utils.engine.fake_docker import (
    CDI,
    NVIDIA,
    FakeDocker,
    Host,
)

LABELLED = '{\n    "labels": ["a=1"]\n}\n'
BROKEN = '{"a": 1,}\n'


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


def restore(
    host: Host,
    docker: FakeDocker,
    text: str | None,
    carriers: Mapping[str, Sequence[str]] | None = None,
    **more: Any,
) -> Restored:
    """With no patience, and without the ledger."""
    more.setdefault("stays", lambda program: True)
    more.setdefault("write", write_atomic)
    return daemon_restore.restore_config(
        text, docker, lambda state: carriers or {}, timeout_s=0.01, path=host.path, **more
    )


# -- file and daemon ---------------------------------------------------------------------


@pytest.mark.parametrize("text", [None, "", LABELLED, '{"debug": true, "runtimes": {}}'])
def test_the_daemon_forgets_what_the_former_file_did_not_have(host: Host, text: str | None) -> None:
    host.write(json.dumps({**NVIDIA, "default-runtime": "nvidia", "live-restore": True}))
    docker = host.docker(running=("train",))
    done = restore(host, docker, text)
    assert (done.changed, done.waiting, done.text) == (True, (), text)
    assert (host.text(), docker.killed) == (text, [])
    assert docker.live.get("default-runtime", "runc") == "runc"
    assert docker.live.get("runtimes", {}) == {}
    assert not docker.live.get("live-restore")
    assert "restart" not in docker.done
    again = restore(host, docker, text)
    assert (again.changed, again.waiting) == (False, ())


def test_what_takes_a_restart_waits_while_a_container_would_end(host: Host) -> None:
    host.write(json.dumps({**CDI, **NVIDIA}))
    docker = host.docker(running=("train", "serve"))
    done = restore(host, docker, LABELLED)
    assert (host.text(), docker.killed, docker.done.count("restart")) == (LABELLED, [], 0)
    assert (docker.live["runtimes"], docker.live["labels"]) == ({}, ["a=1"])
    assert len(done.waiting) == 1
    for words in ("features", "next restart", "2 running container(s): train, serve", "systemctl"):
        assert words in done.waiting[0]


def test_what_takes_a_restart_is_restarted_where_nobody_ends(host: Host) -> None:
    host.write(json.dumps(CDI))
    docker = host.docker()
    assert restore(host, docker, None).waiting == ()
    assert (docker.done, docker.live, host.text()) == (["restart"], {}, None)


def test_live_restore_is_given_up_only_after_the_restart_that_needs_it(host: Host) -> None:
    host.write(json.dumps({**CDI, "live-restore": True}))
    docker = host.docker(running=("train",))
    done = restore(host, docker, LABELLED)
    assert (done.waiting, docker.killed, docker.running) == ((), [], ("train",))
    assert (host.text(), docker.live["live-restore"]) == (LABELLED, False)
    assert "features" not in docker.live


@pytest.mark.parametrize("status", ["stopped", "absent"])
def test_without_a_daemon_the_file_alone_is_put_back(host: Host, status: str) -> None:
    host.write(json.dumps(CDI))
    docker = host.docker(status=status)
    done = restore(host, docker, LABELLED)
    assert (done.changed, done.waiting, docker.done) == (True, (), [])
    assert host.text() == LABELLED


def test_a_daemon_that_our_file_broke_is_started_with_the_former_one(host: Host) -> None:
    host.write(json.dumps(CDI))
    docker = host.docker(status="stopped", refuses="cdi")
    restore(host, docker, LABELLED, start=True)
    assert (docker.status, docker.live) == ("running", {"labels": ["a=1"]})


def test_a_silent_daemon_keeps_its_file_so_that_a_later_try_can_tell_it(host: Host) -> None:
    before = json.dumps(NVIDIA)
    host.write(before)
    docker = host.docker(status="unreachable")
    done = restore(host, docker, None)
    assert (done.changed, host.text(), docker.done) == (False, before, [])
    assert "does not answer" in done.waiting[0]
    docker.status = "running"
    assert restore(host, docker, None).changed
    assert (host.text(), docker.live["runtimes"]) == (None, {})


def test_a_daemon_that_does_not_follow_has_its_file_again(host: Host) -> None:
    before = json.dumps(NVIDIA)
    host.write(before)
    docker = host.docker(running=("train",), raises={"reload": UnitError("no reload")})
    with pytest.raises(DaemonFailedError, match="no reload"):
        restore(host, docker, LABELLED)
    assert (host.text(), docker.killed) == (before, [])


def test_a_full_disk_leaves_file_and_daemon_alone(host: Host) -> None:
    before = json.dumps(CDI)
    host.write(before)
    docker = host.docker()

    def write(path: str, text: str) -> None:
        raise OSError(28, "No space left on device")

    with pytest.raises(DaemonFailedError, match="No space left"):
        restore(host, docker, LABELLED, write=write)
    assert (host.text(), docker.done) == (before, [])


# -- runtimes that containers carry ------------------------------------------------------


def test_a_runtime_that_a_container_carries_stays_until_none_does(host: Host) -> None:
    host.write(json.dumps({**NVIDIA, "default-runtime": "nvidia", "debug": True}))
    docker = host.docker(running=("train",))
    done = restore(host, docker, LABELLED, {"nvidia": ["train", "old"]})
    assert json.loads(host.text() or "") == {"labels": ["a=1"], **NVIDIA}
    assert docker.live["runtimes"] == NVIDIA["runtimes"]
    assert (docker.live["default-runtime"], docker.live["debug"]) == ("runc", False)
    assert len(done.waiting) == 1
    assert "runtime nvidia stays" in done.waiting[0]
    assert "train, old" in done.waiting[0]
    assert not restore(host, docker, LABELLED, {"nvidia": ["old"]}).changed
    assert restore(host, docker, LABELLED).waiting == ()
    assert (host.text(), docker.live["runtimes"]) == (LABELLED, {})


def test_a_kept_runtime_whose_program_goes_passes_through_to_runc(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(daemon_restore, "find_program", lambda name: f"/usr/sbin/{name}")
    host.write(json.dumps(NVIDIA))
    docker = host.docker()
    restore(host, docker, None, {"nvidia": ["old"]}, stays=lambda program: False)
    assert json.loads(host.text() or "") == {"runtimes": {"nvidia": {"path": "/usr/sbin/runc"}}}
    assert docker.live["runtimes"] == {"nvidia": {"path": "/usr/sbin/runc"}}


def test_runtimes_that_nobody_carries_and_those_of_the_former_file_are_not_asked_for(
    host: Host,
) -> None:
    kata = {"kata": {"runtimeType": "io.containerd.kata.v2"}}
    host.write(json.dumps({"runtimes": {**NVIDIA["runtimes"], **kata}}))
    docker = host.docker()
    former = json.dumps({"runtimes": kata})
    done = restore(host, docker, former, {"kata": ["vm"], "runc": ["web"]})
    assert (host.text(), done.waiting, docker.live["runtimes"]) == (former, (), kata)


def test_a_runtime_that_only_the_daemon_still_has_is_kept_as_it_has_it(host: Host) -> None:
    host.write(json.dumps(NVIDIA))
    docker = host.docker()
    host.write("{}")
    restore(host, docker, LABELLED, {"nvidia": ["old"]})
    assert json.loads(host.text() or "")["runtimes"] == NVIDIA["runtimes"]


def test_a_runtime_of_the_units_flags_is_not_the_files_business(host: Host) -> None:
    host.write(LABELLED)
    docker = host.docker(flags={"--add-runtime": "nvidia=/usr/bin/nvidia-container-runtime"})
    docker.live.update(NVIDIA)
    done = restore(host, docker, LABELLED, {"nvidia": ["train"]})
    assert (done.changed, done.waiting, host.text(), docker.done) == (False, (), LABELLED, [])


# -- files that are no JSON --------------------------------------------------------------


def test_a_broken_file_of_now_is_replaced_and_the_daemon_told_what_it_shows(host: Host) -> None:
    host.write(json.dumps({**NVIDIA, "debug": True}))
    docker = host.docker(running=("train",))
    host.write(BROKEN)
    done = restore(host, docker, LABELLED)
    assert (done.changed, done.waiting, host.text()) == (True, (), LABELLED)
    assert docker.live["runtimes"] == {}
    assert (docker.live["debug"], docker.live["labels"]) == (False, ["a=1"])
    assert docker.killed == []


def test_a_broken_file_comes_back_when_the_daemon_does_not_follow(host: Host) -> None:
    host.write(json.dumps(NVIDIA))
    docker = host.docker(raises={"reload": UnitError("no reload")})
    host.write(BROKEN)
    with pytest.raises(DaemonFailedError):
        restore(host, docker, LABELLED)
    assert host.text() == BROKEN


def test_a_file_that_was_broken_is_broken_again_and_nobody_is_told_of_it(host: Host) -> None:
    host.write(json.dumps(CDI))
    docker = host.docker()
    done = restore(host, docker, BROKEN)
    assert (done.changed, host.text(), docker.done) == (True, BROKEN, [])
    assert "no JSON object" in done.notes[0]
    assert not restore(host, docker, BROKEN).changed


def test_a_runtime_in_use_keeps_a_broken_file_from_coming_back(host: Host) -> None:
    before = json.dumps(NVIDIA)
    host.write(before)
    done = restore(host, host.docker(), BROKEN, {"nvidia": ["train"]})
    assert (done.changed, host.text()) == (False, before)
    assert "train" in done.waiting[0]


# -- killed, and any pair of files ---------------------------------------------------------


class Killed(BaseException):
    """Stands for kill -9: nothing of ours catches it."""


@pytest.mark.parametrize("cut", range(6))
@pytest.mark.parametrize("moment", ["write", "reload"])
def test_killed_anywhere_the_next_run_brings_file_and_daemon_to_the_former_state(
    host: Host, cut: int, moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = {**NVIDIA, **CDI, "default-runtime": "nvidia", "live-restore": True, "labels": ["b=2"]}
    host.write(json.dumps(config))
    docker = host.docker(running=("train",))
    count = itertools.count()

    def write(path: str, text: str) -> None:
        if moment == "write" and next(count) == cut:
            raise Killed
        write_atomic(path, text)

    reload = docker.reload

    def reload_or_die() -> None:
        if moment == "reload" and next(count) == cut:
            raise Killed
        reload()

    monkeypatch.setattr(docker, "reload", reload_or_die)
    with contextlib.suppress(Killed):
        restore(host, docker, LABELLED, write=write)
    restore(host, docker, LABELLED, told=json.dumps(config))
    assert (host.text(), docker.killed, docker.running) == (LABELLED, [], ("train",))
    assert docker.live.get("default-runtime", "runc") == "runc"
    assert (docker.live.get("runtimes", {}), docker.live["labels"]) == ({}, ["a=1"])
    assert not docker.live.get("live-restore")
    assert "features" not in docker.live


_RUNTIMES = st.dictionaries(
    st.sampled_from(["nvidia", "kata", "crun"]),
    st.sampled_from([{"path": "/usr/bin/one"}, {"path": "/usr/bin/two"}]),
)
_CONFIGS = st.fixed_dictionaries(
    {},
    optional={
        "runtimes": _RUNTIMES,
        "live-restore": st.booleans(),
        "debug": st.booleans(),
        "labels": st.lists(st.sampled_from(["a=1", "b=2"]), unique=True),
        "features": st.fixed_dictionaries({}, optional={"cdi": st.booleans()}),
    },
)


@given(_CONFIGS, _CONFIGS, st.sets(st.sampled_from(["nvidia", "kata", "crun"])))
def test_between_any_two_files_no_container_ends_and_no_carried_runtime_goes(
    tmp_path_factory: pytest.TempPathFactory,
    now: dict[str, Any],
    former: dict[str, Any],
    carried: set[str],
) -> None:
    host = Host(tmp_path_factory.mktemp("host"))
    host.write(json.dumps(now))
    docker = host.docker(running=("train",))
    had = set(now.get("runtimes", {}))
    text = json.dumps(former)
    done = restore(host, docker, text, {name: ["train"] for name in carried})
    assert (docker.killed, docker.running) == ([], ("train",))
    there = json.loads(host.text() or "{}")
    kept = (carried & had) - set(former.get("runtimes", {}))
    assert set(there.get("runtimes", {})) == set(former.get("runtimes", {})) | kept
    assert set(docker.live.get("runtimes", {})) >= carried & had
    assert {**there, "runtimes": 0} == {**former, "runtimes": 0} or kept
    assert (host.text() == text) == (not kept)
    hot = ("live-restore", "debug", "labels")
    assert all((docker.live.get(key) or None) == (former.get(key) or None) for key in hot)
    assert len(done.waiting) >= len(kept)


def test_who_does_not_come_back_with_the_daemon_is_told(host: Host) -> None:
    docker = host.docker(status="stopped", forgotten=("train",))
    done = restore(host, docker, json.dumps(CDI), start=True)
    assert docker.status == "running"
    assert "docker start train" in done.notes[0]


# -- containers that live on without the daemon --------------------------------------------


def test_a_start_keeps_containers_that_live_on_without_the_daemon(host: Host) -> None:
    host.write(json.dumps({**CDI, "live-restore": True}))
    docker = host.docker(status="stopped", living=("train",))
    done = restore(host, docker, LABELLED, start=True)
    assert (docker.status, docker.killed, docker.running) == ("running", [], ("train",))
    assert (host.text(), done.waiting, docker.live["live-restore"]) == (LABELLED, (), False)


def test_a_start_that_would_lose_somebody_waits(host: Host) -> None:
    host.write(json.dumps(CDI))
    docker = host.docker(status="stopped", living=("train", "web"), adrift=("web",))
    for _again in range(2):
        done = restore(host, docker, LABELLED, start=True)
        assert (host.text(), docker.done, docker.killed) == (LABELLED, [], [])
        for words in ("not started", "2 container(s)", "would lose", "systemctl start docker"):
            assert words in done.waiting[0]


def test_what_somebody_else_has_in_waiting_is_not_brought_by_a_restore(host: Host) -> None:
    former = json.dumps({"live-restore": True, "data-root": "/data/docker"})
    host.write(json.dumps({**json.loads(former), **CDI}))
    docker = host.docker(running=("train",), shows={"DockerRootDir": "/var/lib/docker"})
    done = restore(host, docker, former)
    assert (host.text(), docker.killed, docker.done.count("restart")) == (former, [], 0)
    assert "next restart, which would end 1 running container(s): train" in done.waiting[0]
