# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which containers carry the name of which runtime, whether they run and whether Docker does.

Docker writes the runtime's name into a container when it is made (``HostConfig.Runtime``), and
refuses to start one whose runtime it does not know.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from ..atomic import read_text
from . import container_files
from .daemon_json import CONFIG_PATH, document
from .docker_api import DockerClient, EngineError
from .json_text import JsonTextError

DEFAULT_DATA_ROOT = "/var/lib/docker"


def find(
    client: DockerClient | None, data_root: str = DEFAULT_DATA_ROOT, root: str = "/"
) -> dict[str, list[str]]:
    """The names of containers by runtime; ``client`` is None for an engine that does not run.

    The engine's own files are read first: an answer about a container waits for as long as
    something is done to it. Raises EngineError and EngineUnreachableError.
    """
    files = container_files.read(os.path.join(root, data_root.lstrip("/")))
    known = {one.identity: (one.name, one.runtime) for one in files}
    if client is not None:
        for listed in client.containers():
            identity = str(listed["Id"])
            if identity not in known:
                runtime = _asked(client, identity)
                if runtime is not None:
                    known[identity] = (_name(listed.get("Names") or [identity[:12]]), runtime)
    found: dict[str, list[str]] = {}
    for name, runtime in sorted(known.values()):
        found.setdefault(runtime, []).append(name)
    return found


def data_root(
    info: Mapping[str, Any], flags: Mapping[str, str], path: str | None = None, root: str = "/"
) -> str:
    """Where the engine keeps its containers: by its own word, its unit's flags, or its file.

    ``path`` is that of the file, if it is not the one that the unit's flags name.
    """
    if info.get("DockerRootDir"):
        return str(info["DockerRootDir"])
    path = path or flags.get("--config-file", CONFIG_PATH)
    try:
        config = document(read_text(os.path.join(root, path.lstrip("/"))))
    except (JsonTextError, OSError):
        config = {}
    by_flag = flags.get("--data-root") or flags.get("--graph")
    return str(by_flag or config.get("data-root") or config.get("graph") or DEFAULT_DATA_ROOT)


def _asked(client: DockerClient, identity: str) -> str | None:
    try:
        return str((client.inspect(identity).get("HostConfig") or {}).get("Runtime") or "")
    except EngineError as error:
        if error.status == 404:  # It was removed in the meantime.
            return None
        raise


def _name(names: Sequence[str]) -> str:
    return str(names[0]).lstrip("/")
