# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils import packages, process
from ansible_collections.steadygpu.host.plugins.module_utils.engine.collect import (
    collect,
    read_daemon_json,
)
from ansible_collections.steadygpu.host.plugins.module_utils.engine.docker import read_docker
from ansible_collections.steadygpu.host.plugins.module_utils.engine.docker_api import DockerClient
from ansible_collections.steadygpu.host.plugins.module_utils.engine.services import Service
from ansible_collections.steadygpu.host.tests.unit.module_utils.engine.engine_server import (
    EngineServer,
)

VERSION = {
    "Version": "26.1.5+dfsg1",
    "ApiVersion": "1.45",
    "MinAPIVersion": "1.24",
    "Components": [
        {"Name": "Engine", "Version": "26.1.5+dfsg1"},
        {"Name": "containerd", "Version": "1.7.24~ds1"},
        {"Name": "runc", "Version": "1.1.15+ds1"},
    ],
}
INFO = {
    "CDISpecDirs": [],
    "Runtimes": {"runc": {}, "nvidia": {}},
    "Swarm": {"LocalNodeState": "inactive"},
}


@pytest.fixture
def bare_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without any program; the directory where one can be put."""
    programs = tmp_path / "bin"
    programs.mkdir()
    monkeypatch.setattr(process, "_SEARCH_PATH", str(programs))
    return programs


def test_a_bare_tree_gives_every_section_and_no_error(tmp_path: Path) -> None:
    facts = collect(str(tmp_path))
    assert set(facts) == {
        "os",
        "kernel",
        "systemd",
        "cgroup",
        "docker",
        "containerd",
        "runc",
        "toolkit",
        "cdi",
        "packages",
        "settings",
    }
    assert facts["docker"]["status"] == "absent"
    assert facts["docker"]["daemon_json"]["status"] == "absent"
    assert facts["cdi"] == {"specs": []}
    assert facts["toolkit"]["status"] == "absent"


@pytest.mark.parametrize(
    ("text", "status", "keys"),
    [
        (None, "absent", []),
        ("", "valid", []),
        ('{"live-restore": true, "dns": []}', "valid", ["live-restore", "dns"]),
        ('{"live-restore": true,}', "invalid", []),
    ],
)
def test_the_state_of_daemon_json(
    tmp_path: Path, text: str | None, status: str, keys: list[str]
) -> None:
    if text is not None:
        (tmp_path / "daemon.json").write_text(text)
    facts = read_daemon_json("/daemon.json", str(tmp_path))
    assert (facts["status"], facts["keys"]) == (status, keys)
    assert (facts["reason"] is not None) == (status == "invalid")


def test_a_running_daemon_names_its_parts(tmp_path: Path) -> None:
    with EngineServer(str(tmp_path / "s"), api="1.45") as server:
        server.routes["GET /v1.45/version"] = lambda body: (200, VERSION)
        server.routes["GET /v1.45/info"] = lambda body: (200, INFO)
        docker = read_docker(Service("loaded", "active"), DockerClient(server.path, 5))
    assert (docker.status, docker.version) == ("running", "26.1.5+dfsg1")
    assert docker.components["runc"] == "1.1.15+ds1"
    assert docker.runtimes == ["nvidia", "runc"]
    assert (docker.cdi_spec_dirs, docker.cdi_devices) == ([], None)
    assert docker.swarm_active is False


@pytest.mark.parametrize(
    ("info", "swarm"),
    [
        ({"Swarm": {"LocalNodeState": "active"}}, {"active": True, "state": "active"}),
        ({"Swarm": {"LocalNodeState": "inactive"}}, {"active": False, "state": "inactive"}),
        ({"Swarm": {"LocalNodeState": ""}}, {"active": False, "state": None}),
        ({"Swarm": None}, {"active": False, "state": None}),
        ({}, {"active": False, "state": None}),
    ],
)
def test_the_swarm_a_host_belongs_to(
    bare_host: Path, tmp_path: Path, info: dict[str, Any], swarm: dict[str, Any]
) -> None:
    with EngineServer(str(tmp_path / "s"), api="1.45") as server:
        server.routes["GET /v1.45/version"] = lambda body: (200, VERSION)
        server.routes["GET /v1.45/info"] = lambda body: (200, info)
        docker = collect(socket_path=server.path, deadline_s=5)["docker"]
    assert (docker["status"], docker["swarm"]) == ("running", swarm)


def test_a_docker_that_does_not_run_has_its_programs_version(
    bare_host: Path, tmp_path: Path
) -> None:
    program = bare_host / "dockerd"
    program.write_text("#!/bin/sh\necho Docker version 26.1.5+dfsg1, build a72d7cd\n")
    program.chmod(0o755)
    docker = collect(socket_path=str(tmp_path / "none"), deadline_s=5)["docker"]
    assert (docker["status"], docker["version"]) == ("stopped", "26.1.5+dfsg1")


def test_no_docker_has_no_version(bare_host: Path, tmp_path: Path) -> None:
    docker = collect(socket_path=str(tmp_path / "none"), deadline_s=5)["docker"]
    assert (docker["status"], docker["version"]) == ("absent", None)


def test_a_stopped_daemon_is_not_woken_through_its_socket(tmp_path: Path) -> None:
    with EngineServer(str(tmp_path / "s")) as server:
        service = Service("loaded", "inactive")
        docker = read_docker(service, DockerClient(server.path, 5), root=str(tmp_path))
        assert (docker.status, server.asked) == ("stopped", [])


def test_an_active_daemon_that_does_not_answer_is_unreachable(tmp_path: Path) -> None:
    client = DockerClient(str(tmp_path / "none"), 1)
    docker = read_docker(Service("loaded", "active"), client, root=str(tmp_path))
    assert docker.status == "unreachable"
    assert "no such socket" in (docker.reason or "")


def test_flags_of_the_unit_are_facts_without_their_passwords(
    bare_host: Path, tmp_path: Path
) -> None:
    systemctl = bare_host / "systemctl"
    argv = (
        "argv[]=/usr/sbin/dockerd -H fd:// --http-proxy=http://u:s3cr3t@proxy.example.com:3128 "
        "--log-opt=splunk-token=abcd-1234 --label=room=5 ; "
    )
    systemctl.write_text(
        "#!/bin/sh\nprintf '%s\\n' Id=docker.service LoadState=loaded ActiveState=inactive "
        f"'ExecStart={{ path=/usr/sbin/dockerd ; {argv}}}' '' Id=containerd.service\n"
    )
    systemctl.chmod(0o755)
    flags = collect(socket_path=str(tmp_path / "none"), deadline_s=5)["docker"]["flags"]
    assert flags == {
        "--host": "fd://",
        "--http-proxy": "http://<redacted>@proxy.example.com:3128",
        "--log-opt": "splunk-token=<redacted>",
        "--label": "room=5",
    }


@pytest.mark.parametrize(
    ("text", "restart", "reload"),
    [
        ("{}", [], []),
        ("{ broken", [], []),
        (
            '{"features": {"cdi": true}, "debug": true}',
            ["features of daemon.json is not in force: CDI is false, wanted true"],
            ["debug of daemon.json is not in force: debug is false, wanted true"],
        ),
    ],
)
def test_what_a_running_daemon_has_not_taken_is_a_fact(
    bare_host: Path, tmp_path: Path, text: str, restart: list[str], reload: list[str]
) -> None:
    path = tmp_path / "daemon.json"
    path.write_text(text)
    systemctl = bare_host / "systemctl"
    argv = f"argv[]=/usr/sbin/dockerd --config-file={path} ; "
    systemctl.write_text(
        "#!/bin/sh\nprintf '%s\\n' Id=docker.service LoadState=loaded ActiveState=active "
        f"'ExecStart={{ path=/usr/sbin/dockerd ; {argv}}}' '' Id=containerd.service\n"
    )
    systemctl.chmod(0o755)
    with EngineServer(str(tmp_path / "s"), api="1.45") as server:
        server.routes["GET /v1.45/version"] = lambda body: (200, VERSION)
        server.routes["GET /v1.45/info"] = lambda body: (200, {**INFO, "Debug": False})
        docker = collect(socket_path=server.path, deadline_s=5)["docker"]
    assert docker["status"] == "running"
    assert (docker["restart_pending"], docker["reload_pending"]) == (restart, reload)


@pytest.mark.parametrize(("links", "enabled"), [("enabled", True), ("disabled", False)])
def test_whether_docker_starts_at_boot_is_read_from_the_links(
    bare_host: Path, tmp_path: Path, links: str, enabled: bool
) -> None:
    # After `systemctl enable --no-reload` systemd itself still says what was before.
    systemctl = bare_host / "systemctl"
    systemctl.write_text(
        f'#!/bin/sh\nif [ "$1" = is-enabled ]; then echo {links}; exit; fi\n'
        "printf '%s\\n' Id=docker.service LoadState=loaded ActiveState=inactive "
        "UnitFileState=disabled '' Id=containerd.service\n"
    )
    systemctl.chmod(0o755)
    docker = collect(socket_path=str(tmp_path / "none"), deadline_s=5)["docker"]
    assert docker["service"]["enabled"] is enabled


def test_what_a_killed_package_manager_has_left_half_done_is_a_fact(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = packages.Installed(
        "dpkg", {"runc": packages.Package("1", False)}, {"docker.io": "2", "containerd": ""}
    )
    monkeypatch.setattr(packages, "read_installed", lambda *asked: there)
    facts = collect(str(tmp_path))["packages"]
    assert facts["unfinished"] == ["containerd", "docker.io"]
    assert list(facts["installed"]) == ["runc"]
