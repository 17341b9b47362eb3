# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Looking into facts and evidence, where any part may be missing or of another type. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_NOTHING: Mapping[str, Any] = {}


def inside(tree: Any, *path: str) -> Any:
    """What lies at a path of keys; None where one of them is not there."""
    for step in path:
        tree = tree.get(step) if isinstance(tree, Mapping) else None
    return tree


def mapping(tree: Any, *path: str) -> Mapping[str, Any]:
    """The mapping at a path; an empty one where there is none."""
    found = inside(tree, *path)
    return found if isinstance(found, Mapping) else _NOTHING


def entries(tree: Any, *path: str) -> list[Mapping[str, Any]]:
    """The mappings in the list at a path."""
    return [entry for entry in values(tree, *path) if isinstance(entry, Mapping)]


def values(tree: Any, *path: str) -> list[Any]:
    """The list at a path; [] where there is none."""
    found = inside(tree, *path)
    return found if isinstance(found, list) else []


def words(tree: Any, *path: str) -> list[str]:
    """The texts in the list at a path."""
    return [entry for entry in values(tree, *path) if isinstance(entry, str)]


def text_at(evidence: Any, path: str) -> str | None:
    """The text of a file of the host; None where it was not read. /var/run is /run."""
    texts = mapping(evidence, "texts")
    found = texts.get(path, texts.get(path.removeprefix("/var")))
    return found if isinstance(found, str) else None
