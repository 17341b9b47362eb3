# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.engine.docker import DockerInfo
from ansible_collections.steadygpu.host.plugins.module_utils.engine.docker_api import (
    EngineUnreachableError,
)
from ansible_collections.steadygpu.host.plugins.module_utils.engine.services import Service
from ansible_collections.steadygpu.host.plugins.module_utils.slices import reload

LEGACY = {"HostConfig": {"DeviceRequests": [{"Driver": "nvidia", "Capabilities": [["gpu"]]}]}}
CDI = {"HostConfig": {"DeviceRequests": [{"Driver": "cdi", "DeviceIDs": ["nvidia.com/gpu=0"]}]}}
RENAMED = {"HostConfig": {"Runtime": "gpu"}, "Config": {"Env": ["NVIDIA_VISIBLE_DEVICES=all"]}}
HELD = "/system.slice/docker-a1.scope"


class Engine:
    """Containers by name with their inspection; None for one that cannot be inspected."""

    def __init__(self, containers: dict[str, dict[str, Any] | None]) -> None:
        self.all = containers

    def containers(self, include_stopped: bool) -> list[dict[str, Any]]:
        assert not include_stopped
        return [{"Id": name, "Names": ["/" + name], "Labels": {}} for name in self.all]

    def inspect(self, name: str) -> dict[str, Any]:
        inspected = self.all[name]
        if inspected is None:
            raise EngineUnreachableError("no whole answer")
        return inspected


def endangered(
    monkeypatch: pytest.MonkeyPatch, status: str, containers: dict[str, dict[str, Any] | None]
) -> list[str]:
    runtimes = {"gpu": {"path": "/usr/bin/nvidia-container-runtime"}}
    info = {"DefaultRuntime": "runc", "Runtimes": runtimes}
    docker = DockerInfo(status, "it hangs", info=info)
    monkeypatch.setattr(reload, "read_services", lambda names: {name: Service() for name in names})
    monkeypatch.setattr(reload, "DockerClient", lambda _socket: Engine(containers))
    monkeypatch.setattr(reload, "read_docker", lambda _service, _client: docker)
    monkeypatch.setattr(
        reload, "cgroups_with_gpus", lambda docker_too=False: [HELD] if docker_too else []
    )
    return reload.endangered()


def test_containers_of_the_legacy_hook_are_named_and_those_of_cdi_are_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    containers = {"training": LEGACY, "serving": CDI, "renamed": RENAMED}
    found = endangered(monkeypatch, "running", containers)
    assert found == ["container training", "container renamed"]


def test_an_engine_that_does_not_answer_endangers_what_it_hides(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert endangered(monkeypatch, "unreachable", {}) == [
        "the containers of an engine that does not answer (it hangs)",
        HELD,
    ]
    (described,) = endangered(monkeypatch, "running", {"training": None})
    assert "no whole answer" in described


@pytest.mark.parametrize("status", ["absent", "stopped"])
def test_below_a_stopped_engine_only_gpus_in_use_count(
    monkeypatch: pytest.MonkeyPatch, status: str
) -> None:
    assert endangered(monkeypatch, status, {}) == [HELD]


def test_a_host_without_docker_or_systemd_is_reloaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reload, "read_services", lambda names: {name: Service() for name in names})
    monkeypatch.setattr(reload, "cgroups_with_gpus", lambda **_docker_too: [])
    assert reload.endangered("/nowhere/docker.sock") == []
