# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whose work a reboot would end for good. Reads the host, decides nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..engine.docker import read_docker
from ..engine.docker_api import DEFAULT_SOCKET, DockerClient, EngineError, EngineUnreachableError
from ..engine.services import read_services
from ..hardware import holders, procfs
from ..hardware.model import Holder
from ..probe.legacy import cgroups_with_gpus

# Docker starts these again after a boot; "on-failure" it does not (docs.docker.com, "Start
# containers automatically").
_COME_BACK = ("always", "unless-stopped")
# Daemons of the host, which come back by themselves.
_DAEMONS = ("persistence", "dcgm", "display")
_DEADLINE_S = 10.0


def find(socket: str = DEFAULT_SOCKET, root: str = "/") -> list[str]:
    """Containers that nothing starts again, and processes that hold a GPU, in words."""
    client = DockerClient(socket)
    docker = read_docker(read_services(["docker.service"])["docker.service"], client)
    if docker.status == "running":
        try:
            listed = [client.inspect(one["Id"]) for one in client.containers(include_stopped=False)]
        except (EngineError, EngineUnreachableError) as error:
            return [f"containers that the engine could not describe ({error})"]
        return lost(listed, _gpu_holders(root))
    found = cgroups_with_gpus(docker_too=True, root=root)
    if docker.status == "unreachable":
        found.insert(0, f"the containers of an engine that does not answer ({docker.reason})")
    return found + lost([], _gpu_holders(root))


def lost(inspected: Iterable[Mapping[str, Any]], gpu_holders: Iterable[Holder]) -> list[str]:
    """Pure: ``inspected`` are running containers as ``GET /containers/{id}/json`` gives them."""
    found, known = [], set()
    for one in inspected:
        known.add(str(one.get("Id")))
        policy = ((one.get("HostConfig") or {}).get("RestartPolicy") or {}).get("Name") or "no"
        if policy not in _COME_BACK:
            name = str(one.get("Name") or one.get("Id")).lstrip("/")
            found.append(f"container {name} (restart policy {policy})")
    for holder in gpu_holders:
        if holder.kind in _DAEMONS or holder.container in known:
            continue
        whose = f" in container {holder.container[:12]}" if holder.container else ""
        found.append(f"process {holder.pid} {holder.name}{whose}, which holds a GPU")
    return found


def _gpu_holders(root: str) -> list[Holder]:
    gpus = procfs.read(_DEADLINE_S, root).gpus
    minors = {gpu.minor: index for index, gpu in enumerate(gpus) if gpu.minor is not None}
    unique = {one.pid: one for found in holders.find(minors, root).values() for one in found}
    return [unique[pid] for pid in sorted(unique)]
