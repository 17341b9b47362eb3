# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Docker's containers by name, for those who hold GPUs and those who may be stopped."""

from __future__ import annotations

from .. import units
from ..engine.docker_api import DockerClient, EngineError, EngineUnreachableError


def names(client: DockerClient) -> dict[str, str]:
    """Id -> name of the running containers; {} when no Docker runs or answers.

    A stopped Docker is not asked: where ``docker.socket`` listens, the question would start it.
    """
    unit = units.show("docker.service", ("LoadState", "ActiveState"))
    if unit.get("LoadState") == "loaded" and unit.get("ActiveState") != "active":
        return {}
    try:
        listed = client.containers(include_stopped=False)
    except (EngineError, EngineUnreachableError):
        return {}
    return {
        one["Id"]: (one.get("Names") or ["/" + one["Id"][:12]])[0].lstrip("/") for one in listed
    }


def vanishes_when_stopped(client: DockerClient, name: str) -> bool:
    """Was it started with ``--rm``? Raises EngineError and EngineUnreachableError."""
    host = client.inspect(name).get("HostConfig") or {}
    return bool(host.get("AutoRemove"))
