# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Who is in the way: names, owners, the instances that are used, and whom a plan disturbs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.engine.docker_api import DockerClient
from ansible_collections.steadygpu.host.plugins.module_utils.hardware.holders import Sight
from ansible_collections.steadygpu.host.plugins.module_utils.hardware.model import Holder
from ansible_collections.steadygpu.host.plugins.module_utils.mig import holders_view, planner
from ansible_collections.steadygpu.host.plugins.module_utils.mig.holders_view import (
    Blocker,
    blocking,
    find,
    refusal,
)
from ansible_collections.steadygpu.host.plugins.module_utils.mig.model import GpuLayout, Wanted
from ansible_collections.steadygpu.host.plugins.module_utils.mig.nvml_mig import (
    GpuReading,
    Reading,
)
from ansible_collections.steadygpu.host.tests.unit.module_utils.engine.engine_server import (
    EngineServer,
)
from ansible_collections.steadygpu.host.tests.unit.module_utils.mig.machine import gpu, instance

TRAINING, OTHER = "a" * 64, "b" * 64
DOCKER = f"/system.slice/docker-{TRAINING}.scope"


class Proc:
    """A /proc with processes, and who of them holds GPU 0."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root = root
        self.holders: list[Holder] = []
        self.complete = True
        monkeypatch.setattr(
            holders_view.holders,
            "look",
            lambda minors, root: Sight({0: self.holders}, self.complete),
        )
        (root / "proc/self/ns").mkdir(parents=True)
        self.set_namespace("pid:[4026531836]")
        caps = root / "proc/driver/nvidia-caps"
        caps.parent.mkdir()
        caps.mkdir()
        lines = [f"gpu3/gi{n}/access {n + 10}\ngpu3/gi{n}/ci0/access {n + 50}" for n in range(8)]
        (caps / "mig-minors").write_text("\n".join(["config 1", *lines, "gpu4/gi1/access 99\n"]))

    def add(
        self, holder: Holder, cgroup: str, caps: tuple[int, ...] = (), granted: tuple[int, ...] = ()
    ) -> None:
        """A holder, with capability nodes it has open and such that its container has."""
        self.holders.append(holder)
        directory = self.root / f"proc/{holder.pid}"
        (directory / "fd").mkdir(parents=True)
        (directory / "root/dev/nvidia-caps").mkdir(parents=True)
        (directory / "cgroup").write_text(f"0::{cgroup}\n")
        for number in caps:
            os.symlink(f"/dev/nvidia-caps/nvidia-cap{number}", directory / f"fd/{number}")
        for number in granted:
            (directory / f"root/dev/nvidia-caps/nvidia-cap{number}").touch()

    def set_namespace(self, name: str) -> None:
        """The PID namespace that this process is in."""
        link = self.root / "proc/self/ns/pid"
        link.unlink(missing_ok=True)
        link.symlink_to(name)

    def find(self, layout: GpuLayout, socket: str = "/nowhere", **more: bool) -> list[Blocker]:
        """The blockers of a host with this one GPU, whose minor is 3."""
        reading = Reading("550.163.01", (GpuReading(layout, 3, more.get("ampere", False)),))
        return list(find(reading, DockerClient(socket), str(self.root)))


@pytest.fixture
def proc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Proc:
    """Nobody holds the GPU yet."""
    return Proc(tmp_path, monkeypatch)


@pytest.fixture
def socket(tmp_path: Path) -> Iterator[str]:
    """Docker, with one container that runs."""
    with EngineServer(str(tmp_path / "docker.sock")) as server:
        running = [{"Id": TRAINING, "Names": ["/training"]}]
        server.routes["GET /v1.51/containers/json"] = lambda _body: (200, running)
        yield server.path


def halves() -> GpuLayout:
    """MIG on, two instances: number 1 at slice 0, number 2 at slice 4."""
    return gpu("A100", 0, [instance("3g.20gb@0:4", 1), instance("3g.20gb@4:4", 2)])


def test_holders_are_named_with_their_containers_and_units(proc: Proc, socket: str) -> None:
    proc.add(Holder(100, "python3", "container", TRAINING), DOCKER)
    proc.add(Holder(101, "sleep", "granted", OTHER), f"/kubepods/cri-containerd-{OTHER}.scope")
    proc.add(Holder(102, "nv-hostengine", "dcgm"), "/system.slice/nvidia-dcgm.service")
    proc.add(Holder(103, "python3", "process"), "/user.slice/user-1000.slice/session-3.scope")
    found = proc.find(gpu(on=False), socket)
    assert [one.owner for one in found] == [
        "container:training",
        f"container:{OTHER[:12]}",
        "nvidia-dcgm.service",
        None,
    ]
    text = refusal([(planner.plan(gpu(on=False), Wanted(True)), found)])
    for words in (
        "python3 (pid 100) in container training",
        f"sleep (pid 101) in container {OTHER[:12]}: may open it at any time",
        "nv-hostengine (pid 102) of nvidia-dcgm.service: DCGM",
        "python3 (pid 103)",
        "stop: [nvidia-dcgm.service]",
    ):
        assert words in text


def test_a_service_of_a_user_is_none_that_can_be_stopped_here(proc: Proc) -> None:
    group = "/user.slice/user-1000.slice/user@1000.service/app.slice/ollama.service"
    proc.add(Holder(100, "ollama", "process"), group)
    assert proc.find(gpu(on=False))[0].owner is None


@pytest.mark.parametrize(
    ("caps", "granted", "instances"),
    [
        ((11,), (), {1}),
        ((52,), (), {2}),
        ((11, 12), (), {1, 2}),
        ((), (11, 51), {1}),
        ((11,), (12,), {1, 2}),
        ((), (), None),
        ((99,), (), None),
    ],
    ids=["gi", "ci", "both", "granted", "one-open-one-granted", "nothing-tells", "of-another-gpu"],
)
def test_capability_nodes_tell_the_instance(
    proc: Proc, caps: tuple[int, ...], granted: tuple[int, ...], instances: set[int] | None
) -> None:
    proc.add(Holder(100, "python3", "process"), "/x", caps, granted)
    found = proc.find(halves())[0].instances
    assert found == (None if instances is None else frozenset(instances))


def test_nvml_tells_the_instance_and_processes_that_no_node_shows(proc: Proc) -> None:
    proc.add(Holder(100, "python3", "process"), "/x")
    reading = GpuReading(halves(), 3, False, ((100, 2), (200, 1), (200, None)))
    found = find(Reading("550", (reading,)), DockerClient("/nowhere"), str(proc.root))
    assert [(one.pid, one.instances) for one in found] == [(100, frozenset({2})), (200, None)]


def test_a_container_that_computes_on_one_instance_keeps_the_other_it_was_given(
    proc: Proc,
) -> None:
    proc.add(Holder(100, "python3", "container", TRAINING), DOCKER, (), (11, 12))
    reading = GpuReading(halves(), 3, False, ((100, 2),))
    found = find(Reading("550", (reading,)), DockerClient("/nowhere"), str(proc.root))
    assert found[0].instances == frozenset({1, 2})


@pytest.mark.parametrize("why", ["incomplete", "namespace", "no-proc"])
def test_where_not_every_process_can_be_seen_no_gpu_counts_as_free(proc: Proc, why: str) -> None:
    assert proc.find(halves()) == []
    proc.complete = why != "incomplete"
    if why == "namespace":
        proc.set_namespace("pid:[4026532201]")
    if why == "no-proc":
        (proc.root / "proc/self/ns/pid").unlink()
    found = proc.find(halves())
    destroying = planner.plan(halves(), Wanted(True, {"7g.40gb": 1}))
    for plan in (planner.plan(gpu(on=False), Wanted(True)), destroying):
        assert blocking(plan, found) == found
    assert "processes" in refusal([(destroying, found)])


@pytest.mark.parametrize("modeset", ["Y", "N", None])
def test_mg_003_nvidia_drm_counts_with_modeset_on_ampere(proc: Proc, modeset: str | None) -> None:
    if modeset:
        parameters = proc.root / "sys/module/nvidia_drm/parameters"
        parameters.mkdir(parents=True)
        (parameters / "modeset").write_text(f"{modeset}\n")
    names = [one.name for one in proc.find(gpu(on=False), ampere=True)]
    assert names == (["nvidia_drm"] if modeset == "Y" else [])
    assert proc.find(gpu(on=False), ampere=False) == []


ON_GPU = Blocker(0, gpu().uuid, "python3", "process", 100)
ON_FIRST = replace(ON_GPU, instances=frozenset({1}))
ON_SECOND = replace(ON_GPU, instances=frozenset({2}))
PERSISTENCE = replace(ON_GPU, kind="persistence")
DRM = replace(ON_GPU, kind="module")
ELSEWHERE = replace(ON_GPU, gpu_uuid="GPU-other")


def test_a_change_of_mode_needs_the_gpu_without_any_client() -> None:
    plan = planner.plan(gpu(on=False), Wanted(True))
    everybody = [ON_GPU, PERSISTENCE, DRM, ON_FIRST]
    assert blocking(plan, [*everybody, ELSEWHERE]) == everybody


def test_destroying_needs_that_instance_unused() -> None:
    plan = planner.plan(halves(), Wanted(True, {"3g.20gb": 1}), protected=[1])
    assert [step.verb for step in plan.steps] == ["destroy_compute", "destroy_gpu"]
    assert blocking(plan, [ON_FIRST, PERSISTENCE, DRM]) == []
    assert blocking(plan, [ON_SECOND, ON_GPU]) == [ON_SECOND, ON_GPU]


def test_creating_disturbs_nobody() -> None:
    layout = gpu("A100", 0, [instance("3g.20gb@0:4", 1)])
    plan = planner.plan(layout, Wanted(True, {"3g.20gb": 2}))
    assert plan.steps
    assert blocking(plan, [ON_GPU, ON_FIRST]) == []
