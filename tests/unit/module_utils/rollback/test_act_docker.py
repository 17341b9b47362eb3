# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""daemon.json as it was, byte for byte, and the daemon after it."""

from __future__ import annotations

import json
import os
import stat
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.engine.docker_api import DockerClient
from ansible_collections.steadygpu.host.plugins.module_utils.rollback.model import (
    ABSENT,
    Done,
    Entry,
    RollbackError,
    State,
    UnitState,
)
from ansible_collections.steadygpu.host.plugins.module_utils.rollback.way_back import act_docker
from ansible_collections.steadygpu.host.plugins.module_utils.units import UnitError
from ansible_collections.steadygpu.host.tests.unit.module_utils.engine.fake_docker import (
    CDI,
    NVIDIA,
    FakeDocker,
    Host,
)
from ansible_collections.steadygpu.host.tests.unit.module_utils.rollback.acting import Former

RUNTIME = {"runtimes": {"nvidia": {"path": "/bin/sh"}}}


class Engine(DockerClient):
    """Its containers are those on the disk."""

    def containers(self, include_stopped: bool = True, filters: Any = None) -> list[dict[str, Any]]:
        return []


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


def container(host: Host, name: str, runtime: str) -> Path:
    where = host.directory / "data/containers" / name
    where.mkdir(parents=True)
    (where / "hostconfig.json").write_text(json.dumps({"Runtime": runtime}))
    (where / "config.v2.json").write_text(json.dumps({"Name": "/" + name}))
    return where / "hostconfig.json"


def daemon(host: Host, **kinds: Any) -> FakeDocker:
    return host.docker(flags={"--data-root": str(host.directory / "data")}, **kinds)


def restore(host: Host, docker: FakeDocker, former: Former, entry: Entry, **options: Any) -> Done:
    context = former.context(deadline_s=0.01, **options)
    step = former.step("docker", host.path, entry)
    return act_docker.carry_out(step, context, docker, Engine("/nowhere"))


def mode(host: Host) -> int:
    return stat.S_IMODE(os.stat(host.path).st_mode)


def test_content_mode_and_daemon_come_back(host: Host) -> None:
    host.write(json.dumps({**NVIDIA, "default-runtime": "nvidia"}))
    docker = daemon(host, running=("train",))
    former = Former()
    text = '{ "labels":["a=1"] }'
    done = restore(host, docker, former, former.keep(text.encode(), 0o600))
    assert (done.changed, done.left) == (True, ())
    assert (host.text(), mode(host), docker.killed) == (text, 0o600, [])
    assert (docker.live["default-runtime"], docker.live["labels"]) == ("runc", ["a=1"])
    docker.done.clear()
    assert restore(host, docker, former, former.keep(text.encode(), 0o600)) == Done()
    assert docker.done == []


def test_where_there_was_no_file_there_is_none(host: Host) -> None:
    host.write(json.dumps(CDI))
    docker = daemon(host)
    assert restore(host, docker, Former(), ABSENT).changed
    assert (host.text(), docker.live) == (None, {})


def test_bytes_that_are_no_utf8_come_back_as_they_were(host: Host) -> None:
    content = b'{"labels": ["\xe4=1"]}\n'
    host.write("{}")
    docker = daemon(host)
    former = Former()
    restore(host, docker, former, former.keep(content))
    assert Path(host.path).read_bytes() == content
    assert docker.live["labels"] == ["\ufffd=1"]


def test_a_carried_runtime_is_told_as_pending_and_mode_comes_back_all_the_same(host: Host) -> None:
    host.write(json.dumps(RUNTIME))
    os.chmod(host.path, 0o600)
    docker = daemon(host)
    carrier = container(host, "train", "nvidia")
    former = Former()
    entry = former.keep(b'{"debug": true}', 0o640)
    done = restore(host, docker, former, entry)
    assert json.loads(host.text() or "") == {"debug": True, **RUNTIME}
    assert mode(host) == 0o640
    assert [left.pending for left in done.left] == [True]
    assert "container(s) train carry" in done.left[0].reason
    carrier.unlink()
    assert restore(host, docker, former, entry).left == ()
    assert host.text() == '{"debug": true}'


def test_a_carried_runtime_of_a_file_that_was_not_there_stays_with_docker_down(host: Host) -> None:
    host.write(json.dumps(RUNTIME))
    container(host, "old", "nvidia")
    done = restore(host, daemon(host, status="stopped"), Former(), ABSENT)
    assert json.loads(host.text() or "") == RUNTIME
    assert "old" in done.left[0].reason


@pytest.mark.parametrize(("packages", "path"), [(False, "/bin/sh"), (True, "runc")])
def test_a_program_whose_package_goes_is_passed_by(
    host: Host, monkeypatch: pytest.MonkeyPatch, packages: bool, path: str
) -> None:
    monkeypatch.setattr(act_docker.act_packages, "owner_of", lambda program: "toolkit")
    host.write(json.dumps(RUNTIME))
    container(host, "old", "nvidia")
    restore(host, daemon(host), Former(), ABSENT, packages=packages)
    kept = json.loads(host.text() or "")["runtimes"]["nvidia"]["path"]
    assert os.path.basename(kept) == os.path.basename(path)


def test_a_program_whose_package_cannot_go_yet_is_not_passed_by(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Else a container that restarts meanwhile would come back without its GPU.
    monkeypatch.setattr(act_docker.act_packages, "owner_of", lambda program: "toolkit")
    monkeypatch.setattr(act_docker.act_packages, "endangered", lambda root, socket: ["old"])
    host.write(json.dumps(RUNTIME))
    container(host, "old", "nvidia")
    restore(host, daemon(host), Former(), ABSENT, packages=True)
    assert json.loads(host.text() or "") == RUNTIME


def test_a_daemon_that_ran_and_does_not_is_started_with_the_former_file(host: Host) -> None:
    host.write(json.dumps(CDI))
    docker = daemon(host, status="stopped", refuses="cdi")
    former = Former(state=State(units={"docker.service": UnitState("loaded", "active", "enabled")}))
    restore(host, docker, former, former.keep(b"{}"))
    assert (docker.status, docker.live, host.text()) == ("running", {}, "{}")


def test_a_daemon_that_does_not_follow_is_an_error_with_all_as_before(host: Host) -> None:
    before = json.dumps(NVIDIA)
    host.write(before)
    docker = daemon(host, raises={"reload": UnitError("no reload")})
    with pytest.raises(RollbackError, match="no reload"):
        restore(host, docker, Former(), ABSENT)
    assert host.text() == before


def test_a_link_is_put_back_and_its_reading_is_pending(host: Host) -> None:
    host.write("{}")
    done = restore(host, daemon(host), Former(), Entry("link", 0o777, target="/srv/daemon.json"))
    assert os.readlink(host.path) == "/srv/daemon.json"
    assert done.left[0].pending


def test_what_waits_for_a_restart_waits_until_there_was_one(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    host.write("{}")
    docker = daemon(host, running=("train",))
    former = Former()
    step = former.step("docker", host.path, former.keep(b"{}"))
    again = replace(step, details={**step.details, "waits": "it waits", "said": 100.0})
    state = docker.state()
    for started, wanted in ((50.0, ["it waits"]), (150.0, [])):
        monkeypatch.setattr(
            docker, "state", lambda started=started: replace(state, started_at=started)
        )
        done = act_docker.carry_out(again, former.context(), docker, Engine("/nowhere"))
        assert [left.reason for left in done.left] == wanted
        assert not done.changed
    assert docker.done == []


def test_a_restore_that_was_cut_off_tells_the_daemon_what_it_knew_before(host: Host) -> None:
    host.write(json.dumps({**CDI, "live-restore": True}))
    docker = daemon(host)
    former = Former()
    step = former.step("docker", host.path, former.keep(b"{}"))
    host.write("{}")  # and killed before the daemon was told
    context = former.context(deadline_s=0.01)
    act_docker.carry_out(step, context, docker, Engine("/nowhere"))
    assert (host.text(), docker.done[-1]) == ("{}", "restart")
    assert docker.live == {}
