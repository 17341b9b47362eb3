# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Recorded containers, and programs that answer what a test wants. Free of pytest."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ansible_collections.steadygpu.host.tests.unit.module_utils.hardware.recorded_host import Host

MOBY = "run/containerd/io.containerd.runtime.v2.task/moby"
KUBERNETES = "run/containerd/io.containerd.runtime.v2.task/k8s.io"

# What Docker gives every container: nothing, but to make nodes, and the harmless ones.
_DEFAULT_RULES = (
    {"allow": False, "access": "rwm"},
    {"allow": True, "type": "c", "access": "m"},
    {"allow": True, "type": "b", "access": "m"},
    {"allow": True, "type": "c", "major": 1, "minor": 3, "access": "rwm"},
)


def specification(
    rules: Sequence[Mapping[str, Any]] = (),
    nodes: Sequence[str] = (),
    env: Sequence[str] = (),
    hooks: Sequence[str] = (),
    annotations: Mapping[str, str] | None = None,
    cgroups_path: str = "",
) -> dict[str, Any]:
    """An OCI config.json with Docker's default rules and these further ones."""
    return {
        "ociVersion": "1.2.0",
        "process": {"env": ["PATH=/usr/bin", *env]},
        "hooks": {"prestart": [{"path": path} for path in hooks]},
        "annotations": dict(annotations or {}),
        "linux": {
            "cgroupsPath": cgroups_path,
            "devices": [{"path": path, "type": "c"} for path in nodes],
            "resources": {"devices": [*_DEFAULT_RULES, *rules]},
        },
    }


def gpu_rules(*minors: int) -> list[dict[str, Any]]:
    """What CDI adds for whole GPUs, with the control node."""
    return [
        {"allow": True, "type": "c", "major": 195, "minor": minor, "access": "rw"}
        for minor in (*minors, 255)
    ]


def bundle(
    host: Host,
    name: str,
    pid: int,
    spec: Mapping[str, Any],
    directory: str = MOBY,
    group: str = "",
    runtime: str = "runc",
) -> None:
    """A container of containerd whose first process is ``pid`` and lives."""
    host.write(f"{directory}/{name}/config.json", json.dumps(spec))
    host.write(f"{directory}/{name}/init.pid", str(pid))
    host.write(f"{directory}/{name}/runtime", runtime)
    process(host, pid, group or f"/ai.slice/docker-{name}.scope")


def process(host: Host, pid: int, group: str) -> None:
    """A process in a control group of the unified hierarchy."""
    host.write(f"proc/{pid}/cgroup", f"0::{group}\n")


def program(directory: Path, name: str, script: str) -> None:
    """A shell program in a directory that a test makes the search path of programs."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / name
    path.write_text("#!/bin/sh\n" + script)
    os.chmod(path, 0o755)
