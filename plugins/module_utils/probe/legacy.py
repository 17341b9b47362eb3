# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Containers whose GPU came, or may have come, from the legacy NVIDIA hook.

The hook grants the device behind the back of the one who keeps the container's device
rules, so the GPU is lost when systemd or the engine writes these rules again.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Mapping
from typing import Any

from .. import cgroups
from ..engine.docker_api import DockerClient, EngineError

# Cgroups of containers that other engines made: Kubernetes (containerd, CRI-O), Podman.
_OTHER_ENGINES = re.compile(r"/(?:cri-containerd-|crio-|libpod-|nerdctl-|kubepods)")
# Docker's own, by the systemd and by the cgroupfs driver.
_DOCKER = re.compile(r"/docker[-/][0-9a-f]{64}")
_NO_GPU = ("", "void", "none")


def uses_legacy_hook(inspected: Mapping[str, Any], default_runtime: str) -> bool:
    """May this container's GPU have come from the legacy NVIDIA hook? Pure.

    ``inspected`` is ``GET /containers/{id}/json``. A doubt counts as yes.
    """
    host = inspected.get("HostConfig") or {}
    for request in host.get("DeviceRequests") or []:
        wants_gpu = any("gpu" in group for group in request.get("Capabilities") or [])
        if request.get("Driver") in ("", "nvidia", None) and wants_gpu:
            return True
    environment = (inspected.get("Config") or {}).get("Env") or []
    values = [e.split("=", 1)[1] for e in environment if e.startswith("NVIDIA_VISIBLE_DEVICES=")]
    asks = bool(values) and values[-1] not in _NO_GPU
    return asks and "nvidia" in (host.get("Runtime") or default_runtime)


def legacy_gpu_containers(
    client: DockerClient, default_runtime: str, ignored_label: str | None = None
) -> list[str]:
    """The running Docker containers of that kind, as ``container NAME``.

    Containers with ``ignored_label`` are passed over. Raises EngineError and
    EngineUnreachableError.
    """
    found = []
    for listed in client.containers(include_stopped=False):
        if ignored_label in (listed.get("Labels") or {}):
            continue
        name = (listed.get("Names") or ["/" + listed["Id"][:12]])[0].lstrip("/")
        try:
            inspected = client.inspect(listed["Id"])
        except EngineError as error:
            if error.status == 404:  # It ended in the meantime.
                continue
            raise
        if uses_legacy_hook(inspected, default_runtime):
            found.append("container " + name)
    return found


def cgroups_with_gpus(docker_too: bool = False, root: str = "/") -> list[str]:
    """Cgroups of other engines' containers in which a process holds a GPU node open.

    These engines are not asked how the GPU came there. ``docker_too`` counts Docker's
    containers as well, for when its engine cannot be asked either.
    """
    found = set()
    for directory in glob.glob(os.path.join(root, "proc/[0-9]*")):
        group = cgroups.of_process(int(os.path.basename(directory)), root) or ""
        counts = _OTHER_ENGINES.search(group) or (docker_too and _DOCKER.search(group))
        if counts and _holds_gpu(directory):
            found.add(group)
    return sorted(found)


def _holds_gpu(process_directory: str) -> bool:
    for link in glob.glob(os.path.join(process_directory, "fd", "*")):
        try:
            if os.readlink(link).startswith("/dev/nvidia"):
                return True
        except OSError:
            continue
    return False
