# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which files a container has changed against its image: names only, for those who ask for it.

A container asks with the label ``steadygpu.checkpoint=files``. It gets a list of names and nothing
else: no content, no memory, no state of the GPU, no volumes and no mounts. Nothing of it can be
brought back; it tells what a job left in its file system. Reading it walks that file system, so
nobody gets it unasked.
"""

from __future__ import annotations

import json
import posixpath
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ...engine.docker_api import DockerClient
from ...process import run
from ..model import RollbackError

LABEL = "steadygpu.checkpoint"
VALUE = "files"
MOST_NAMES = 10_000

# GET /containers/{id}/changes: Kind.
_DOCKER_KINDS = {0: "C", 1: "A", 2: "D"}
# A layer tells of a removed file by an empty one (image-spec, layer.md, "Whiteouts").
_WHITEOUT = ".wh."
_OPAQUE = ".wh..wh..opq"

# The diff itself is a stream that may have gigabytes: tar reads it and keeps the names. Of a ctr
# that fails tar gets no archive, and fails too.
_LIST = (
    'ctr -n "$1" snapshots --snapshotter "$2" diff --media-type "$3" "$4" |'
    " tar -t --quoting-style=escape -f -"
)
_MEDIA_TYPE = "application/vnd.oci.image.layer.v1.tar"


def asks(labels: Mapping[str, str]) -> bool:
    """Does a container with these labels ask for the list?"""
    return labels.get(LABEL) == VALUE


def of_docker(client: DockerClient, container: str) -> list[str]:
    """``A /new``, ``C /changed`` and ``D /removed`` of a Docker container, by path.

    Raises EngineError and EngineUnreachableError.
    """
    return capped(from_docker(client.changes(container)))


def from_docker(changes: Sequence[Mapping[str, Any]]) -> list[str]:
    """The engine's answer without the directories above a change. Pure.

    The engine does not tell a new, empty directory from a new file: it is listed.
    """
    found = {str(one["Path"]): _DOCKER_KINDS.get(one.get("Kind", -1), "C") for one in changes}
    above = {parent for path in found for parent in _parents(path)}
    return [f"{found[path]} {path}" for path in sorted(found) if path not in above]


def asking(namespace: str, deadline_s: float) -> list[str]:
    """The ids of containers in one of containerd's namespaces that ask for the list.

    Raises RollbackError when containerd does not answer, CommandMissingError without ``ctr``.
    """
    condition = f'labels."{LABEL}"=={VALUE}'
    return _ctr(["-n", namespace, "containers", "list", "-q", condition], deadline_s).split()


def of_containerd(namespace: str, container: str, deadline_s: float) -> list[str]:
    """``C /new-or-changed`` and ``D /removed`` of a container of containerd, by path.

    A layer does not tell what is new from what was changed. Raises RollbackError when containerd
    does not answer, CommandMissingError without ``ctr``.
    """
    told = _ctr(["-n", namespace, "containers", "info", container], deadline_s)
    try:
        info = json.loads(told)
        snapshotter, key = str(info["Snapshotter"]), str(info["SnapshotKey"])
    except (ValueError, KeyError, TypeError) as error:
        raise RollbackError(
            f"ctr containers info {container}: not what was expected ({error}); wanted "
            "Snapshotter and SnapshotKey"
        ) from error
    if not key:
        raise RollbackError(
            f"container {container} has no snapshot: its files are not containerd's"
        )
    argv = ["sh", "-c", _LIST, "sh", namespace, snapshotter, _MEDIA_TYPE, key]
    # In the plain C locale tar writes every letter beyond ASCII as a number.
    done = run(argv, deadline_s, env={"LC_ALL": "C.UTF-8"})
    if not done.ok:
        raise RollbackError(f"the changed files of container {container}: {done.said}")
    return capped(from_layer(done.stdout.rstrip("\n").split("\n")))


def from_layer(members: Iterable[str]) -> list[str]:
    """The names of a layer's archive as ``tar -t`` prints them. Pure."""
    found = {}
    for member in filter(None, members):
        path = posixpath.normpath("/" + member.lstrip("/"))
        directory, name = posixpath.split(path)
        if name == _OPAQUE:
            found[directory] = "D"  # all that was in it
        elif name.startswith(_WHITEOUT):
            found[posixpath.join(directory, name[len(_WHITEOUT) :])] = "D"
        elif not member.endswith("/"):
            found[path] = "C"
    return [f"{found[path]} {path}" for path in sorted(found)]


def capped(names: Sequence[str]) -> list[str]:
    """At most :data:`MOST_NAMES`, and how many more there are."""
    rest = len(names) - MOST_NAMES
    return [*names[:MOST_NAMES], f"… and {rest} more"] if rest > 0 else list(names)


def _parents(path: str) -> Iterable[str]:
    while len(path) > 1:
        path = posixpath.dirname(path)
        yield path


def _ctr(arguments: Sequence[str], deadline_s: float) -> str:
    done = run(["ctr", *arguments], deadline_s)
    if not done.ok:
        raise RollbackError(f"ctr {' '.join(arguments)}: {done.said}. Does containerd run?")
    return done.stdout
