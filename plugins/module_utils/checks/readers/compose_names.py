# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Networks, volumes, secrets and configs that a Compose file uses and does not define. Pure.

Asked only of a file that stands alone: one with a name that Compose looks for, without ``include``
and without an override beside it. Any other may be one of several.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator

from ...trees.node import Node
from ..documents.compose import ComposeFault
from ..model import Position

_ALONE = re.compile(r"(docker-)?compose\.ya?ml$")
# A name; a path begins with a point, a slash or a tilde, a Windows drive is one letter.
_NAME = re.compile(r"[a-zA-Z0-9][\w.-]+$")


def is_called_compose(file: str) -> bool:
    """Has it one of the names that Compose looks for?"""
    return bool(_ALONE.match(posixpath.basename(file)))


def stands_alone(file: str, root: Node, read_file: Callable[[str], str | None] | None) -> bool:
    """Is all that Compose reads in this one file, as far as can be seen?"""
    if not is_called_compose(file) or root.get("include") is not None:
        return False
    stem, _dot, ending = file.rpartition(".")
    overrides = (f"{stem}.override.{ending}", f"{stem}.override.yml", f"{stem}.override.yaml")
    return not read_file or all(read_file(path) is None for path in overrides)


def undefined(file: str, root: Node) -> Iterator[ComposeFault]:
    """A fault for every name that a service uses and the top level does not have."""
    services = root.get("services")
    for key, service in services.items() if services is not None else ():
        for kind, name, place in _used(service):
            defined = root.get(kind)
            known = {other.name for other, _node in defined.items()} if defined else set()
            if name not in known and not (kind == "networks" and name == "default"):
                seen = f"services.{key.name} uses {name}, and {kind}: does not have it."
                fix = f"Add to the end of the file: {kind}: {{{name}: {{}}}}."
                at = Position(file, place.line, place.column)
                # Without any of its kind the file may be one of several for -f.
                yield ComposeFault(at, "compose-undefined-name", seen, fix, mild=not known)


def _used(service: Node) -> Iterator[tuple[str, str, Node]]:
    if service.get("network_mode") is None:
        networks = service.get("networks")
        for key, _node in networks.items() if networks is not None else ():
            place = Node(None, key.line, key.column)
            yield from _named("networks", key.name, place)
    for kind in ("networks", "secrets", "configs"):
        found = service.get(kind)
        for element in found.elements() if found is not None else ():
            source = element.get("source") if element.is_map else element
            if source is not None and not source.is_map and not source.is_list:
                yield from _named(kind, source.words(), element)
    volumes = service.get("volumes")
    for element in volumes.elements() if volumes is not None else ():
        if element.is_map:
            how, source = element.get("type"), element.get("source")
            if how is not None and source is not None and how.words() == "volume":
                yield from _named("volumes", source.words(), element)
        elif not element.is_list and ":/" in element.words():
            yield from _named("volumes", element.words().partition(":")[0], element)


def _named(kind: str, name: str, place: Node) -> Iterator[tuple[str, str, Node]]:
    if _NAME.match(name) and not name.isupper():  # DATADIR stands for a path
        yield kind, name, place
