# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Docker's containers that live on in their shims."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.engine.living import identities

ID = "5f" * 32
SOCKET = "/run/containerd/containerd.sock"


def shim(
    root: Path,
    identity: str = ID,
    namespace: str = "moby",
    address: str = SOCKET,
    init: str = "77",
    bundle: bool = True,
) -> None:
    """A shim as process 70, and its bundle."""
    place = f"run/containerd/io.containerd.runtime.v2.task/{namespace}/{identity}"
    process = root / "proc/70"
    process.mkdir(parents=True)
    program = "/usr/bin/containerd-shim-runc-v2"
    words = [program, "-namespace", namespace, "-id", identity, "-address", address, ""]
    (process / "cmdline").write_text("\x00".join(words))
    (process / "cwd").symlink_to("/" + place)
    if bundle:
        (root / place).mkdir(parents=True)
    if bundle and init:
        (root / place / "init.pid").write_text(init)


def container(root: Path, group: str) -> None:
    """Process 77 in a control group."""
    (root / "proc/77").mkdir(parents=True)
    (root / "proc/77/cmdline").write_text("train\x00")
    (root / "proc/77/cgroup").write_text(f"0::{group}\n")


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
