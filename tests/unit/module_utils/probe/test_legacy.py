# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.probe.legacy import (
    cgroups_with_gpus,
    legacy_gpu_containers,
    uses_legacy_hook,
)

VOLUMES = "/var/run/nvidia-container-devices"
RUNTIMES: dict[str, Any] = {
    "runc": {"path": "runc", "status": {}},
    "gpu": {"path": "/usr/bin/nvidia-container-runtime", "runtimeArgs": []},
    "shim": {
        "runtimeType": "io.containerd.runc.v2",
        "options": {"BinaryName": "/opt/bin/nvidia-container-runtime"},
    },
    "nvidia-cdi": {"path": "/usr/bin/nvidia-container-runtime.cdi"},
    "nvidia": {"path": "nvidia-container-runtime"},
    "crun": {"path": "/usr/bin/crun"},
    "sandbox": {"runtimeType": "io.containerd.runsc.v1"},
}
ALL = ["NVIDIA_VISIBLE_DEVICES=all"]
VOID = ["NVIDIA_VISIBLE_DEVICES=void"]


def inspected(
    requests: list[dict[str, Any]] | None = None,
    runtime: str = "",
    env: list[str] | None = None,
    mounts: Sequence[str] = (),
) -> dict[str, Any]:
    return {
        "HostConfig": {"DeviceRequests": requests, "Runtime": runtime},
        "Config": {"Env": env},
        "Mounts": [{"Type": "bind", "Source": "/dev/null", "Destination": one} for one in mounts],
    }


@pytest.mark.parametrize(
    ("container", "default_runtime", "endangered"),
    [
        (inspected(), "runc", False),
        (inspected([{"Driver": "", "Capabilities": [["gpu"]]}]), "runc", True),
        (inspected([{"Driver": "nvidia", "Capabilities": [["gpu", "utility"]]}]), "runc", True),
        (inspected([{"Driver": "cdi", "DeviceIDs": ["nvidia.com/gpu=0"]}]), "runc", False),
        (inspected(runtime="nvidia", env=["NVIDIA_VISIBLE_DEVICES=all"]), "runc", True),
        (inspected(env=["NVIDIA_VISIBLE_DEVICES=0"]), "nvidia", True),
        (inspected(env=["NVIDIA_VISIBLE_DEVICES=void"]), "nvidia", False),
        (inspected(env=["NVIDIA_VISIBLE_DEVICES=all"]), "runc", False),
        (inspected(runtime="runc", env=["NVIDIA_VISIBLE_DEVICES=all"]), "nvidia", False),
        ({}, "nvidia", False),
    ],
)
@pytest.mark.parametrize("runtimes", [None, RUNTIMES])
def test_containers_that_a_reload_could_cost_their_gpu(
    container: dict[str, Any],
    default_runtime: str,
    endangered: bool,
    runtimes: dict[str, Any] | None,
) -> None:
    assert uses_legacy_hook(container, default_runtime, runtimes) is endangered


@pytest.mark.parametrize(
    ("runtime", "endangered"),
    [
        ("gpu", True),
        ("shim", True),
        ("nvidia", True),
        ("nvidia-gone", True),
        ("nvidia-cdi", False),
        ("crun", False),
        ("runc", False),
        ("sandbox", False),
    ],
)
def test_a_runtime_is_nvidias_by_its_program_whatever_its_name(
    runtime: str, endangered: bool
) -> None:
    assert uses_legacy_hook(inspected(runtime=runtime, env=ALL), "runc", RUNTIMES) is endangered
    assert uses_legacy_hook(inspected(env=ALL), runtime, RUNTIMES) is endangered
    assert not uses_legacy_hook(inspected(runtime=runtime, env=VOID), "runc", RUNTIMES)


@pytest.mark.parametrize(
    ("text", "endangered"),
    [
        ('#!/bin/sh\nexec /usr/bin/nvidia-container-runtime "$@"\n', True),
        ('#!/bin/sh\nexec /usr/bin/crun "$@"\n', False),
        ("\x7fELF nvidia-container-runtime", False),
    ],
)
def test_a_script_is_what_it_starts(tmp_path: Path, text: str, endangered: bool) -> None:
    program = tmp_path / "wrapper"
    program.write_text(text)
    program.chmod(0o755)
    runtimes = {"gpu": {"path": str(program)}}
    assert uses_legacy_hook(inspected(runtime="gpu", env=ALL), "runc", runtimes) is endangered


def test_a_link_is_what_it_leads_to(tmp_path: Path) -> None:
    program = tmp_path / "nvidia-container-runtime"
    program.write_text("")
    program.chmod(0o755)
    (tmp_path / "runc").symlink_to(program)
    runtimes = {"runc": {"path": str(tmp_path / "runc")}}
    assert uses_legacy_hook(inspected(env=ALL), "runc", runtimes)


@pytest.mark.parametrize(
    ("mount", "runtime", "endangered"),
    [
        (f"{VOLUMES}/GPU-8f3a", "nvidia", True),
        (f"{VOLUMES}/0", "gpu", True),
        (f"{VOLUMES}/0", "runc", False),
        (f"{VOLUMES}/cdi/nvidia.com/gpu/0", "nvidia", False),
        (f"{VOLUMES}/imex/0", "nvidia", False),
        ("/data", "nvidia", False),
    ],
)
def test_gpus_that_mounts_ask_for(mount: str, runtime: str, endangered: bool) -> None:
    container = inspected(runtime=runtime, env=VOID, mounts=["/var/lib/x", mount])
    assert uses_legacy_hook(container, "runc", RUNTIMES) is endangered


class Engine:
    """An engine with one container of a runtime that goes by another name."""

    def info(self) -> dict[str, Any]:
        return {"Runtimes": RUNTIMES}

    def containers(self, include_stopped: bool) -> list[dict[str, Any]]:
        assert not include_stopped
        return [{"Id": "a1", "Names": ["/train"], "Labels": {}}]

    def inspect(self, _container: str) -> dict[str, Any]:
        return inspected(runtime="gpu", env=ALL)


def test_the_engine_is_asked_for_its_runtimes_where_nobody_has() -> None:
    engine: Any = Engine()
    assert legacy_gpu_containers(engine, "runc") == ["container train"]
    assert legacy_gpu_containers(engine, "runc", runtimes={}) == []


# -- other engines -------------------------------------------------------------------------

CONTAINER = "a1" * 32
POD = f"/kubepods.slice/cri-containerd-{CONTAINER}.scope"
DOCKERS = f"/system.slice/docker-{CONTAINER}.scope"
HOST_NAMESPACE = "mnt:[4026531841]"

# As libnvidia-container mounts nodes, and what every container has.
NODES = """\
812 790 0:5 /nvidiactl /dev/nvidiactl rw,nosuid,noexec,relatime - devtmpfs udev rw
813 790 0:5 /nvidia0 /dev/nvidia0 rw,nosuid,noexec,relatime - devtmpfs udev rw
"""
PLAIN = """\
788 700 0:60 / / rw,relatime - overlay overlay rw
790 788 0:64 / /dev rw,nosuid - tmpfs tmpfs rw,size=65536k,mode=755
"""
CONTROL = PLAIN + NODES.splitlines(keepends=True)[0]


def process(
    root: Path,
    pid: int,
    group: str,
    mounts: str = PLAIN + NODES,
    namespace: str = "mnt:[4026532666]",
) -> None:
    directory = root / "proc" / str(pid)
    (directory / "ns").mkdir(parents=True)
    (directory / "ns/mnt").symlink_to(namespace)
    (directory / "cgroup").write_text(f"0::{group}\n")
    (directory / "mountinfo").write_text(mounts)


def bundle(root: Path, spec: dict[str, Any]) -> None:
    """The container of process 42, as containerd keeps it."""
    directory = root / "run/containerd/io.containerd.runtime.v2.task/k8s.io" / CONTAINER
    directory.mkdir(parents=True)
    (directory / "init.pid").write_text("42")
    (directory / "config.json").write_text(json.dumps({"linux": spec}))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A host whose own /dev has the GPU, as in a container that is a host to others."""
    process(tmp_path, 1, "/init.scope", PLAIN + NODES, HOST_NAMESPACE)
    return tmp_path


def test_gpus_held_by_containers_are_seen(tmp_path: Path) -> None:
    for pid, group, target in [
        ("11", "/kubepods.slice/cri-containerd-a.scope", "/dev/nvidia0"),
        ("12", "/kubepods.slice/cri-containerd-b.scope", "/dev/null"),
        ("13", "/user.slice/session.scope", "/dev/nvidia0"),
        ("14", f"/system.slice/docker-{CONTAINER}.scope", "/dev/nvidia0"),
        ("15", f"/docker/{CONTAINER}", "/dev/nvidia1"),
    ]:
        (tmp_path / "proc" / pid / "fd").mkdir(parents=True)
        (tmp_path / "proc" / pid / "cgroup").write_text(f"0::{group}\n")
        (tmp_path / "proc" / pid / "fd/3").symlink_to(target)
    others = ["/kubepods.slice/cri-containerd-a.scope"]
    dockers = [f"/docker/{CONTAINER}", f"/system.slice/docker-{CONTAINER}.scope"]
    assert cgroups_with_gpus(root=str(tmp_path)) == others
    assert cgroups_with_gpus(docker_too=True, root=str(tmp_path)) == sorted(dockers + others)


@pytest.mark.parametrize(
    "group", [POD, "/machine.slice/libpod-5e.scope", "/system.slice/crio-5e.scope"]
)
def test_a_gpu_of_the_hook_counts_though_nobody_uses_it(root: Path, group: str) -> None:
    process(root, 42, group)
    process(root, 43, group)
    assert cgroups_with_gpus(root=str(root)) == [group]


@pytest.mark.parametrize("mounts", [PLAIN, CONTROL, ""])
def test_a_gpu_that_the_engine_gave_is_no_mount_and_does_not_count(root: Path, mounts: str) -> None:
    process(root, 42, POD, mounts)
    assert cgroups_with_gpus(docker_too=True, root=str(root)) == []


def test_what_is_no_container_does_not_count(root: Path) -> None:
    process(root, 42, "/system.slice/jobs.service")
    # The monitor of a container lives in its group, and on the host.
    process(root, 43, "/machine.slice/libpod-conmon-5e.scope", PLAIN + NODES, HOST_NAMESPACE)
    # Without root an engine writes no device rules, and mounts every node.
    process(root, 44, "/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-5e.scope")
    assert cgroups_with_gpus(docker_too=True, root=str(root)) == []


def test_dockers_containers_are_left_to_those_who_can_ask_docker(root: Path) -> None:
    process(root, 42, DOCKERS)
    assert cgroups_with_gpus(root=str(root)) == []
    assert cgroups_with_gpus(docker_too=True, root=str(root)) == [DOCKERS]


def _ordered(**nodes: int) -> dict[str, Any]:
    """What an engine writes for ``--device``: the nodes by name and minor, and rules for them."""
    node = {"type": "c", "major": 195}
    rules = [{**node, "allow": True, "minor": one, "access": "rwm"} for one in nodes.values()]
    return {
        "devices": [{**node, "path": f"/dev/{name}", "minor": one} for name, one in nodes.items()],
        "resources": {"devices": [{"allow": False, "access": "rwm"}, *rules]},
    }


@pytest.mark.parametrize(
    ("spec", "counts"),
    [
        ({}, True),
        (_ordered(nvidia0=0, nvidiactl=255), False),
        (_ordered(nvidia1=1, nvidiactl=255), True),
        # Privileged: every device, whoever mounted it.
        ({"resources": {"devices": [{"allow": True, "access": "rwm"}]}}, False),
        ({"resources": {"devices": [{"allow": True, "type": "c", "access": "m"}]}}, True),
    ],
)
def test_what_the_engine_ordered_itself_is_not_lost(
    root: Path, spec: dict[str, Any], counts: bool
) -> None:
    process(root, 42, POD)
    bundle(root, spec)
    assert cgroups_with_gpus(root=str(root)) == ([POD] if counts else [])
