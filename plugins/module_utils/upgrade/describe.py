# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A container of Docker's API as the plan needs it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..probe.legacy import by_runtime
from .model import BY_CDI, BY_DEVICE, BY_FLAG, BY_RUNTIME, Container

_SOCKET = ("/run/docker.sock", "/var/run/docker.sock")


def of_list(listed: Mapping[str, Any]) -> Container:
    """From an entry of ``GET /containers/json``."""
    names = listed.get("Names") or ["/" + str(listed["Id"])[:12]]
    mounts = [str(one.get("Source") or "") for one in listed.get("Mounts") or []]
    return Container(
        id=str(listed["Id"]),
        name=str(names[0]).lstrip("/"),
        running=listed.get("State") in ("running", "paused", "restarting"),
        on_socket=any(_reaches_socket(source) for source in mounts),
        looked_into=False,
    )


def _reaches_socket(source: str) -> bool:
    above = source.rstrip("/") + "/"
    return any(socket == source or socket.startswith(above) for socket in _SOCKET)


def of_inspection(
    container: Container,
    inspected: Mapping[str, Any],
    default_runtime: str,
    runtimes: Mapping[str, Any] | None = None,
) -> Container:
    """With what ``GET /containers/{id}/json`` tells of it.

    A runtime is NVIDIA's by its program in ``runtimes``, those of ``GET /info``, or by its name.
    """
    host = inspected.get("HostConfig") or {}
    state = inspected.get("State") or {}
    environment = (inspected.get("Config") or {}).get("Env") or []
    return replace(
        container,
        looked_into=True,
        pid=int(state.get("Pid") or 0),
        api_pin=_value(environment, "DOCKER_API_VERSION").lstrip("v"),
        gpus=_gpus(inspected, default_runtime, runtimes),
        runtime=str(host.get("Runtime") or default_runtime),
        restart=str((host.get("RestartPolicy") or {}).get("Name") or "no"),
    )


def _gpus(
    inspected: Mapping[str, Any], default_runtime: str, runtimes: Mapping[str, Any] | None
) -> str:
    host = inspected.get("HostConfig") or {}
    for request in host.get("DeviceRequests") or []:
        if request.get("Driver") == "cdi":
            return BY_CDI
        if any("gpu" in group for group in request.get("Capabilities") or []):
            return BY_FLAG
    if by_runtime(inspected, default_runtime, runtimes):
        return BY_RUNTIME
    devices = [str(one.get("PathOnHost") or "") for one in host.get("Devices") or []]
    return BY_DEVICE if any(path.startswith("/dev/nvidia") for path in devices) else ""


def _value(environment: Sequence[str], name: str) -> str:
    values = [one.partition("=")[2] for one in environment if one.startswith(name + "=")]
    return values[-1] if values else ""
