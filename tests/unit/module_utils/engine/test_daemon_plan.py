# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whom a restart, a start or a runtime that goes would cost, also by what others have written."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.engine.daemon_apply import (
    DaemonFailedError,
    carry_out,
)
from ansible_collections.steadygpu.host.plugins.module_utils.engine.daemon_plan import (
    DaemonRefusedError,
)
from ansible_collections.steadygpu.host.plugins.module_utils.engine.daemon_refusals import (
    endangered,
)
from ansible_collections.steadygpu.host.plugins.module_utils.engine.daemon_rules import classify
from ansible_collections.steadygpu.host.plugins.module_utils.engine.daemon_waiting import in_waiting
from ansible_collections.steadygpu.host.plugins.module_utils.engine.docker_api import (
    EngineUnreachableError,
)
from ansible_collections.steadygpu.host.tests.unit.module_utils.engine.fake_docker import (
    CDI,
    NVIDIA,
    Host,
)

LIVE_RESTORE = {"live-restore": True}
SNAPSHOTTER = {"features": {"containerd-snapshotter": True}}
IN_CONTAINERD = {
    "Driver": "overlayfs",
    "DriverStatus": [["driver-type", "io.containerd.snapshotter.v1"]],
}


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


# -- keys that wait for a restart ----------------------------------------------------------


@pytest.mark.parametrize(
    ("config", "shows", "named"),
    [
        ({"data-root": "/data/docker"}, {"DockerRootDir": "/var/lib/docker"}, "data-root"),
        ({}, {"DockerRootDir": "/data/docker"}, "data-root"),
        ({"graph": "/data/docker"}, {"DockerRootDir": "/var/lib/docker/1.1"}, "graph"),
        ({"storage-driver": "btrfs"}, {"Driver": "overlay2"}, "storage-driver"),
        ({"exec-opts": ["native.cgroupdriver=cgroupfs"]}, {}, "exec-opts native.cgroupdriver"),
        ({}, {"CgroupVersion": "2", "CgroupDriver": "cgroupfs"}, "exec-opts native.cgroupdriver"),
        ({"userns-remap": "default"}, {"SecurityOptions": ["name=seccomp"]}, "userns-remap"),
        ({}, {"SecurityOptions": ["name=userns"]}, "userns-remap"),
        (
            SNAPSHOTTER,
            {"Driver": "overlay2", "ServerVersion": "26.1.5"},
            "features.containerd-snapshotter",
        ),
        ({}, {**IN_CONTAINERD, "ServerVersion": "28.5.2"}, "features.containerd-snapshotter"),
    ],
)
def test_what_others_have_in_waiting_counts_as_a_change(
    host: Host, config: dict[str, Any], shows: dict[str, Any], named: str
) -> None:
    before = json.dumps({**LIVE_RESTORE, **config})
    host.write(before)
    docker = host.docker(running=("train",), shows=shows)
    with pytest.raises(DaemonRefusedError) as caught:
        host.run(docker, CDI)
    for words in (named, "train", "not what the running daemon has", "restart: always"):
        assert words in str(caught.value)
    assert (host.text(), docker.done, docker.killed) == (before, [], [])
    assert host.plan(docker, CDI, restart="always").how == "restart"
    assert host.run(docker, NVIDIA).applied == "reload"
    docker.running = ()
    assert host.plan(docker, CDI).how == "restart"


def test_what_is_in_waiting_is_asked_again_before_the_restart(host: Host) -> None:
    docker = host.docker(running=("train",))
    plan = host.plan(docker, {**CDI, **LIVE_RESTORE})
    docker.shows = {"DockerRootDir": "/data/docker"}
    with pytest.raises(DaemonFailedError, match="would end the container"):
        carry_out(plan, docker, timeout_s=0.01, record_path=host.record)
    assert (host.text(), docker.killed, "restart" in docker.done) == (None, [], False)


REMAPPED = {"DockerRootDir": "/srv/d/100000.100000", "SecurityOptions": ["name=userns"]}
DEBIAN = {
    "DockerRootDir": "/var/lib/docker",
    "Driver": "overlay2",
    "DriverStatus": [["Backing Filesystem", "extfs"], ["Supports d_type", "true"]],
    "SecurityOptions": ["name=apparmor", "name=seccomp,profile=builtin", "name=cgroupns"],
    "CgroupDriver": "systemd",
    "CgroupVersion": "2",
    "ServerVersion": "26.1.5+dfsg1",
}


@pytest.mark.parametrize(
    ("config", "info", "flags"),
    [
        ({}, DEBIAN, {"--host": "fd://", "--containerd": "/run/containerd/containerd.sock"}),
        ({**LIVE_RESTORE, **CDI}, DEBIAN, {}),
        (SNAPSHOTTER, {**DEBIAN, **IN_CONTAINERD, "ServerVersion": "28.5.2"}, {}),
        ({}, {**DEBIAN, **IN_CONTAINERD, "ServerVersion": "29.1.0"}, {}),
        ({}, {**DEBIAN, **IN_CONTAINERD}, {"--feature": "cdi,containerd-snapshotter"}),
        (SNAPSHOTTER, {"Driver": "overlay2", "ServerVersion": "20.10.24"}, {}),
        ({"features": {"containerd-snapshotter": False}}, DEBIAN, {}),
        ({}, {**DEBIAN, "DockerRootDir": "/srv/d"}, {"--data-root": "/srv/d/"}),
        ({}, {**DEBIAN, "DockerRootDir": "/srv/d"}, {"--graph": "/srv/d"}),
        ({}, {**DEBIAN, "DockerRootDir": "/srv/d"}, {"--data-root": ""}),
        ({"data-root": "/srv/d", "userns-remap": "default"}, REMAPPED, {}),
        ({"data-root": "/srv/d"}, REMAPPED, {"--userns-remap": "dockremap:dockremap"}),
        ({"userns-remap": "root"}, DEBIAN, {}),
        ({}, DEBIAN, {"--storage-driver": "overlay2"}),
        ({}, {"CgroupDriver": "cgroupfs"}, {"--exec-opt": "native.cgroupdriver=cgroupfs"}),
        ({}, {"CgroupDriver": "cgroupfs", "CgroupVersion": "1"}, {}),
        ({}, {}, {}),
        ({"data-root": "/srv/d", "storage-driver": "zfs", "userns-remap": "a"}, {}, {}),
    ],
)
def test_on_an_ordinary_host_nothing_waits(
    config: dict[str, Any], info: dict[str, Any], flags: dict[str, str]
) -> None:
    assert in_waiting(config, info, flags) == []


def test_a_data_root_behind_a_link_is_the_same(tmp_path: Path) -> None:
    (tmp_path / "data/docker").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "data")
    real = str((tmp_path / "data/docker").resolve())
    linked = str(tmp_path / "link/docker")
    assert in_waiting({"data-root": linked}, {"DockerRootDir": real}, {}) == []
    assert in_waiting({"data-root": real}, {"DockerRootDir": linked + "/231072.231072"}, {}) == []
    other = {"DockerRootDir": str(tmp_path / "other")}
    assert in_waiting({"data-root": linked}, other, {}) == ["data-root"]


def test_a_script_that_starts_the_daemon_may_give_it_flags_that_nobody_sees() -> None:
    elsewhere = {**REMAPPED, "DockerRootDir": "/var/snap/docker", "CgroupVersion": "2"}
    elsewhere["CgroupDriver"] = "cgroupfs"
    assert in_waiting({}, elsewhere, {}, flags_known=False) == []
    named = {"data-root": "/srv/d"}
    assert in_waiting(named, elsewhere, {}, flags_known=False) == ["data-root"]


def test_a_young_file_with_keys_that_the_daemon_does_not_show_is_warned_of(host: Host) -> None:
    host.write(json.dumps({**LIVE_RESTORE, "bip": "10.9.0.1/24"}))
    docker = host.docker(running=("train",), started_at=1.0)
    (told,) = host.plan(docker, CDI).warnings
    assert "bip" in told
    assert host.plan(docker, NVIDIA).warnings == ()
    docker.started_at = time.time() + 60
    assert host.plan(docker, CDI).warnings == ()


@pytest.mark.parametrize(
    ("value", "kept"),
    [("true", True), ("1", True), ("false", False), ("0", False), ("true,false", False)],
)
def test_live_restore_that_the_unit_switches_off_keeps_nobody(
    host: Host, value: str, kept: bool
) -> None:
    docker = host.docker(running=("train",), flags={"--live-restore": value})
    docker.live = dict(LIVE_RESTORE)
    lost = endangered(docker.state(), CDI, classify({}, CDI, "26.1.5"))
    assert lost == (() if kept else ("train",))


# -- a daemon that cannot be asked ---------------------------------------------------------


def test_the_cgroup_driver_of_a_stopped_daemon_is_that_of_its_flags(host: Host) -> None:
    flags = {"--exec-opt": "native.cgroupdriver=cgroupfs"}
    docker = host.docker(status="stopped", flags=flags)
    assert host.run(docker, {"cgroup-parent": "/gpdb"}).applied == "not_running"
    with pytest.raises(DaemonRefusedError, match=r"must end in \.slice"):
        host.run(host.docker(status="stopped"), {"cgroup-parent": "/other"})


# -- line ends ------------------------------------------------------------------------------


def test_a_file_with_line_ends_of_windows_keeps_them(host: Host) -> None:
    before = '{\r\n  "labels": ["a=1"],\r\n  "log-opts": {\r\n    "tag": "x"\r\n  }\r\n}\r\n'
    path = Path(host.path)
    path.write_bytes(before.encode())
    docker = host.docker()
    host.run(docker, {**CDI, "log-opts": {"max-size": "1m"}}, restart="always")
    after = path.read_bytes().decode()
    assert after.count("\n") == after.count("\r\n") == 10
    assert json.loads(after)["features"] == {"cdi": True}
    assert host.run(docker, {**CDI, "log-opts": {"max-size": "1m"}}).applied == "none"
    host.run(docker, {}, present=False, restart="always")
    assert path.read_bytes().decode() == before


# -- containers that live on without their daemon ------------------------------------------


@pytest.mark.parametrize("config", [{}, CDI])
def test_a_start_that_would_end_living_containers_is_refused(
    host: Host, config: dict[str, Any]
) -> None:
    before = '{"labels": ["a=1"]}'
    host.write(before)
    docker = host.docker(status="stopped", living=("train",))
    with pytest.raises(DaemonRefusedError) as caught:
        host.run(docker, config, start=True)
    for words in ("live on without it: train", "set live-restore: true", "restart: always"):
        assert words in str(caught.value)
    assert (host.text(), docker.done, docker.killed) == (before, [], [])
    assert host.run(docker, {**CDI, **LIVE_RESTORE}, start=True).applied == "start"
    assert (docker.killed, docker.running) == ([], ("train",))


def test_a_start_over_living_containers_may_be_forced(host: Host) -> None:
    docker = host.docker(status="stopped", living=("train",))
    assert host.run(docker, CDI, start=True, restart="always").applied == "start"
    assert docker.killed == ["train"]


@pytest.mark.parametrize("broken", [False, True])
def test_with_nothing_to_set_the_file_that_is_there_decides(host: Host, broken: bool) -> None:
    host.write(json.dumps(LIVE_RESTORE))
    docker = host.docker(status="stopped", living=("train",))
    if not broken:
        assert host.run(docker, {}, start=True).applied == "start"
        assert docker.killed == []
        return
    host.write("{ broken")
    with pytest.raises(DaemonRefusedError, match="live-restore is off"):
        host.run(docker, {}, start=True)
    docker.flags = {"--live-restore": "true"}
    assert host.plan(docker, {}, start=True).how == "start"


def test_live_restore_does_not_keep_living_containers_over_every_start(host: Host) -> None:
    host.write(json.dumps(LIVE_RESTORE))
    docker = host.docker(status="stopped", living=("train", "web"))
    with pytest.raises(DaemonRefusedError, match="over a change of data-root"):
        host.run(docker, {"data-root": "/srv/docker"}, start=True)
    docker.adrift = ("web",)
    with pytest.raises(DaemonRefusedError, match="would not find the files of web"):
        host.run(docker, CDI, start=True)
    assert (docker.done, docker.killed) == ([], [])


def test_living_containers_are_asked_for_again_before_the_start(host: Host) -> None:
    docker = host.docker(status="stopped")
    plan = host.plan(docker, CDI, start=True)
    docker.living = ("train",)
    with pytest.raises(DaemonFailedError, match="live on without it"):
        carry_out(plan, docker, timeout_s=0.01, record_path=host.record)
    assert (host.text(), docker.done, docker.killed) == (None, [], [])


def test_after_a_start_that_failed_nothing_is_tried_with_the_former_file(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = '{"labels": ["a=1"]}'
    host.write(before)
    docker = host.docker(status="stopped", living=("train",), refuses="cdi")
    seen: list[str | None] = []
    stop = docker.stop

    def stop_and_look() -> None:
        seen.append(host.text())
        stop()

    monkeypatch.setattr(docker, "stop", stop_and_look)
    with pytest.raises(DaemonFailedError, match="stopped, as it was"):
        host.run(docker, {**CDI, **LIVE_RESTORE}, start=True)
    assert "cdi" in (seen[0] or "")
    assert (host.text(), docker.killed, docker.status) == (before, [], "stopped")


def test_who_does_not_come_back_is_told_also_where_nothing_is_set(host: Host) -> None:
    host.write(json.dumps(LIVE_RESTORE))
    docker = host.docker(status="stopped", living=("train",), forgotten=("train", "idle"))
    (told,) = host.plan(docker, {}, start=True).warnings
    assert "docker start idle" in told
    assert "train" not in told


# -- runtimes that containers carry --------------------------------------------------------


@pytest.mark.parametrize("status", ["running", "stopped"])
def test_a_runtime_that_containers_carry_is_not_taken_away(host: Host, status: str) -> None:
    docker = host.docker(running=("train",))
    host.run(docker, {**NVIDIA, **LIVE_RESTORE})
    text = host.text()
    docker.done.clear()
    docker.status = status
    docker.carried = {"nvidia": ("train", "old"), "runc": ("web",)}
    with pytest.raises(DaemonRefusedError) as caught:
        host.run(docker, {}, present=False)
    for words in ("nvidia: train, old", "would not start again", "restart: always"):
        assert words in str(caught.value)
    assert "web" not in str(caught.value)
    assert (host.text(), docker.done) == (text, [])
    assert host.run(docker, LIVE_RESTORE, present=False).applied != "none"
    host.run(docker, {}, present=False, restart="always")
    assert host.text() is None


def test_a_runtime_stays_when_nobody_can_say_who_carries_it(host: Host) -> None:
    docker = host.docker(raises={"carriers": EngineUnreachableError("nobody listens")})
    host.run(docker, NVIDIA)
    text = host.text()
    with pytest.raises(DaemonRefusedError, match=r"nvidia could not be asked: nobody listens"):
        host.run(docker, {}, present=False)
    assert host.text() == text


def test_a_runtime_of_the_unit_stays_without_the_file_and_no_docker_has_no_containers(
    host: Host,
) -> None:
    docker = host.docker(flags={"--add-runtime": "nvidia=/usr/bin/nvidia-container-runtime"})
    host.run(docker, NVIDIA)
    docker.carried = {"nvidia": ("train",)}
    assert host.plan(docker, {}, present=False).changed
    docker.flags = {}
    docker.status = "absent"
    assert host.plan(docker, {}, present=False).changed
