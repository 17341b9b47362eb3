# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Docker's running containers: how each got its GPU, if it has one."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from ..engine.docker_api import DockerClient, EngineError, EngineUnreachableError
from ..heal import containers as sight
from ..probe.legacy import uses_legacy_hook


def read(
    client: DockerClient, gpu: Mapping[str, Any], deadline_s: float = 30.0
) -> list[dict[str, Any]] | None:
    """``id``, ``name``, ``runtime``, ``gpus`` and ``pid`` of each; None: no answer.

    Each answer is waited for as long as the client waits, and all together ``deadline_s`` seconds
    beyond the first of them.

    ``gpus`` is ``cdi``, ``device``, ``hook`` or ``none``. ``lost`` are device nodes that it was
    given and the kernel no longer lets it open, ``unclear`` says why that cannot be told. ``gpu``
    is that section of the facts.
    """
    end = time.monotonic() + deadline_s
    try:
        info = client.info()
        default, runtimes = str(info.get("DefaultRuntime") or "runc"), info.get("Runtimes")
        found = []
        for listed in client.containers(include_stopped=False):
            if time.monotonic() > end:
                return None
            try:
                inspected = client.inspect(listed["Id"])
            except EngineError as error:
                if error.status == 404:  # It ended in the meantime.
                    continue
                raise
            found.append(describe(inspected, default, runtimes))
    except (EngineError, EngineUnreachableError):
        return None
    return _with_losses(found, gpu) if found else []


def _with_losses(found: list[dict[str, Any]], gpu: Mapping[str, Any]) -> list[dict[str, Any]]:
    seen = {one.id: one for one in sight.read(gpu, {c["id"]: c["name"] for c in found})}
    for container in found:
        one = seen.get(container["id"])
        container["lost"] = [node.path for node in one.lost] if one else []
        container["unclear"] = one.unclear if one else ""
    return found


def describe(
    inspected: Mapping[str, Any],
    default_runtime: str,
    runtimes: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """One container from ``GET /containers/{id}/json``. ``runtimes`` are those of ``GET /info``."""
    host = inspected.get("HostConfig") or {}
    return {
        "id": inspected["Id"],
        "name": str(inspected.get("Name") or "").lstrip("/"),
        "runtime": host.get("Runtime") or default_runtime,
        "pid": (inspected.get("State") or {}).get("Pid") or 0,
        "gpus": how_injected(inspected, default_runtime, runtimes),
    }


def how_injected(
    inspected: Mapping[str, Any],
    default_runtime: str,
    runtimes: Mapping[str, Any] | None = None,
) -> str:
    """``cdi``, ``device``, ``hook`` or ``none``; a doubt counts as ``hook``."""
    if uses_legacy_hook(inspected, default_runtime, runtimes):
        return "hook"
    host = inspected.get("HostConfig") or {}
    for request in host.get("DeviceRequests") or []:
        names = request.get("DeviceIDs") or []
        if request.get("Driver") == "cdi" and any(n.startswith("nvidia.com/") for n in names):
            return "cdi"
    paths = [str(device.get("PathOnHost") or "") for device in host.get("Devices") or []]
    return "device" if any(path.startswith("/dev/nvidia") for path in paths) else "none"
