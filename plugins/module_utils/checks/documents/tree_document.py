# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A configuration file that is one tree of values: what the models of such files share. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from ...trees.node import Node, TreeError
from ..model import Position, Problem


@dataclass(frozen=True)
class Broken:
    """Why a file could not be read, and where."""

    at: Position
    said: str


def broken(error: TreeError, file: str) -> Broken:
    """The place and the words of a reader's error."""
    return Broken(Position(file, error.line, error.column), error.said)


# What stands where a reader of an article puts in something of his own.
_PLACEHOLDER = re.compile(
    r"^\s*(#\s*)?\.{3,}|\{\s*\.{3}\s*\}|\[\s*\.{3}\s*\]|…|[=:]\s*<[\w |/-]+>|\{\{|\{%"
)


def cut_short(text: str, error: TreeError, file: str) -> Problem | None:
    """Says that a text is a template or an excerpt, where that is why it cannot be read."""
    lines = text.split("\n")
    around = lines[max(error.line - 2, 0) : error.line]
    if any(_PLACEHOLDER.search(line) for line in around):
        said = f"a template or an excerpt, which cannot be read: {error.said}"
        return Problem(Position(file, error.line, error.column), said)
    return None


@dataclass(frozen=True)
class TreeDocument:
    """A file and its values. ``broken`` is set, and ``root`` empty, where it cannot be read.

    ``text`` is the whole text, for rules about what a parser drops (comments).
    """

    at: Position
    root: Node
    text: str = ""
    broken: Broken | None = None

    def get(self, *path: str | int) -> Node | None:
        """The node below the given keys and list places; None where there is none."""
        return self.root.get(*path)

    def value(self, *path: str | int) -> Any:
        """The plain value there; None where there is none."""
        node = self.root.get(*path)
        return None if node is None else node.plain()

    def place(self, node: Node) -> Position:
        """Where a value stands."""
        return Position(self.at.file, node.line, node.column)

    def key_place(self, *path: str | int) -> Position:
        """Where the last key of a path stands; its value's place for an element of a list."""
        parent = self.root.get(*path[:-1]) if path else None
        key = parent.keys.get(str(path[-1])) if parent is not None else None
        if key is not None:
            return Position(self.at.file, key.line, key.column)
        node = self.root.get(*path)
        return self.at if node is None else self.place(node)


NOTHING = Node({}, 1, 1)
