# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils import process
from ansible_collections.steadygpu.host.plugins.module_utils.engine import (
    daemon_control,
    docker,
    living,
)
from ansible_collections.steadygpu.host.plugins.module_utils.engine.daemon_control import (
    DockerDaemon,
    EngineState,
)
from ansible_collections.steadygpu.host.plugins.module_utils.engine.docker import DockerInfo
from ansible_collections.steadygpu.host.plugins.module_utils.engine.docker_api import DockerClient
from ansible_collections.steadygpu.host.plugins.module_utils.units import UnitError
from ansible_collections.steadygpu.host.tests.unit.module_utils.engine.engine_server import (
    EngineServer,
)


@pytest.fixture(autouse=True)
def systemctl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A systemctl that knows docker.service as running and obeys."""
    program = tmp_path / "systemctl"
    program.write_text(
        "#!/bin/sh\n"
        "[ $1 != show ] || printf 'Id=docker.service\\nLoadState=loaded\\nActiveState=active\\n'\n"
    )
    program.chmod(0o755)
    monkeypatch.setattr(process, "_SEARCH_PATH", str(tmp_path))


def test_a_daemon_too_busy_to_answer_has_not_reloaded_yet(tmp_path: Path) -> None:
    answers = iter([(500, {"message": "busy"}), (200, None), (200, {"Action": "reload"})])
    with EngineServer(str(tmp_path / "s")) as server:
        server.routes["GET /v1.51/events"] = lambda body: next(answers)
        DockerDaemon(DockerClient(server.path, 5), restart_timeout_s=10).reload()
    assert next(answers, None) is None


def test_a_reload_nobody_confirms_ends_with_the_deadline(tmp_path: Path) -> None:
    client = DockerClient(str(tmp_path / "none"), 5)
    with pytest.raises(UnitError, match=r"did not report a reload within 0\.1 s"):
        DockerDaemon(client, restart_timeout_s=0.1).reload()


@pytest.mark.parametrize("listed", [(500, {"message": "busy"}), (200, [{"Names": ["/train"]}])])
def test_a_daemon_that_cannot_list_containers_does_not_count_as_running(
    tmp_path: Path, listed: tuple[int, Any]
) -> None:
    with EngineServer(str(tmp_path / "s")) as server:
        server.routes["GET /v1.51/version"] = lambda body: (200, {"Version": "26.1.5"})
        server.routes["GET /v1.51/info"] = lambda body: (200, {})
        server.routes["GET /v1.51/containers/json"] = lambda body: listed
        state = DockerDaemon(DockerClient(server.path, 5), restart_timeout_s=1).state()
    expected = ("running", ("train",)) if listed[0] == 200 else ("unreachable", ())
    assert (state.status, state.running, state.has_unit) == (*expected, True)


def test_a_daemon_that_is_just_starting_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(daemon_control, "process_start", lambda pid: time.time())
    program = tmp_path / "systemctl"
    program.write_text(program.read_text().replace("active\\n", "activating\\nMainPID=1\\n"))
    answers = iter([(503, {"message": "starting"}), (200, {"Version": "26.1.5"})])
    with EngineServer(str(tmp_path / "s")) as server:
        server.routes["GET /v1.51/version"] = lambda body: next(answers)
        server.routes["GET /v1.51/info"] = lambda body: (200, {})
        DockerDaemon(DockerClient(server.path, 5), restart_timeout_s=10).wait_until_settled()
    assert next(answers, None) is None


@pytest.mark.parametrize("age_s", [1000.0, 0.0])
def test_a_hung_daemon_is_waited_for_only_while_it_is_young(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, age_s: float
) -> None:
    monkeypatch.setattr(daemon_control, "process_start", lambda pid: time.time() - age_s)
    program = tmp_path / "systemctl"
    program.write_text(program.read_text().replace("=active\\n", "=active\\nMainPID=1\\n"))
    asked: list[str] = []
    monkeypatch.setattr(
        daemon_control,
        "read_docker",
        lambda service, client: asked.append("now") or DockerInfo("unreachable"),
    )
    client = DockerClient(str(tmp_path / "none"), 5)
    DockerDaemon(client, restart_timeout_s=0.3).wait_until_settled()
    assert bool(asked) == (age_s == 0.0)


def container(root: Path, name: str, policy: str, driver: str, **more: Any) -> None:
    where = root / "containers" / name
    where.mkdir(parents=True)
    host = {"RestartPolicy": {"Name": policy}, "DeviceRequests": [{"Driver": driver}]}
    (where / "hostconfig.json").write_text(json.dumps(host))
    (where / "config.v2.json").write_text(json.dumps({"Name": "/" + name, **more}))


@pytest.mark.parametrize(
    ("version", "names"),
    [
        ("26.1.5", ["always", "failed", "unless"]),
        ("28.1.1", ["always", "failed", "unless"]),
        ("28.2.0", []),
        (None, []),
    ],
)
def test_moby_49989_cdi_containers_are_not_started_again_before_28_2(
    tmp_path: Path, version: str | None, names: list[str]
) -> None:
    container(tmp_path, "always", "always", "cdi")
    container(tmp_path, "unless", "unless-stopped", "cdi")
    container(tmp_path, "by-hand", "unless-stopped", "cdi", HasBeenManuallyStopped=True)
    container(tmp_path, "failed", "on-failure", "cdi", State={"Running": True})
    container(tmp_path, "ended", "on-failure", "cdi", State={"Running": False})
    container(tmp_path, "never", "no", "cdi")
    container(tmp_path, "legacy", "always", "nvidia")
    state = EngineState("running", version=version, info={"DockerRootDir": str(tmp_path)})
    daemon = DockerDaemon(DockerClient("/none", 5), restart_timeout_s=1)
    assert daemon.left_behind(state) == names


def test_who_carries_a_runtime_is_known_by_the_files_of_a_stopped_daemon(tmp_path: Path) -> None:
    container(tmp_path, "old", "no", "nvidia")
    host = {"Runtime": "nvidia"}
    (tmp_path / "containers/old/hostconfig.json").write_text(json.dumps(host))
    state = EngineState("stopped", flags={"--data-root": str(tmp_path)})
    daemon = DockerDaemon(DockerClient("/none", 5), restart_timeout_s=1)
    assert daemon.carriers(state) == {"nvidia": ["old"]}


def test_who_lives_without_the_daemon_is_named_and_who_has_no_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    container(tmp_path, "train", "no", "nvidia")
    monkeypatch.setattr(docker, "_pid_file_lives", lambda root: False)
    monkeypatch.setattr(living, "identities", lambda flags: ["0123456789abcdef", "train"])
    argv = f"/usr/bin/dockerd --data-root {tmp_path}"
    start = f"ExecStart={{ path=/usr/bin/dockerd ; argv[]={argv} ; pid=0 }}\\n"
    program = tmp_path / "systemctl"
    program.write_text(program.read_text().replace("=active\\n", f"=failed\\n{start}"))
    state = DockerDaemon(DockerClient(str(tmp_path / "none"), 5), restart_timeout_s=1).state()
    assert (state.status, state.flags_known) == ("stopped", True)
    assert (state.living, state.adrift) == (("0123456789ab", "train"), ("0123456789ab",))
    script = program.read_text().replace("argv[]=/usr/bin/dockerd", "argv[]=/usr/local/bin/run")
    program.write_text(script)
    state = DockerDaemon(DockerClient(str(tmp_path / "none"), 5), restart_timeout_s=1).state()
    assert (state.flags_known, state.adrift) == (False, ())
