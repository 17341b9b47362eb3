# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The leaves of nested objects, for whoever owns single keys of a file. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

Path = tuple[str, ...]


def flatten(value: Any, atoms: Sequence[Path] = (), prefix: Path = ()) -> list[tuple[Path, Any]]:
    """The leaves of nested objects with their paths, in order.

    An object whose path matches one of ``atoms`` (``*`` stands for any key) is a leaf.
    """
    if not isinstance(value, dict) or any(_matches(prefix, atom) for atom in atoms):
        return [(prefix, value)]
    leaves = []
    for key, child in value.items():
        leaves.extend(flatten(child, atoms, (*prefix, key)))
    return leaves


def _matches(path: Path, pattern: Path) -> bool:
    same_length = len(path) == len(pattern)
    return same_length and all(want in ("*", have) for have, want in zip(path, pattern))
