# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whose containers an engine's package would end."""

from __future__ import annotations

import glob
import os

from ..engine import runtime_users
from ..engine.daemon_control import DockerDaemon
from ..engine.docker_api import DockerClient, EngineError, EngineUnreachableError

# Where the shims of running containers have their state: containerd's, and that of a containerd
# which dockerd started itself.
_TASKS = (
    "run/containerd/io.containerd.runtime.v2.task/*/*",
    "run/docker/containerd/daemon/io.containerd.runtime.v2.task/*/*",
)


def all_containers(socket: str, root: str = "/", deadline_s: float = 120.0) -> list[str]:
    """All containers of the host by name, stopped ones too; in words where nobody can tell."""
    client = DockerClient(socket)
    state = DockerDaemon(client, deadline_s).state()
    if state.status == "unreachable":
        return [f"those of an engine that does not answer ({state.reason})"]
    asked = client if state.status == "running" else None
    data_root = runtime_users.data_root(state.info, state.flags)
    try:
        users = runtime_users.find(asked, data_root, root)
    except (EngineError, EngineUnreachableError) as error:
        return [f"those that Docker could not list ({error})"]
    known = sorted(name for names in users.values() for name in names)
    return known or living(root)


def living(root: str = "/") -> list[str]:
    """The running containers of containerd and Docker as ``NAMESPACE/ID``, whoever answers."""
    found = []
    for pattern in _TASKS:
        for path in glob.glob(os.path.join(glob.escape(root), pattern)):
            namespace, identity = path.split("/")[-2:]
            found.append(f"{namespace}/{identity[:12]}")
    return sorted(set(found))
