# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.probe import host

UUIDS = ("GPU-aaaa0000-1111", "GPU-bbbb0000-2222")


@pytest.fixture
def root(tmp_path: Path) -> str:
    """Two GPUs whose minor numbers run against their PCI addresses, as on some boards."""
    for address, uuid, minor in [("0000:07:00.0", UUIDS[0], 1), ("0000:0f:00.0", UUIDS[1], 0)]:
        directory = tmp_path / "proc/driver/nvidia/gpus" / address
        directory.mkdir(parents=True)
        (directory / "information").write_text(
            f"Model: \t\t NVIDIA A100\nGPU UUID: \t {uuid}\nDevice Minor: \t {minor}\n"
        )
    return str(tmp_path)


@pytest.mark.parametrize(
    ("device", "node"),
    [
        ("nvidia.com/gpu=0", "/dev/nvidia1"),
        ("nvidia.com/gpu=1", "/dev/nvidia0"),
        ("nvidia.com/gpu=0:2", "/dev/nvidia1"),
        ("nvidia.com/gpu=2", None),
        ("nvidia.com/gpu=" + UUIDS[0], "/dev/nvidia1"),
        ("nvidia.com/gpu=" + UUIDS[1], "/dev/nvidia0"),
        ("nvidia.com/gpu=GPU-cccc", None),
        ("nvidia.com/gpu=all", None),
    ],
)
def test_the_node_behind_a_name_is_the_drivers_minor(
    root: str, device: str, node: str | None
) -> None:
    assert host.node_of(device, root) == node


def test_without_the_drivers_files_an_index_is_taken_for_the_minor(tmp_path: Path) -> None:
    assert host.node_of("nvidia.com/gpu=3", str(tmp_path)) == "/dev/nvidia3"
    assert host.node_of("nvidia.com/gpu=" + UUIDS[0], str(tmp_path)) is None


def test_the_limits_on_the_way_up_are_read_without_the_root(tmp_path: Path) -> None:
    scope = tmp_path / "sys/fs/cgroup/ai.slice/docker-1.scope"
    scope.mkdir(parents=True)
    (scope / "pids.max").write_text("64\n")
    (scope.parent / "pids.max").write_text("512\n")
    (scope.parent / "pids.current").write_text("3\n")
    path = host.limits_on_path("/ai.slice/docker-1.scope", str(tmp_path))
    assert [group.path for group in path] == ["/ai.slice/docker-1.scope", "/ai.slice"]
    assert [group.files["pids.max"] for group in path] == ["64", "512"]
    assert path[0].files["cpu.max"] is None
    assert host.limits_on_path("", str(tmp_path)) == []
    assert host.tasks_in("/ai.slice", str(tmp_path)) == 3
    assert host.tasks_in("/ai.slice/docker-1.scope", str(tmp_path)) is None
