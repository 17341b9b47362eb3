# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.probe import host


def test_the_limits_of_a_slice_as_systemd_shows_them() -> None:
    shown = {"MemoryMax": "8589934593", "TasksMax": "512", "CPUQuotaPerSecUSec": "3s"}
    assert host.limit_texts(shown, 4096) == {
        "memory.max": "8589934592",
        "pids.max": "512",
        "cpu.max": host.cpu_quota("300000 100000"),
    }


def test_what_is_not_limited_is_not_listed() -> None:
    shown = {"MemoryMax": "infinity", "TasksMax": "infinity", "CPUQuotaPerSecUSec": "infinity"}
    assert host.limit_texts(shown, 4096) == {}


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("3s", 3000000),
        ("1min 500ms", 60500000),
        ("333.3ms", 333300),
        ("infinity", None),
        ("", None),
    ],
)
def test_time_spans_of_systemctl(text: str, span: int | None) -> None:
    assert host.span_us(text) == span


def test_the_kernels_limit_is_read_in_the_same_words(tmp_path: Path) -> None:
    directory = tmp_path / "sys/fs/cgroup/ai.slice"
    directory.mkdir(parents=True)
    (directory / "cpu.max").write_text("150000 100000\n")
    (directory / "pids.max").write_text("max\n")
    assert host.limit_in_force("/ai.slice", "cpu.max", str(tmp_path)) == "150% of a CPU"
    assert host.limit_in_force("/ai.slice", "pids.max", str(tmp_path)) == "max"
    assert host.limit_in_force("/ai.slice", "memory.max", str(tmp_path)) == "no such file"
    assert host.limit_in_force("", "pids.max", str(tmp_path)) == "no such file"


def test_the_cgroup_of_a_process_on_v2(tmp_path: Path) -> None:
    (tmp_path / "proc/7").mkdir(parents=True)
    (tmp_path / "proc/7/cgroup").write_text("0::/ai.slice/docker-abc.scope\n")
    assert host.cgroup_of(7, str(tmp_path)) == "/ai.slice/docker-abc.scope"
    assert host.cgroup_of(8, str(tmp_path)) == ""


def inspected(
    requests: list[dict[str, Any]] | None = None, runtime: str = "", env: list[str] | None = None
) -> dict[str, Any]:
    return {
        "HostConfig": {"DeviceRequests": requests, "Runtime": runtime},
        "Config": {"Env": env},
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
def test_containers_that_a_reload_could_cost_their_gpu(
    container: dict[str, Any], default_runtime: str, endangered: bool
) -> None:
    assert host.uses_legacy_hook(container, default_runtime) is endangered


def test_gpus_held_by_containers_of_other_engines_are_seen(tmp_path: Path) -> None:
    for pid, group, target in [
        ("11", "/kubepods.slice/cri-containerd-a.scope", "/dev/nvidia0"),
        ("12", "/kubepods.slice/cri-containerd-b.scope", "/dev/null"),
        ("13", "/user.slice/session.scope", "/dev/nvidia0"),
    ]:
        (tmp_path / "proc" / pid / "fd").mkdir(parents=True)
        (tmp_path / "proc" / pid / "cgroup").write_text(f"0::{group}\n")
        (tmp_path / "proc" / pid / "fd/3").symlink_to(target)
    found = host.other_engines_with_gpus(str(tmp_path))
    assert found == ["/kubepods.slice/cri-containerd-a.scope"]
