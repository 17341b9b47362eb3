# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""TOML 1.0 with places. Pure.

Python 3.9 has no TOML parser, and those there are forget where things stand. Dates and times are
given as text: no configuration that is read here has any.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from .node import Key, Node, TreeError
from .places import LIMIT_DEPTH, Places, check_size
from .toml_scalars import STRING_STARTS, read_scalar, read_string

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_BLANK = re.compile(r"[ \t]*")
# A comment may hold no control character but the tab.
_COMMENT = re.compile(r"#[^\x00-\x08\x0a-\x1f\x7f]*")
_NEWLINE = re.compile(r"\r?\n")

_Path = list[tuple[str, int]]  # the parts of a dotted key with their offsets


def parse(text: str) -> Node:
    """The table in ``text``. Raises TreeError with the place of what TOML 1.0 does not allow."""
    check_size(text)
    try:
        return Reader(text).document()
    except RecursionError as error:
        raise TreeError("it is nested too deeply") from error


@dataclass
class _Table:
    """A table and how it came to be: TOML allows to add to some and not to others.

    ``how`` is ``implied`` (only named by a longer header), ``header``, ``dotted`` or ``closed``
    (an inline table); ``below`` are the tables inside, the last one for an array of tables.
    """

    node: Node
    how: str
    below: dict[str, _Table] = field(default_factory=dict)
    arrays: set[str] = field(default_factory=set)


class Reader:
    """Reads one text. Who needs to know what stands where overrides the ``saw_`` methods."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.places = Places(text)
        self.offset = 0
        self.root = _Table(Node({}, 1, 1), "header")
        self.table = self.root

    def error(self, said: str, offset: int | None = None) -> TreeError:
        """A TreeError for the character at ``offset``, or the next one."""
        return self.places.error(said, self.offset if offset is None else offset)

    def saw_header(self, node: Node, names: tuple[str, ...], start: int) -> None:
        """A table's header begins at ``start`` and ends here."""

    def saw_pair(self, holder: Node, names: tuple[str, ...], start: int, value: Node) -> None:
        """A key begins at ``start``, its value ends here; ``holder`` is the table it is said in."""

    def saw_value(self, node: Node, start: int) -> None:
        """A value begins at ``start`` and ends here."""

    def document(self) -> Node:
        """The whole text as a table. Raises TreeError."""
        if self._here("\ufeff"):
            raise self.error("it begins with a byte order mark: save it as plain UTF-8")
        while True:
            self._skip_lines()
            if self.offset >= len(self.text):
                return self.root.node
            if self._here("["):
                self._header()
            else:
                self._pair(self.table, 0)
            self._line_ends()

    # Blanks and comments

    def _here(self, mark: str) -> bool:
        return self.text.startswith(mark, self.offset)

    def _take(self, pattern: re.Pattern[str]) -> bool:
        match = pattern.match(self.text, self.offset)
        if match is None or match.end() == self.offset:
            return False
        self.offset = match.end()
        return True

    def _skip_lines(self) -> None:
        while self._take(_BLANK) or self._take(_COMMENT) or self._take(_NEWLINE):
            pass

    def _line_ends(self) -> None:
        self._take(_BLANK)
        self._take(_COMMENT)
        if self.offset < len(self.text) and not self._take(_NEWLINE):
            found = self.text[self.offset : self.offset + 20].split("\n")[0]
            raise self.error(f"wanted is the end of the line, not {found!r}")

    # Keys and tables

    def _path(self) -> _Path:
        """A dotted key."""
        path: _Path = []
        while True:
            self._take(_BLANK)
            start = self.offset
            if self.text[start : start + 1] in STRING_STARTS:
                if self.text.startswith(('"""', "'''"), start):
                    raise self.error("a key cannot be a string of several lines")
                name, self.offset = read_string(self.text, start, self.places)
            elif self._take(_BARE):
                name = self.text[start : self.offset]
            else:
                found = self.text[start : start + 1] or "the end"
                raise self.error(f"wanted is a key, not {found!r}")
            path.append((name, start))
            if len(path) > LIMIT_DEPTH:
                raise self.error(f"a key of more than {LIMIT_DEPTH} parts")
            self._take(_BLANK)
            if not self._here("."):
                return path
            self.offset += 1

    def _header(self) -> None:
        start = self.offset
        mark = "[[" if self._here("[[") else "["
        self.offset += len(mark)
        path = self._path()
        closing = "]" * len(mark)
        if not self._here(closing):
            raise self.error(f"wanted is {closing} to close the name of the table")
        self.offset += len(closing)
        table = self.root
        for name, offset in path[:-1]:
            table = self._through(table, name, offset)
        name, offset = path[-1]
        if mark == "[[":
            self.table = self._one_more(table, name, offset, start)
        else:
            self.table = self._named(table, name, offset, start)
        self.saw_header(self.table.node, tuple(part for part, _offset in path), start)

    def _through(self, table: _Table, name: str, offset: int) -> _Table:
        """The table ``name`` that a header goes through; it comes to be where it is not there."""
        known = table.below.get(name)
        if known is None:
            if name in table.node.value:
                raise self._taken(table, name, offset)
            return self._add(table, name, offset, offset, "implied")
        if known.how == "closed":
            raise self.error(f"the inline table {name!r} cannot be added to", offset)
        return known

    def _named(self, table: _Table, name: str, offset: int, start: int) -> _Table:
        known = table.below.get(name)
        if known is None and name not in table.node.value:
            return self._add(table, name, offset, start, "header")
        if known is None or known.how != "implied" or name in table.arrays:
            raise self._taken(table, name, offset)
        known.how = "header"
        return known

    def _one_more(self, table: _Table, name: str, offset: int, start: int) -> _Table:
        """A further table of the array of tables ``name``."""
        if name in table.node.value and name not in table.arrays:
            raise self._taken(table, name, offset)
        line, column = self.places.at(start)
        if name not in table.node.value:
            table.node.value[name] = Node([], line, column)
            table.node.keys[name] = Key(name, *self.places.at(offset))
            table.arrays.add(name)
        one = _Table(Node({}, line, column), "header")
        table.node.value[name].value.append(one.node)
        table.below[name] = one
        return one

    def _add(self, table: _Table, name: str, offset: int, start: int, how: str) -> _Table:
        below = _Table(Node({}, *self.places.at(start)), how)
        table.node.value[name] = below.node
        table.node.keys[name] = Key(name, *self.places.at(offset))
        table.below[name] = below
        return below

    def _taken(self, table: _Table, name: str, offset: int) -> TreeError:
        first = table.node.keys[name].line
        return self.error(f"{name!r} is there already, from line {first}", offset)

    # Pairs and values

    def _pair(self, table: _Table, depth: int) -> None:
        holder = table.node
        path = self._path()
        if not self._here("="):
            raise self.error(f"wanted is = behind the key {path[-1][0]!r}")
        self.offset += 1
        for name, offset in path[:-1]:
            known = table.below.get(name)
            if known is None and name not in table.node.value:
                table = self._add(table, name, offset, offset, "dotted")
            elif known is None or known.how != "dotted":
                raise self._taken(table, name, offset)
            else:
                table = known
        name, offset = path[-1]
        if name in table.node.value:
            raise self._taken(table, name, offset)
        self._take(_BLANK)
        value = self._value(depth + len(path))
        table.node.value[name] = value
        table.node.keys[name] = Key(name, *self.places.at(offset))
        if value.is_map:
            table.below[name] = _Table(value, "closed")
        self.saw_pair(holder, tuple(part for part, _offset in path), path[0][1], value)

    def _value(self, depth: int) -> Node:
        if depth > LIMIT_DEPTH:
            raise self.error(f"it is nested deeper than {LIMIT_DEPTH} levels")
        start = self.offset
        if self._here("["):
            node = self._array(depth)
        elif self._here("{"):
            node = self._inline(depth)
        else:
            node, self.offset = read_scalar(self.text, start, self.places)
        self.saw_value(node, start)
        return node

    def _array(self, depth: int) -> Node:
        start = self.offset
        inside: list[Node] = []
        self.offset += 1
        while True:
            self._skip_lines()
            if self._here("]"):
                break
            inside.append(self._value(depth + 1))
            self._skip_lines()
            if self._here(","):
                self.offset += 1
            elif not self._here("]"):
                raise self._unclosed("]", start)
        self.offset += 1
        return Node(inside, *self.places.at(start))

    def _inline(self, depth: int) -> Node:
        start = self.offset
        table = _Table(Node({}, *self.places.at(start)), "dotted")
        self.offset += 1
        self._take(_BLANK)
        while not self._here("}"):
            self._pair(table, depth + 1)
            self._take(_BLANK)
            if self._here(","):
                self.offset += 1
                self._take(_BLANK)
                if self._here("}"):
                    raise self.error("an inline table may not end with a comma")
            elif not self._here("}"):
                raise self._unclosed("}", start)
        self.offset += 1
        return table.node

    def _unclosed(self, closing: str, start: int) -> TreeError:
        found = self.text[self.offset : self.offset + 1] or "the end"
        line, _column = self.places.at(start)
        return self.error(f"wanted is , or {closing} for line {line}, not {found!r}")
