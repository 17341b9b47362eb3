# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""JSON with places: every value knows its line and column. Pure.

The standard library's parser forgets where things stand; reading JSON as YAML to learn it is
slow and accepts what JSON does not.
"""

from __future__ import annotations

import re
from json.decoder import JSONDecodeError, scanstring  # type: ignore[attr-defined]

from .node import Key, Node, TreeError
from .places import LIMIT_DEPTH, Places, check_size, whole

_BLANK = re.compile(r"[ \t\r\n]*")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")
_WORD = re.compile(r"[^\s,:\[\]{}\"]+")
_CONSTANTS = {"true": True, "false": False, "null": None}
# Python refuses to convert longer ones; no configuration holds them.
_DIGITS = 400


def parse(text: str) -> Node:
    """The one value in ``text``. Raises TreeError with the place of what is not JSON.

    A key that appears twice in one object is an error too: readers differ in which one they take.
    """
    check_size(text)
    if text.startswith("\ufeff"):
        raise TreeError("it begins with a byte order mark: save it as plain UTF-8", 1, 1)
    reader = _Reader(text)
    try:
        node, behind = reader.value(reader.blank(0), 0)
    except RecursionError as error:
        raise TreeError("it is nested too deeply") from error
    rest = reader.blank(behind)
    if rest < len(text):
        raise reader.places.error("something follows the end of the JSON value", rest)
    return node


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.places = Places(text)

    def blank(self, offset: int) -> int:
        match = _BLANK.match(self.text, offset)
        return match.end() if match else offset

    def value(self, offset: int, depth: int) -> tuple[Node, int]:
        """The value that begins at ``offset`` and the offset just behind it."""
        if depth > LIMIT_DEPTH:
            raise self.places.error(f"it is nested deeper than {LIMIT_DEPTH} levels", offset)
        first = self.text[offset : offset + 1]
        line, column = self.places.at(offset)
        if first == "{":
            return self._object(offset, depth)
        if first == "[":
            return self._array(offset, depth)
        if first == '"':
            word, behind = self._string(offset)
            return Node(word, line, column, word), behind
        number = _NUMBER.match(self.text, offset)
        if number:
            return self._number(number)
        word = self._word(offset)
        if word in _CONSTANTS:
            return Node(_CONSTANTS[word], line, column, word), offset + len(word)
        raise self._not_a_value(offset, word)

    def _word(self, offset: int) -> str:
        match = _WORD.match(self.text, offset)
        return match.group() if match else ""

    def _not_a_value(self, offset: int, word: str) -> TreeError:
        if not self.text[offset : offset + 1]:
            said = "the text ends where a value is wanted"
        elif word.startswith(("//", "/*", "#")):
            said = "JSON has no comments"
        elif word.startswith("'"):
            said = 'JSON wants double quotes ", not single ones'
        elif word.lower() in _CONSTANTS:
            said = f"{word} is not JSON: wanted is {word.lower()}"
        else:
            said = f"{(word or self.text[offset])[:40]!r} is not a JSON value"
        return self.places.error(said, offset)

    def _string(self, offset: int) -> tuple[str, int]:
        try:
            word, behind = scanstring(self.text, offset + 1, True)
        except JSONDecodeError as error:
            raise self.places.error(error.msg, min(error.pos, len(self.text))) from error
        return whole(word), behind

    def _number(self, match: re.Match[str]) -> tuple[Node, int]:
        written = match.group()
        if len(written) > _DIGITS:
            raise self.places.error("a number of more than 400 digits", match.start())
        fraction = match.group(1) or match.group(2)
        value = float(written) if fraction else int(written)
        tail = self._word(match.end())
        if tail:
            raise self.places.error(f"{(written + tail)[:40]!r} is not a number", match.start())
        return Node(value, *self.places.at(match.start()), written), match.end()

    def _array(self, start: int, depth: int) -> tuple[Node, int]:
        inside: list[Node] = []
        offset = self.blank(start + 1)
        if self.text[offset : offset + 1] == "]":
            return Node(inside, *self.places.at(start)), offset + 1
        while True:
            node, behind = self.value(offset, depth + 1)
            inside.append(node)
            more, offset = self._separator(behind, "]", start)
            if not more:
                return Node(inside, *self.places.at(start)), offset
            if self.text[offset : offset + 1] == "]":
                raise self.places.error("a comma before the closing ]", offset)

    def _object(self, start: int, depth: int) -> tuple[Node, int]:
        inside: dict[str, Node] = {}
        keys: dict[str, Key] = {}
        offset = self.blank(start + 1)
        if self.text[offset : offset + 1] == "}":
            return Node(inside, *self.places.at(start), "", keys), offset + 1
        while True:
            name, colon = self._key(offset)
            if name in inside:
                raise self.places.error(f"the key {name!r} appears twice in one object", offset)
            keys[name] = Key(name, *self.places.at(offset))
            inside[name], behind = self.value(self.blank(colon + 1), depth + 1)
            more, offset = self._separator(behind, "}", start)
            if not more:
                return Node(inside, *self.places.at(start), "", keys), offset
            if self.text[offset : offset + 1] == "}":
                raise self.places.error("a comma before the closing }", offset)

    def _key(self, offset: int) -> tuple[str, int]:
        """The key at ``offset`` and the offset of the colon behind it."""
        if self.text[offset : offset + 1] != '"':
            here = self._word(offset) or self.text[offset : offset + 1]
            if here.startswith(("//", "/*", "#")):
                raise self.places.error("JSON has no comments", offset)
            raise self.places.error(f"wanted is a key in double quotes, not {here[:40]!r}", offset)
        name, behind = self._string(offset)
        colon = self.blank(behind)
        if self.text[colon : colon + 1] != ":":
            raise self.places.error(f"wanted is : behind the key {name!r}", colon)
        return name, colon

    def _separator(self, offset: int, closing: str, start: int) -> tuple[bool, int]:
        """Does another member follow? With the offset where it, or what is outside, begins."""
        here = self.blank(offset)
        mark = self.text[here : here + 1]
        if mark == closing:
            return False, here + 1
        if mark == ",":
            return True, self.blank(here + 1)
        line, _column = self.places.at(start)
        if not mark:
            said = f"the text ends before the {closing} for line {line}"
        else:
            said = f"wanted is , or {closing}, not {mark!r}"
        raise self.places.error(said, here)
