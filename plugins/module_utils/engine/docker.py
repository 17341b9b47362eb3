# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The Docker daemon as it runs: asked once, over its API, without waking it up."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..process import find_program
from .docker_api import DockerClient, EngineError, EngineUnreachableError
from .services import Service


@dataclass(frozen=True)
class DockerInfo:
    """What the daemon says of itself. Versions and lists are empty when it does not answer.

    ``status`` is ``running``, ``stopped``, ``unreachable`` (it should run and does not
    answer; ``reason`` says what was seen) or ``absent``. ``cdi_devices`` is None where the
    daemon does not list them (before 28.2). ``components`` maps containerd and runc to
    their versions. ``info`` is the daemon's own ``GET /info``.
    """

    status: str
    reason: str | None = None
    version: str | None = None
    api_version: str | None = None
    min_api_version: str | None = None
    components: Mapping[str, str] = field(default_factory=dict)
    info: Mapping[str, Any] = field(default_factory=dict)

    @property
    def cdi_spec_dirs(self) -> list[str]:
        """Empty when CDI is off: the daemon clears the list then."""
        return [str(path) for path in self.info.get("CDISpecDirs") or []]

    @property
    def cdi_devices(self) -> list[str] | None:
        """Fully qualified names (``nvidia.com/gpu=0``) that the daemon found."""
        found = self.info.get("DiscoveredDevices")
        if found is None:
            return None
        return sorted(str(entry.get("ID")) for entry in found if entry.get("Source") == "cdi")

    @property
    def runtimes(self) -> list[str]:
        """Names of the runtimes that containers may ask for."""
        return sorted(self.info.get("Runtimes") or {})

    @property
    def swarm_active(self) -> bool:
        """Is this a node of a Swarm (or joining one)?"""
        return self.swarm_state not in (None, "inactive")

    @property
    def swarm_state(self) -> str | None:
        """``inactive``, ``pending``, ``active``, ``error`` or ``locked``; None when not known."""
        return (self.info.get("Swarm") or {}).get("LocalNodeState") or None


def read_docker(service: Service, client: DockerClient, root: str = "/") -> DockerInfo:
    """Ask the daemon, unless asking would start it.

    Where ``docker.socket`` listens, a connection starts a stopped daemon: facts must not
    do that. So the daemon is asked only when its unit is active, or when there is no such
    unit or a live process wrote the pid file (a daemon started by hand).
    """
    by_hand = service.load_state == "not-found" or _pid_file_lives(root)
    if not service.active and not by_hand:
        return DockerInfo("stopped", f"docker.service is {service.active_state}")
    if not service.active and not os.path.exists(client.socket_path):
        if find_program("dockerd") is None:
            return DockerInfo("absent")
        return DockerInfo("stopped", "dockerd is installed, no unit and no process runs it")
    try:
        version, info = client.version(), client.info()
    except (EngineUnreachableError, EngineError) as error:
        return DockerInfo("unreachable", str(error))
    return DockerInfo(
        status="running",
        version=version.get("Version"),
        api_version=version.get("ApiVersion"),
        min_api_version=version.get("MinAPIVersion"),
        components=_components(version),
        info=info,
    )


def _components(version: Mapping[str, Any]) -> dict[str, str]:
    listed = version.get("Components") or []
    return {str(part.get("Name")): str(part.get("Version")) for part in listed}


def _pid_file_lives(root: str) -> bool:
    try:
        with open(os.path.join(root, "run/docker.pid"), encoding="ascii") as handle:
            return os.path.isdir(os.path.join(root, "proc", str(int(handle.read()))))
    except (OSError, ValueError):
        return False
