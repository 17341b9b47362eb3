# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils import packages, units
from ansible_collections.steadygpu.host.plugins.module_utils.engine.docker import DockerInfo
from ansible_collections.steadygpu.host.plugins.module_utils.engine.services import Service
from ansible_collections.steadygpu.host.plugins.module_utils.upgrade import describe, read
from ansible_collections.steadygpu.host.plugins.module_utils.upgrade.model import Shim


def test_a_program_that_was_replaced_under_its_process(tmp_path: Path) -> None:
    program = tmp_path / "sleeper"
    shutil.copy("/bin/sleep", program)
    process = subprocess.Popen([str(program), "100"])
    try:
        assert not read.is_stale(process.pid)
        fresh = tmp_path / "fresh"
        shutil.copy("/bin/sleep", fresh)
        os.replace(fresh, program)
        assert read.is_stale(process.pid)
        program.unlink()
        assert read.is_stale(process.pid)
    finally:
        process.kill()
        process.wait()
    assert not read.is_stale(process.pid)


def test_shims_by_the_unit_that_they_live_in(tmp_path: Path) -> None:
    for pid, argv, group in (
        (
            10,
            "/usr/bin/containerd-shim-runc-v2\0-namespace\0moby",
            "/system.slice/containerd.service",
        ),
        (11, "/usr/bin/containerd-shim\0", "/system.slice/docker.service"),
        (12, "/usr/bin/containerd\0", "/system.slice/containerd.service"),
    ):
        proc = tmp_path / "proc" / str(pid)
        proc.mkdir(parents=True)
        (proc / "cmdline").write_text(argv)
        (proc / "cgroup").write_text(f"0::{group}\n")
    assert read.shims(str(tmp_path)) == (
        Shim("containerd.service", "containerd-shim-runc-v2", "moby"),
        Shim("docker.service", "containerd-shim"),
    )


def test_pins_of_the_api_on_the_host(tmp_path: Path) -> None:
    (tmp_path / "etc/default").mkdir(parents=True)
    (tmp_path / "etc/environment").write_text('PATH=/bin\nDOCKER_API_VERSION="1.41"\n')
    (tmp_path / "etc/default/backup").write_text("# DOCKER_API_VERSION=1.30\n")
    assert read.pins_of_files(str(tmp_path)) == {"/etc/environment": "1.41"}
    shown = "Id=a.service\nEnvironment=A=1 DOCKER_API_VERSION=1.39\n\nId=b.service\nEnvironment=\n"
    assert read.pins_of_units(shown) == {"a.service": "1.39"}


def listed(**more: object) -> dict[str, object]:
    return {"Id": "c0ffee", "Names": ["/trainer"], "State": "running", **more}


def test_how_a_container_got_its_gpu() -> None:
    known = {"gpu": {"path": "/opt/nvidia-container-runtime"}, "runc": {"path": "runc"}}

    def gpus(host: dict[str, object], environment: list[str] | None = None) -> str:
        inspected = {"HostConfig": host, "Config": {"Env": environment}, "State": {"Pid": 7}}
        container = describe.of_inspection(describe.of_list(listed()), inspected, "runc", known)
        assert container.looked_into
        assert container.pid == 7
        return container.gpus

    assert gpus({"DeviceRequests": [{"Driver": "cdi", "DeviceIDs": ["nvidia.com/gpu=0"]}]}) == "cdi"
    assert gpus({"DeviceRequests": [{"Driver": "", "Capabilities": [["gpu"]]}]}) == "--gpus"
    asked = ["NVIDIA_VISIBLE_DEVICES=all"]
    assert gpus({"Runtime": "nvidia"}, asked) == "runtime"
    assert gpus({"Runtime": "gpu"}, asked) == "runtime"
    assert gpus({"Runtime": "nvidia"}, ["NVIDIA_VISIBLE_DEVICES=void"]) == ""
    assert gpus({"Runtime": "runc"}, asked) == ""
    assert gpus({"Devices": [{"PathOnHost": "/dev/nvidia0"}]}) == "--device"


def test_who_holds_the_socket_and_who_is_pinned() -> None:
    for source, reaches in (("/var/run/docker.sock", True), ("/run", True), ("/srv", False)):
        assert describe.of_list(listed(Mounts=[{"Source": source}])).on_socket is reaches
    inspected = {"Config": {"Env": ["DOCKER_API_VERSION=v1.41"]}, "HostConfig": {}}
    container = describe.of_inspection(describe.of_list(listed()), inspected, "runc")
    assert (container.api_pin, container.restart) == ("1.41", "no")
    assert not describe.of_list(listed(State="exited")).running


def test_complaint_37_every_way_in_which_systemd_binds_units_is_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def show(unit: str, properties: Sequence[str]) -> dict[str, str]:
        if unit == "docker.service":
            return {name: f"{name}.service" for name in properties}
        return {"ActiveState": "inactive" if unit == "BoundBy.service" else "active"}

    monkeypatch.setattr(units, "show", show)
    daemon = read._daemon("docker.service", Service("loaded"), DockerInfo("running"), 5)
    assert daemon.bound == (
        "ConsistsOf.service",
        "PropagatesStopTo.service",
        "RequiredBy.service",
        "RequisiteOf.service",
    )


def test_what_a_killed_package_manager_left_half_done_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = packages.Installed(
        "dpkg", {"runc": packages.Package("1.3.6", False)}, {"docker.io": "28.5.2", "gcc": "1"}
    )
    monkeypatch.setattr(packages, "read_installed", lambda **asked: there)
    seen = read.read(["docker.io", "runc"], str(tmp_path / "none"), 5)
    assert (seen.installed, seen.unfinished) == ({"runc": "1.3.6"}, {"docker.io": "28.5.2"})
    assert seen.there == {"docker.io": "28.5.2", "runc": "1.3.6"}
