# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Other specifications that name the same devices.

In one directory such a device belongs to neither: an engine does not resolve it, and ``nvidia-ctk
cdi list`` leaves it out with success. In two directories the later one wins (CDI,
pkg/cdi/cache.go).
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass

from .. import vouched
from ..atomic import read_text
from ..engine import cdi
from ..engine.cdi import Spec


@dataclass(frozen=True)
class Twins:
    """What is beside a specification.

    ``ours`` are files of the same directory that this collection wrote and can take away;
    ``foreign`` says in words which file of somebody else is in the way; ``warnings`` tell of other
    directories.
    """

    ours: tuple[str, ...] = ()
    foreign: str | None = None
    warnings: tuple[str, ...] = ()


def find(
    path: str,
    kind: str,
    devices: Sequence[str],
    directories: Sequence[str] = cdi.DEFAULT_DIRECTORIES,
    root: str = "/",
) -> Twins:
    """Who else names these devices of this kind. ``directories`` in the order of the engine."""
    here = os.path.dirname(path)
    is_read = _index(here, directories, root) >= 0
    places = [*directories] if is_read else [*directories, here]
    own = _real(path, root)
    others = [
        (spec, shared)
        for spec in cdi.read_specs(places, root)
        if spec.kind == kind and _real(spec.path, root) != own
        for shared in [[name for name in spec.devices if name in devices]]
        if shared
    ]
    beside = [one for one in others if _is_same(os.path.dirname(one[0].path), here, root)]
    ours = [spec.path for spec, _shared in beside if _is_ours(spec.path, root)]
    foreign = [one for one in beside if one[0].path not in ours]
    unread = f"{path}: engines look in {', '.join(directories)} and not there"
    warnings = [] if is_read else [unread]
    warnings += [
        text
        for spec, shared in others
        if (spec, shared) not in beside
        for text in _of_another(path, spec, shared, places, root)
    ]
    return Twins(tuple(ours), _words(path, kind, foreign), tuple(warnings))


def _words(path: str, kind: str, foreign: Sequence[tuple[Spec, list[str]]]) -> str | None:
    if not foreign:
        return None
    spec, shared = foreign[0]
    return (
        f"{spec.path} names {kind}={shared[0]}"
        + (f" and {len(shared) - 1} more devices" if len(shared) > 1 else "")
        + f" that {path} names too: an engine then gives neither, and nvidia-ctk cdi list hides "
        f"them with success. {spec.path} is not of this collection and was left alone; if nobody "
        f"needs it: mv {spec.path} {spec.path}.off"
    )


def _of_another(
    path: str, spec: Spec, shared: Sequence[str], places: Sequence[str], root: str
) -> list[str]:
    mine = _index(os.path.dirname(path), places, root)
    other = _index(os.path.dirname(spec.path), places, root)
    if other > mine:
        return [
            f"engines take {spec.kind}={shared[0]} from {spec.path}, whose directory comes after "
            f"that of {path}"
        ]
    left = [name for name in spec.devices if name not in shared]
    if not left:
        return []
    return [
        f"{spec.path} also names {spec.kind}={left[0]}, which {path} does not: a container that "
        f"asks for it gets what that file says. If nobody needs it: mv {spec.path} {spec.path}.off"
    ]


def _is_ours(path: str, root: str) -> bool:
    """Does it hold what this collection was the last to write there?"""
    text = read_text(os.path.join(root, path.lstrip("/")))
    if text is None:
        return False
    digest = hashlib.sha256(text.encode("utf-8")).hexdigest()
    said = vouched.since(0, root)
    return any(said.get(name, [None])[-1] == digest for name in (path, _real(path, root)))


def _index(directory: str, places: Sequence[str], root: str) -> int:
    same = [place for place, one in enumerate(places) if _is_same(one, directory, root)]
    return same[-1] if same else -1


def _is_same(one: str, other: str, root: str) -> bool:
    return _real(one, root) == _real(other, root)


def _real(path: str, root: str) -> str:
    """The path as the host sees it, without links. /var/run is one to /run everywhere."""
    if path == "/var/run" or path.startswith("/var/run/"):
        path = path[len("/var") :]
    prefix = os.path.realpath(root).rstrip("/")
    real = os.path.realpath(os.path.join(root, path.lstrip("/")))
    return real[len(prefix) :] if real.startswith(prefix + "/") else real
