# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whose GPU a ``systemctl daemon-reload`` could take.

systemd rebuilds the device rules of running containers when it reloads. GPUs that the
legacy NVIDIA hook granted behind its back are lost then, and the container must be made
anew (NVIDIA container toolkit, troubleshooting, "Failed to initialize NVML: Unknown
Error"). GPUs given by CDI stay.
"""

from __future__ import annotations

from ..engine.docker import read_docker
from ..engine.docker_api import DEFAULT_SOCKET, DockerClient, EngineError, EngineUnreachableError
from ..engine.services import read_services
from ..probe.legacy import cgroups_with_gpus, legacy_gpu_containers


def endangered(socket: str = DEFAULT_SOCKET) -> list[str]:
    """What may lose a GPU at a daemon-reload, in words; [] when a reload is safe.

    An engine that should answer and does not counts as endangered, since nobody else knows
    how its containers got their GPUs. Under a stopped engine containers may live on
    (live-restore): then those count that hold a GPU open or got one from the hook, as do those of
    other engines.
    """
    client = DockerClient(socket)
    docker = read_docker(read_services(["docker.service"])["docker.service"], client)
    if docker.status != "running":
        found = cgroups_with_gpus(docker_too=True)
        if docker.status == "unreachable":
            found.insert(0, f"the containers of an engine that does not answer ({docker.reason})")
        return found
    try:
        default_runtime = str(docker.info.get("DefaultRuntime", ""))
        runtimes = docker.info.get("Runtimes") or {}
        found = legacy_gpu_containers(client, default_runtime, runtimes=runtimes)
    except (EngineError, EngineUnreachableError) as error:
        found = [f"containers that the engine could not describe ({error})"]
    return found + cgroups_with_gpus()
