# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.probe.legacy import (
    cgroups_with_gpus,
    uses_legacy_hook,
)


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
    assert uses_legacy_hook(container, default_runtime) is endangered


CONTAINER = "a1" * 32


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
