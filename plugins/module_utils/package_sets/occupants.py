# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whose containers an engine's package would end."""

from __future__ import annotations

from ..engine import living, runtime_users
from ..engine.daemon_control import DockerDaemon
from ..engine.docker_api import DockerClient, EngineError, EngineUnreachableError


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
    return known or living.names(root)
