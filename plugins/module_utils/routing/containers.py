# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read an engine's containers for an audit without waiting for one of them.

The list takes no container's lock and carries labels and image; runtime and user are in the
engine's own files, which root may read. Only what is not there is asked for by inspection, which
waits while something is done to a container: so many, and so long, and not more.
"""

from __future__ import annotations

import contextlib
import glob
import json
import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Callable

from ..atomic import read_text
from ..engine.docker_api import DockerClient, EngineError, EngineUnreachableError
from ..engine.runtime_users import DEFAULT_DATA_ROOT
from . import images
from .audit import Container

# Inspections of one reading; a host of scientists has hundreds of stopped containers.
MOST_INSPECTIONS = 200
_ONE_S = 3.0
# An engine that remaps user ids keeps its data one level down, in ``100000.100000``.
_DIRECTORIES = ("containers", "*.*/containers")


@dataclass(frozen=True)
class Seen:
    """What an engine said: its containers and runtimes, which of them is the default.

    ``unread`` says why the runtime of some containers is not known ("": it is of all).
    """

    containers: tuple[Container, ...] = ()
    runtimes: frozenset[str] = frozenset()
    default_runtime: str = "runc"
    unread: str = ""


@dataclass
class Memory:
    """What never changes in a container's life, by id, for who reads an engine again and again."""

    known: dict[str, tuple[str, str, str]] = field(default_factory=dict)


def read(
    client: DockerClient,
    deadline_s: float = 10.0,
    memory: Memory | None = None,
    root: str = "/",
    clock: Callable[[], float] = time.monotonic,
) -> Seen:
    """All containers of an engine, running or not.

    ``deadline_s`` is for all inspections together. Raises EngineError and EngineUnreachableError
    when the engine does not answer to the list.
    """
    memory = memory or Memory()
    info = client.info()
    listed = client.containers()
    base = str(info.get("DockerRootDir") or DEFAULT_DATA_ROOT)
    ids = {str(one["Id"]) for one in listed}
    for gone in set(memory.known) - ids:
        del memory.known[gone]
    if ids - set(memory.known):
        wanted = ids - set(memory.known)
        memory.known.update(_on_disk(os.path.join(root, base.lstrip("/")), wanted))
    unread = _ask(client, sorted(ids - set(memory.known)), memory, deadline_s, clock)
    found = [_container(one, memory.known.get(str(one["Id"]))) for one in listed]
    return Seen(
        containers=tuple(_with_names(client, found)),
        runtimes=frozenset(info.get("Runtimes") or {}),
        default_runtime=str(info.get("DefaultRuntime") or "runc"),
        unread=unread,
    )


def _container(listed: Mapping[str, Any], known: tuple[str, str, str] | None) -> Container:
    names = listed.get("Names") or [str(listed["Id"])[:12]]
    # The list shows an id where the name of the image has moved on; the container remembers it.
    image = str(listed.get("Image") or "")
    image_id = str(listed.get("ImageID") or "")
    if known is not None and known[2] and images.is_id(image, image_id):
        image = known[2]
    return Container(
        id=str(listed["Id"]),
        name=str(names[0]).lstrip("/"),
        image=image,
        running=listed.get("State") in ("running", "paused", "restarting"),
        labels={str(k): str(v) for k, v in (listed.get("Labels") or {}).items()},
        runtime=None if known is None else known[0],
        user=None if known is None else known[1],
        image_id=image_id,
    )


def _on_disk(data_root: str, wanted: set[str]) -> dict[str, tuple[str, str, str]]:
    """Runtime, user and image as written, by container id, of those that the files tell."""
    found = {}
    for directory in _DIRECTORIES:
        pattern = os.path.join(glob.escape(data_root), directory, "*/hostconfig.json")
        for path in glob.glob(pattern):
            identity = os.path.basename(os.path.dirname(path))
            if identity in wanted:
                host = _object(path)
                whole = _object(os.path.join(os.path.dirname(path), "config.v2.json"))
                config = whole.get("Config")
                if host and isinstance(config, dict):
                    found[identity] = _known(host, config)
    return found


def _known(host: Mapping[str, Any], config: Mapping[str, Any]) -> tuple[str, str, str]:
    return (
        str(host.get("Runtime") or ""),
        str(config.get("User") or ""),
        str(config.get("Image") or ""),
    )


def _object(path: str) -> dict[str, Any]:
    try:
        value = json.loads(read_text(path) or "{}")
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}


def _ask(
    client: DockerClient,
    identities: list[str],
    memory: Memory,
    deadline_s: float,
    clock: Callable[[], float],
) -> str:
    """Inspect what is not known yet, as far as time goes; why some are left, "" for none."""
    end = clock() + deadline_s
    usual = client.deadline_s
    left = 0
    try:
        for number, identity in enumerate(identities):
            remaining = end - clock()
            if number >= MOST_INSPECTIONS or remaining <= 0:
                left += len(identities) - number
                break
            client.deadline_s = min(_ONE_S, remaining)
            try:
                answer = client.inspect(identity)
            except EngineUnreachableError:
                left += 1  # Something is being done to it: the next one may answer.
                continue
            except EngineError as error:
                if error.status != 404:  # 404: it was removed in the meantime
                    left += 1
                continue
            memory.known[identity] = _known(
                answer.get("HostConfig") or {}, answer.get("Config") or {}
            )
    finally:
        client.deadline_s = usual
    if not left:
        return ""
    return (
        f"{left} of {len(identities)} inspections were not answered within {deadline_s:g} s; as "
        "root the engine's own files are read instead"
    )


def _with_names(client: DockerClient, found: list[Container]) -> Iterable[Container]:
    """The containers, with names for those images of which only the id is known."""
    if not any(images.is_id(one.image, one.image_id) for one in found):
        return found
    names: dict[str, tuple[str, ...]] = {}
    with contextlib.suppress(EngineError, EngineUnreachableError):
        for image in client.images():
            told = [*(image.get("RepoTags") or []), *(image.get("RepoDigests") or [])]
            names[str(image.get("Id"))] = tuple(one for one in told if "<none>" not in one)
    return [
        replace(one, image_names=names.get(one.image_id, ()))
        if images.is_id(one.image, one.image_id)
        else one
        for one in found
    ]
