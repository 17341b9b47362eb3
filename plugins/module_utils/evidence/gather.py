# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""All evidence of this host in one JSON-able object. Reads only; nothing missing raises.

The texts of configuration files are in it, so that findings can name the line. They may hold
secrets: whoever carries an evidence object away keeps it to himself and shows findings only.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .. import packages
from ..engine.docker_api import DEFAULT_SOCKET, DockerClient
from . import containers, files, kernels, machine, sockets, software

SCHEMA = 1


def gather(
    gpu_host: Mapping[str, Any], deadline_s: float = 30.0, socket_path: str = DEFAULT_SOCKET
) -> dict[str, Any]:
    """Read this host, of which ``gpu_host`` are the facts (docs/facts.md).

    An engine that the facts call stopped is not asked: where ``docker.socket`` listens, the
    question would start it. Each program and each answer of the engine is waited for
    ``deadline_s`` seconds at most.
    """
    docker_answers = (gpu_host.get("docker") or {}).get("status") == "running"
    gpu = gpu_host.get("gpu") or {}
    installed = packages.read_installed("/", deadline_s)
    texts, left_out = files.read_texts()
    client = DockerClient(socket_path, deadline_s)
    return {
        "schema": SCHEMA,
        "texts": texts,
        "left_out": left_out,
        **machine.read(),
        "packages": software.read_packages(installed, deadline_s),
        "programs": software.read_programs(installed, deadline_s),
        **software.read_kind_of_docker(installed),
        **software.read_units(deadline_s),
        "unattended_upgrades": software.read_unattended(),
        "listeners": sockets.read_listeners(),
        "containers": containers.read(client, gpu, deadline_s) if docker_answers else None,
        "kernels": kernels.read(),
    }
