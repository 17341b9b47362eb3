# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import io
import tarfile

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.probe import plan


def test_the_image_is_the_same_every_time_and_holds_no_program() -> None:
    tar = plan.image_tar()
    assert tar == plan.image_tar()
    with tarfile.open(fileobj=io.BytesIO(tar)) as archive:
        members = archive.getmembers()
    assert not any(member.isfile() for member in members)
    assert {m.name: m.linkname for m in members if m.issym()}["bin"] == "usr/bin"


def test_a_probe_asks_for_no_more_than_it_needs() -> None:
    host = plan.container("image")["HostConfig"]
    assert "DeviceRequests" not in host
    assert not host.get("Privileged")
    assert host["Binds"] == ["/usr:/usr:ro"]
    assert (host["CapDrop"], host["CapAdd"]) == (["ALL"], ["MKNOD"])
    assert host["NetworkMode"] == "none"


def test_a_device_is_asked_for_by_cdi_and_a_slice_by_its_name() -> None:
    host = plan.container("image", "nvidia.com/gpu=0", "ai-workload.slice")["HostConfig"]
    assert host["DeviceRequests"] == [{"Driver": "cdi", "DeviceIDs": ["nvidia.com/gpu=0"]}]
    assert host["CgroupParent"] == "ai-workload.slice"


@pytest.mark.parametrize(
    ("device", "gpu"),
    [
        ("nvidia.com/gpu=0", 0),
        ("nvidia.com/gpu=11", 11),
        ("nvidia.com/gpu=1:0", 1),
        ("nvidia.com/gpu=GPU-8dc1e42b-0b3c", "GPU-8dc1e42b-0b3c"),
        ("nvidia.com/gpu=MIG-8dc1e42b", None),
        ("nvidia.com/gpu=all", None),
    ],
)
def test_the_gpu_in_a_name(device: str, gpu: int | str | None) -> None:
    assert plan.gpu_of(device) == gpu
