# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""systemd units, slices and drop-ins, with the commands of their Exec lines. Pure."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from itertools import islice
from typing import Any

from ...trees.places import whole
from ..documents.commands import CommandLine
from ..documents.units import Setting, UnitFile
from ..model import Given, Position, Reading
from .shell import LIMIT_DOCUMENTS, documents_of
from .shell_parts import Word
from .shell_values import BUDGET

_SECTION = re.compile(r"\[([^\]]+)\]")
_EXEC = re.compile(r"Exec(Start|StartPre|StartPost|Reload|Stop|StopPost|Condition)$")
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
_VARIABLE = re.compile(r"\$(?:\{([A-Za-z_]\w*)\}|([A-Za-z_]\w*))")
_MOST_VARIABLES = 200
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "s": " ", "\\": "\\", '"': '"', "'": "'"}


class _Line:
    """A logical line, put together from the lines of the file that it goes over."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._starts: list[int] = []  # offsets in the whole where a piece begins
        self._places: list[tuple[int, int]] = []  # line and column of that piece in the file
        self._length = 0
        self._text: str | None = None

    def add(self, text: str, line: int, column: int) -> None:
        """One more line of the file; a blank parts it from the one before."""
        if self._pieces:
            self._pieces.append(" ")
            self._length += 1
        self._starts.append(self._length)
        self._places.append((line, column))
        self._pieces.append(text)
        self._length += len(text)
        self._text = None

    @property
    def text(self) -> str:
        """The whole."""
        if self._text is None:
            self._text = "".join(self._pieces)
        return self._text

    def at(self, offset: int) -> tuple[int, int]:
        """Line and column of the character at ``offset``."""
        place = max(bisect_right(self._starts, offset) - 1, 0)
        line, column = self._places[place]
        return line, column + offset - self._starts[place]


class _Variables:
    """The variables of Environment=, and how many characters may still be put in for them."""

    def __init__(self) -> None:
        self.values: dict[str, str] = {}
        self._budget = BUDGET

    def get(self, name: str) -> str | None:
        """The value of a variable, None when it is not known or too much has been put in."""
        value = self.values.get(name)
        self._budget -= len(value or "") + 1
        return value if self._budget >= 0 else None


def read_unit(text: str, file: str) -> Reading:
    """The unit in ``text`` as :class:`UnitFile`, and what its Exec lines run as in a script.

    Lines that systemd would ignore are ignored; nothing is a problem.
    """
    settings: list[Setting] = []
    documents: list[Any] = []
    env = _Variables()
    section = ""
    for line in _lines(whole(text)):
        header = _SECTION.match(line.text)
        if header:
            section = header.group(1)
            continue
        key, equals, value = line.text.partition("=")
        if not equals or not key.strip():
            continue
        name = key.strip()
        place = Position(file, *line.at(0))
        settings.append(Setting(section, name, value.strip(), place))
        begin = len(key) + 1
        if name == "Environment":
            for word in _words(line, begin, _Variables()):
                match = _ASSIGNMENT.match(word.value)
                if match:
                    env.values[match.group(1)] = match.group(2)
        elif _EXEC.match(name) and len(documents) < LIMIT_DOCUMENTS:
            documents.extend(_command(line, begin, file, env))
    commands = tuple(doc for doc in documents if isinstance(doc, CommandLine))
    unit = UnitFile(Position(file, 1, 1), tuple(settings), commands)
    return Reading((unit, *documents))


def _lines(text: str) -> Iterator[_Line]:
    """The logical lines: continued ones joined, comments left out, also those in between."""
    line = _Line()
    for number, row in enumerate(text.split("\n"), 1):
        row = row.rstrip("\r")
        stripped = row.lstrip()
        if stripped.startswith(("#", ";")):
            continue
        column = len(row) - len(stripped) + 1
        if row.endswith("\\"):
            line.add(stripped[:-1], number, column)
            continue
        line.add(stripped, number, column)
        if line.text.strip():
            yield line
        line = _Line()
    if line.text.strip():
        yield line


def _command(line: _Line, begin: int, file: str, env: _Variables) -> Iterator[Any]:
    text = line.text
    while begin < len(text) and text[begin] in "@-:+! \t":
        begin += 1
    words: list[Word] = []
    for word in [*_words(line, begin, env), None]:
        if word is not None and word.value != ";":
            words.append(word)
            continue
        if words:
            given = {
                name: Given(value, Position(file, words[0].line, words[0].column))
                for name, value in islice(env.values.items(), _MOST_VARIABLES)
            }
            yield from documents_of(words, file, given)
        words = []


def _words(line: _Line, begin: int, env: _Variables) -> list[Word]:
    """The words of a line as systemd takes them apart, its variables put in where known."""
    words: list[Word] = []
    text, offset = line.text, begin
    while True:
        while offset < len(text) and text[offset] in " \t":
            offset += 1
        if offset >= len(text):
            return words
        value, behind, bare = _word(text, offset)
        words.extend(_expanded(value, bare, line.at(offset), env))
        offset = behind


def _word(text: str, start: int) -> tuple[str, int, bool]:
    """The word at ``start`` without its quotes, where it ends, whether it had none."""
    parts: list[str] = []
    quote = ""
    offset = start
    bare = True
    while offset < len(text):
        mark = text[offset]
        if mark == "\\" and offset + 1 < len(text):
            parts.append(_ESCAPES.get(text[offset + 1], text[offset : offset + 2]))
            offset += 2
            continue
        if quote:
            if mark == quote:
                quote = ""
            else:
                parts.append(mark)
        elif mark in "'\"":
            quote, bare = mark, False
        elif mark in " \t":
            break
        else:
            parts.append(mark)
        offset += 1
    return "".join(parts).replace("%%", "%"), offset, bare


def _expanded(value: str, bare: bool, place: tuple[int, int], env: _Variables) -> Iterator[Word]:
    """``value`` with ``$NAME`` put in: alone and without quotes it may be several words."""
    line, column = place
    alone = re.fullmatch(r"\$([A-Za-z_]\w*)", value)
    if alone and bare:
        known = env.get(alone.group(1))
        if known is not None:
            for part in known.split():
                yield Word(part, line, column)
            return
    unknown: set[str] = set()

    def put_in(match: re.Match[str]) -> str:
        name = match.group(1) or match.group(2)
        known = env.get(name)
        if known is None:
            unknown.add(name)
            return match.group()
        return known

    put = _VARIABLE.sub(put_in, value).replace("$$", "$")
    yield Word(put, line, column, frozenset(unknown), bool(alone and unknown and bare))
