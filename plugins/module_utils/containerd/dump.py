# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What ``containerd config dump`` says, compared: is what we want there, and is nothing lost? Pure.

The dump is containerd's own view of all its files together. It is in the newest version that the
program knows, whatever the files are in: 2 for 1.x, 3 for 2.0 to 2.2, 4 from 2.3 on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ..trees.leaves import Path, flatten
from .names import ADDED_UP, Leaves, named

# What the files are called differs between a trial and the host, and is no setting.
_ASIDE = ("imports", "version")


@dataclass(frozen=True)
class Dump:
    """One dump: ``leaves`` in the names of ``version``."""

    version: int
    leaves: Leaves
    imports: tuple[str, ...] = ()

    def value(self, path: Path) -> Any:
        """What it has for a path in the names of version 3; None for nothing."""
        return self.leaves.get(named(path, self.version))

    def disabled(self) -> frozenset[str]:
        """The plugins that are switched off, by the names that the files have for them."""
        names = self.leaves.get(("disabled_plugins",))
        return frozenset(map(str, names)) if isinstance(names, list) else frozenset()

    def has(self, path: Path, value: Any) -> bool:
        """Does it say ``value`` at a path in the names of version 3?"""
        seen = self.value(path)
        if path in ADDED_UP:
            return isinstance(seen, list) and all(one in seen for one in value)
        return same(seen, value)


def read_dump(config: Mapping[str, Any]) -> Dump:
    """A dump that was parsed."""
    version = config.get("version")
    leaves = {
        path: value for path, value in flatten(dict(config)) if path and path[0] not in _ASIDE
    }
    imports = config.get("imports")
    return Dump(
        version if isinstance(version, int) else 1,
        leaves,
        tuple(map(str, imports)) if isinstance(imports, list) else (),
    )


@dataclass(frozen=True)
class Difference:
    """What two dumps do not have in common, apart from what was wanted.

    ``lost`` are paths whose value is gone or another one, ``new`` those that only the second has;
    both in the names of the dumps.
    """

    lost: tuple[Path, ...]
    new: tuple[Path, ...]


def compare(before: Dump, after: Dump, wanted: Iterable[Path]) -> Difference:
    """``wanted`` are paths in the names of version 3: they may differ.

    So may what containerd fills up in a table that comes to be with them, such as the defaults of
    a new runtime.
    """
    ours = {named(path, after.version) for path in wanted}
    off = after.disabled() if ("disabled_plugins",) in ours else frozenset()
    tables = {path[:depth] for path in before.leaves for depth in range(1, len(path) + 1)}
    made = {
        path[:depth] for path in ours for depth in range(1, len(path)) if path[:depth] not in tables
    }
    lost, new = [], []
    for path, value in before.leaves.items():
        if path[0] == "plugins" and path[1] in off:
            continue  # what is switched off is not shown
        if path in ADDED_UP and path in ours:
            kept = after.leaves.get(path) or []
            if not all(one in kept for one in value):
                lost.append(path)
        if path in ours or (_is_empty(value) and any(path == one[: len(path)] for one in ours)):
            continue
        seen = after.leaves.get(path)
        if not ((_is_empty(value) and seen is None) or same(seen, value)):
            lost.append(path)
    for path, value in after.leaves.items():
        inside = any(path[:depth] in made for depth in range(1, len(path) + 1))
        if path not in before.leaves and path not in ours and not inside and not _is_empty(value):
            new.append(path)
    return Difference(tuple(lost), tuple(new))


def _is_empty(value: Any) -> bool:
    return isinstance(value, dict) and not value


def same(one: Any, other: Any) -> bool:
    """Equal as TOML: 1 is not true."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)
