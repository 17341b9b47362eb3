# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Names of images, and the patterns that are written for them. Pure.

Docker shows an image as the user wrote it. So both sides are brought to the full name, with
registry and tag, before they are compared (distribution reference: the rules of ``docker pull``).
"""

from __future__ import annotations

import re

_HUB = "docker.io/"
_OFFICIAL = "library/"
_ID = re.compile(r"(?:sha256:)?[0-9a-f]{64}")
_SHORT_ID = re.compile(r"[0-9a-f]{4,63}")


def is_id(image: str, image_id: str = "") -> bool:
    """Is it the id of an image, or the beginning of its id ``image_id``, and no name?"""
    if _ID.fullmatch(image):
        return True
    return bool(_SHORT_ID.fullmatch(image)) and image_id.partition(":")[2].startswith(image)


def full_names(image: str) -> tuple[str, ...]:
    """``nginx`` as ``docker.io/library/nginx:latest``; with tag and digest, one name for each."""
    name, _at, digest = image.partition("@")
    name, tag = _tagged(name)
    first, slash, _rest = name.partition("/")
    if not slash:
        name = _HUB + _OFFICIAL + name
    elif not _is_registry(first):
        name = _HUB + name
    found = (f"{name}:{tag}",) if tag else ()
    if digest:
        return (*found, f"{name}@{digest}")
    return found or (f"{name}:latest",)


def full_patterns(pattern: str) -> tuple[str, ...]:
    """The patterns on full names that a pattern stands for; without a tag it means every tag."""
    name, tag = _tagged(pattern.partition("@")[0])
    first, slash, _rest = name.partition("/")
    if _is_registry(first) and slash:
        named = [pattern]
    elif slash:
        # A star in the first part may stand for a registry.
        named = [pattern, _HUB + pattern] if "*" in first else [_HUB + pattern]
    elif "*" in first:
        named = [pattern, _HUB + pattern, _HUB + _OFFICIAL + pattern]
    else:
        named = [_HUB + _OFFICIAL + pattern]
    if "@" in pattern or tag or pattern.endswith("*"):
        return tuple(named)
    return tuple(one + end for one in named for end in (":*", "@*"))


def _tagged(name: str) -> tuple[str, str]:
    """The name and its tag, "" for none; a port of a registry is no tag."""
    head, colon, tag = name.rpartition(":")
    return (head, tag) if colon and "/" not in tag else (name, "")


def _is_registry(first: str) -> bool:
    return "." in first or ":" in first or first == "localhost"
