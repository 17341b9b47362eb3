# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Docker's containers as its own files have them, whether it runs or not.

An answer of the engine about a container waits for as long as something is done to that; its files
do not.
"""

from __future__ import annotations

import glob
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ..atomic import read_text

# An engine that remaps user ids keeps its data one level down, in ``100000.100000``.
_CONTAINERS = ("containers", "*.*/containers")


@dataclass(frozen=True)
class ContainerFiles:
    """One container. ``restarts`` says that the engine is to start it when it starts itself,
    ``cdi`` that it has devices from CDI specifications. ``user`` and ``image`` are as it was made
    with, "" for a user that it was not told.
    """

    identity: str
    name: str
    runtime: str
    restarts: bool
    cdi: bool
    user: str = ""
    image: str = ""


def read(data_root: str) -> Iterator[ContainerFiles]:
    """Every container below an engine's directory."""
    for directory in _CONTAINERS:
        for path in glob.glob(os.path.join(glob.escape(data_root), directory, "*/hostconfig.json")):
            above = os.path.dirname(path)
            host = _object(path)
            # Without it Docker does not know the container: it is what a removal left over.
            container = _object(os.path.join(above, "config.v2.json"))
            if host and container:
                identity = os.path.basename(above)
                config = container.get("Config") or {}
                yield ContainerFiles(
                    identity=identity,
                    name=str(container.get("Name") or identity[:12]).lstrip("/"),
                    runtime=str(host.get("Runtime") or ""),
                    restarts=_restarts(host, container),
                    cdi=any(one.get("Driver") == "cdi" for one in host.get("DeviceRequests") or []),
                    user=str(config.get("User") or ""),
                    image=str(config.get("Image") or ""),
                )


def _restarts(host: dict[str, Any], container: dict[str, Any]) -> bool:
    """As moby has it in daemon/daemon.go ``restore`` and container ``ShouldRestart``."""
    policy = (host.get("RestartPolicy") or {}).get("Name")
    if policy == "always":
        return True
    if policy == "unless-stopped":
        return not container.get("HasBeenManuallyStopped")
    return policy == "on-failure" and bool((container.get("State") or {}).get("Running"))


def _object(path: str) -> dict[str, Any]:
    try:
        value = json.loads(read_text(path) or "{}")
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}
