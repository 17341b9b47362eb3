# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A shim of a container as a process of a scratch tree, and what it has its files in."""

from __future__ import annotations

from pathlib import Path

ID = "5f" * 32
SOCKET = "/run/containerd/containerd.sock"


def shim(
    root: Path,
    identity: str = ID,
    namespace: str = "moby",
    address: str = SOCKET,
    init: str = "77",
    bundle: bool = True,
    program: str = "/usr/bin/containerd-shim-runc-v2",
    bootstrap: str = "",
) -> None:
    """A shim as process 70, and its bundle; ``bootstrap`` is what it has agreed on."""
    place = f"run/containerd/io.containerd.runtime.v2.task/{namespace}/{identity}"
    process = root / "proc/70"
    process.mkdir(parents=True)
    words = [program, "-namespace", namespace, "-id", identity, "-address", address, ""]
    (process / "cmdline").write_text("\x00".join(words))
    (process / "cwd").symlink_to("/" + place)
    if bundle:
        (root / place).mkdir(parents=True)
    if bundle and bootstrap:
        (root / place / "bootstrap.json").write_text(bootstrap)
    if bundle and init:
        (root / place / "init.pid").write_text(init)


def container(root: Path, group: str) -> None:
    """Process 77 in a control group."""
    (root / "proc/77").mkdir(parents=True)
    (root / "proc/77/cmdline").write_text("train\x00")
    (root / "proc/77/cgroup").write_text(f"0::{group}\n")
