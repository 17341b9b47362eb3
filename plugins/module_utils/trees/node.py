# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A value and where it stands: what the readers of JSON, TOML and YAML give. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any


class TreeError(ValueError):
    """The text is not what it should be; ``line`` and ``column`` count from 1 (0: unknown)."""

    def __init__(self, said: str, line: int = 0, column: int = 0) -> None:
        super().__init__(said)
        self.said = said
        self.line = line
        self.column = column


@dataclass(frozen=True)
class Key:
    """A key of a mapping and where it stands."""

    name: str
    line: int
    column: int


@dataclass(frozen=True)
class Node:
    """One value of a document.

    ``value`` is text, number, truth value or None, a ``dict[str, Node]`` or a ``list[Node]``.
    ``line`` and ``column`` count from 1 and are those of the value's first character.
    ``text`` is a scalar as it is written, without quotes: what a reader needs to tell ``1e3``
    from ``1000``. ``keys`` has, for a mapping, the place of each key.
    """

    value: Any
    line: int
    column: int
    text: str = ""
    keys: dict[str, Key] = field(default_factory=dict)

    @property
    def is_map(self) -> bool:
        """Is it a mapping?"""
        return isinstance(self.value, dict)

    @property
    def is_list(self) -> bool:
        """Is it a list?"""
        return isinstance(self.value, list)

    def get(self, *path: str | int) -> Node | None:
        """The node below the given keys and list places; None where one of them is not there."""
        node: Node | None = self
        for step in path:
            if node is None:
                return None
            if isinstance(step, int):
                inside = node.value if node.is_list else []
                node = inside[step] if -len(inside) <= step < len(inside) else None
            else:
                node = node.value.get(step) if node.is_map else None
        return node

    def items(self) -> Iterator[tuple[Key, Node]]:
        """The members of a mapping with their keys' places, in order; nothing for others."""
        if self.is_map:
            for name, node in self.value.items():
                yield self.keys.get(name, Key(name, node.line, node.column)), node

    def elements(self) -> list[Node]:
        """The elements of a list; [] for anything else."""
        return list(self.value) if self.is_list else []

    def words(self) -> str:
        """A scalar as text: as it is written for numbers and truth values, else its value."""
        if isinstance(self.value, str):
            return self.value
        return "" if self.is_map or self.is_list or self.value is None else self.text

    def plain(self) -> Any:
        """The value without places, as ``json.loads`` would give it."""
        if self.is_map:
            return {name: node.plain() for name, node in self.value.items()}
        if self.is_list:
            return [node.plain() for node in self.value]
        return self.value
