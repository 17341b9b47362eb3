# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What may be stopped, and what never: the entries, their owners, containers through the engine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.engine.docker_api import DockerClient
from ansible_collections.steadygpu.host.plugins.module_utils.mig import stop_set
from ansible_collections.steadygpu.host.plugins.module_utils.mig.stop_set import (
    Item,
    StopError,
    StopSet,
    parse,
)
from ansible_collections.steadygpu.host.plugins.module_utils.process import Completed
from ansible_collections.steadygpu.host.tests.unit.module_utils.engine.engine_server import (
    EngineServer,
)

EXPORTER = "a" * 64


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[EngineServer]:
    """An engine with one running container, ``dcgm-exporter``."""
    with EngineServer(str(tmp_path / "docker.sock")) as server:
        running = [{"Id": EXPORTER, "Names": ["/dcgm-exporter"]}]
        server.routes["GET /v1.51/containers/json"] = lambda _body: (200, running)
        server.routes["GET /v1.51/containers/dcgm-exporter/json"] = lambda _body: (200, {})
        server.routes["POST /v1.51/containers/dcgm-exporter/stop"] = lambda _body: (204, None)
        server.routes["POST /v1.51/containers/dcgm-exporter/start"] = lambda _body: (204, None)
        yield server


def test_names_are_read_as_units_containers_and_modules() -> None:
    entries = [
        "nvidia-persistenced",
        "dcgm.service",
        "container:dcgm-exporter",
        "module:nvidia_drm",
    ]
    assert parse(entries) == [
        Item("unit", "nvidia-persistenced.service"),
        Item("unit", "dcgm.service"),
        Item("container", "dcgm-exporter"),
        Item("module", "nvidia_drm"),
    ]
    assert parse([item.text for item in parse(entries)]) == parse(entries)


@pytest.mark.parametrize(
    "entry",
    ["", "container:", "module:nvidia", "module:nvidia_uvm", "*.service", "a b.service",
     "--now.service", "../x.service", "container:a;b"],
)  # fmt: skip
def test_what_is_not_understood_is_refused_with_what_is_wanted(entry: str) -> None:
    with pytest.raises(StopError, match="wanted a unit such as"):
        parse([entry])


@pytest.mark.parametrize(
    "entry",
    ["docker", "docker.socket", "containerd.service", "podman.service", "crio", "kubelet",
     "k3s.service", "rke2-agent", "snap.docker.dockerd.service", "snap.microk8s.daemon-kubelite",
     "user@1000"],
)  # fmt: skip
def test_engines_and_kubelets_are_refused_whatever_they_are_called(entry: str) -> None:
    unit = entry if entry.endswith((".service", ".socket")) else entry + ".service"
    with pytest.raises(StopError, match="never stops or restarts a container engine"):
        parse([unit])


def test_a_container_is_stopped_and_started_by_its_engine(engine: EngineServer) -> None:
    items = parse(["container:dcgm-exporter", "container:absent"])
    stops = StopSet(items, DockerClient(engine.path))
    running = stops.running()
    assert running == items[:1]
    stops.stop(running[0])
    assert stops.start(running) == []
    assert [asked.partition("?")[0] for asked in engine.asked if asked.startswith("POST")] == [
        "POST /v1.51/containers/dcgm-exporter/stop",
        "POST /v1.51/containers/dcgm-exporter/start",
    ]


def test_a_container_that_does_not_start_again_is_told_and_the_others_start(
    engine: EngineServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine.routes["POST /v1.51/containers/dcgm-exporter/start"] = lambda _body: (
        500,
        {"message": "unresolvable CDI devices"},
    )
    started: list[str] = []
    monkeypatch.setattr(stop_set.units, "act", lambda verb, unit: started.append(f"{verb} {unit}"))
    stops = StopSet((), DockerClient(engine.path))
    failures = stops.start(parse(["dcgm.service", "container:dcgm-exporter"]))
    assert started == ["start dcgm.service"]
    assert len(failures) == 1
    assert "unresolvable CDI devices" in failures[0]


def test_what_could_not_be_started_again_is_refused(
    engine: EngineServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    inspected = {"HostConfig": {"AutoRemove": True}}
    engine.routes["GET /v1.51/containers/dcgm-exporter/json"] = lambda _body: (200, inspected)
    with pytest.raises(StopError, match="started with --rm"):
        StopSet(parse(["container:dcgm-exporter"]), DockerClient(engine.path)).running()
    shown = {"Id": "run-1.service", "ActiveState": "active", "Transient": "yes"}
    monkeypatch.setattr(stop_set.units, "show", lambda _unit, _properties: shown)
    with pytest.raises(StopError, match="transient"):
        StopSet(parse(["run-1.service"]), DockerClient(engine.path)).running()


def test_a_stopped_engine_is_not_woken_up(
    engine: EngineServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = {"LoadState": "loaded", "ActiveState": "inactive"}
    monkeypatch.setattr(stop_set.units, "show", lambda _unit, _properties: shown)
    assert StopSet(parse(["container:dcgm-exporter"]), DockerClient(engine.path)).running() == []
    assert engine.asked == []


def test_a_module_goes_alone_so_that_nvidia_and_every_instance_stay(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loaded = {"nvidia_drm": "nvidia_modeset", "nvidia_modeset": "nvidia", "nvidia": ""}

    def kernel(argv: list[str]) -> Completed:
        """Of these, modprobe -r takes along what it leaves unused (modprobe(8)); rmmod does not."""
        if argv[0] == "rmmod":
            del loaded[argv[1]]
        elif argv[1] == "-r":
            name = argv[2]
            while name:
                name = loaded.pop(name)
        else:
            loaded[argv[1]] = "nvidia_modeset"
        return Completed(argv, 0, "", "")

    monkeypatch.setattr(stop_set, "run", kernel)
    stops = StopSet((), DockerClient("/nowhere"))
    stops.stop(Item("module", "nvidia_drm"))
    assert sorted(loaded) == ["nvidia", "nvidia_modeset"]
    assert stops.start([Item("module", "nvidia_drm")]) == []
    assert "nvidia_drm" in loaded


def test_a_module_counts_while_the_kernel_has_it(tmp_path: Path) -> None:
    stops = StopSet(parse(["module:nvidia_drm"]), DockerClient("/nowhere"), str(tmp_path))
    assert stops.running() == []
    (tmp_path / "sys/module/nvidia_drm").mkdir(parents=True)
    assert stops.running() == parse(["module:nvidia_drm"])
