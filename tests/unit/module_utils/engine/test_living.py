# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Docker's containers that live on in their shims."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.engine.living import (
    identities,
    lost_to,
    names,
    shims,
)
from ansible_collections.steadygpu.host.tests.unit.module_utils.engine.shim_process import (
    ID,
    SOCKET,
    container,
    shim,
)


@pytest.mark.parametrize("group", [f"/system.slice/docker-{ID}.scope", f"/docker/{ID}/below"])
def test_a_container_with_a_process_lives(tmp_path: Path, group: str) -> None:
    shim(tmp_path)
    container(tmp_path, group)
    assert identities({}, str(tmp_path)) == [ID]


@pytest.mark.parametrize("group", [None, "/user.slice"])
def test_the_shim_of_a_container_that_has_ended_does_not_count(
    tmp_path: Path, group: str | None
) -> None:
    shim(tmp_path)
    if group:
        container(tmp_path, group)
    assert identities({}, str(tmp_path)) == []


def test_a_shim_that_does_not_say_whose_process_it_has_counts(tmp_path: Path) -> None:
    shim(tmp_path, init="")
    assert identities({}, str(tmp_path)) == [ID]


@pytest.mark.parametrize(
    "more",
    [
        {"bundle": False},
        {"namespace": "k8s.io"},
        {"address": "/run/user/1000/docker/containerd/containerd.sock"},
    ],
)
def test_an_engine_in_a_container_and_other_engines_are_not_ours(
    tmp_path: Path, more: dict[str, Any]
) -> None:
    shim(tmp_path, **more)
    container(tmp_path, f"/docker/{ID}")
    assert identities({}, str(tmp_path)) == []


@pytest.mark.parametrize(
    ("address", "flags"),
    [
        ("/var" + SOCKET, {}),
        ("/run/docker/containerd/containerd.sock", {}),
        ("/run/site/c.sock", {"--containerd": "unix:///var/run/site/c.sock"}),
    ],
)
def test_each_containerd_that_dockerd_may_have(
    tmp_path: Path, address: str, flags: dict[str, str]
) -> None:
    shim(tmp_path, address=address)
    container(tmp_path, f"/docker/{ID}")
    assert identities(flags, str(tmp_path)) == [ID]


def test_a_namespace_of_the_units_own(tmp_path: Path) -> None:
    shim(tmp_path, namespace="site")
    container(tmp_path, f"/docker/{ID}")
    assert identities({"--containerd-namespace": "site"}, str(tmp_path)) == [ID]


def test_living_containers_of_every_containerd_have_names(tmp_path: Path) -> None:
    shim(tmp_path, namespace="k8s.io", address="/run/k3s/containerd/containerd.sock")
    assert names(str(tmp_path)) == []
    container(tmp_path, f"/kubepods.slice/cri-containerd-{ID}.scope")
    assert names(str(tmp_path)) == ["k8s.io/" + ID[:12]]


def test_a_shim_of_any_name_is_known_by_its_flags(tmp_path: Path) -> None:
    shim(tmp_path, program="/opt/kata/shim")
    container(tmp_path, f"/docker/{ID}")
    assert identities({}, str(tmp_path)) == [ID]
    (tmp_path / "proc/70/cgroup").write_text("12:cpu:/a\n0::/system.slice/containerd.service\n")
    (found,) = shims(str(tmp_path))
    assert (found.pid, found.program, found.name) == (70, "shim", "moby/" + ID[:12])
    assert found.groups == ("/a", "/system.slice/containerd.service")


# As containerd 2.1.9 wrote it of a shim that it had started.
NEWER = '{"version":3,"address":"unix:///run/containerd/s/5f","protocol":"ttrpc"}'


@pytest.mark.parametrize(
    ("bootstrap", "release", "ends"),
    [
        (NEWER, "1.7.24~ds1", True),
        (NEWER, "2.1.9+ds1", False),
        (NEWER, None, True),
        (NEWER.replace("3", "2"), "1.7.24", False),
        ("", "1.7.24", False),
        ("unix:///run/containerd/s/5f", "1.7.24", False),
    ],
)
def test_whom_an_older_containerd_ends(
    tmp_path: Path, bootstrap: str, release: str | None, ends: bool
) -> None:
    shim(tmp_path, bootstrap=bootstrap)
    assert lost_to(release, str(tmp_path)) == []
    container(tmp_path, f"/docker/{ID}")
    assert [one.container for one in lost_to(release, str(tmp_path))] == ([ID] if ends else [])
