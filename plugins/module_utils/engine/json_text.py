# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Edit one value in the text of a JSON object and leave every other byte alone.

A file that people keep by hand has an order, an indentation and inline lists; writing it
anew from a parsed object loses them and makes every diff unreadable. Here a value is
found by its position and only that span is replaced.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from json.decoder import JSONDecodeError
from typing import Any

from ..trees.leaves import Path, flatten

__all__ = [
    "EMPTY",
    "JsonTextError",
    "Path",
    "assign",
    "assign_raw",
    "close",
    "delete",
    "flatten",
    "is_blank",
    "is_opened",
    "parse",
    "raw",
    "value_of",
]

# A document with nothing in it.
EMPTY = "{}\n"

_BLANK = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder()


class JsonTextError(ValueError):
    """The text is not a JSON object; the message has line and column where it can."""


@dataclass(frozen=True)
class _Member:
    key: str
    start: int  # of the key's opening quote
    value: int  # of the value's first character
    end: int  # just behind the value


@dataclass(frozen=True)
class _Object:
    """``start`` is the position of ``{``, ``end`` is just behind ``}``."""

    start: int
    end: int
    members: list[_Member]

    def member(self, key: str) -> _Member | None:
        return next((member for member in self.members if member.key == key), None)


def parse(text: str) -> dict[str, Any]:
    """The object in ``text``. Raises JsonTextError for anything that is not exactly one.

    A key that appears twice is refused too: readers differ in which one they take.
    """
    if text.startswith("\ufeff"):
        raise JsonTextError(
            "it begins with a byte order mark, which dockerd refuses: save as UTF-8"
        )
    if "\x00" in text:
        raise JsonTextError("it contains NUL bytes: the file was damaged, restore it")
    try:
        document = json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant)
    except JSONDecodeError as error:
        where = f"line {error.lineno} column {error.colno}: {error.msg}"
        raise JsonTextError(where) from error
    except RecursionError as error:
        raise JsonTextError("it is nested too deeply to be a configuration") from error
    if not isinstance(document, dict):
        kind = "null" if document is None else type(document).__name__
        raise JsonTextError(f"it holds a {kind}, wanted one object {{…}}")
    return document


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise JsonTextError(f"the key {key!r} appears twice in one object")
        found[key] = value
    return found


def _no_constant(word: str) -> Any:
    raise JsonTextError(f"{word} is not JSON")


def value_of(literal: str) -> Any:
    """What a value's text stands for. Raises ValueError."""
    return json.loads(literal)


def is_blank(text: str) -> bool:
    """Is it an object without a member?"""
    return not parse(text)


def is_opened(text: str, path: Path) -> bool:
    """Is there something at ``path``? Every object of JSON has a place of its own."""
    return _find(text, path) is not None


def close(text: str, path: Path) -> str:
    """``text`` as it is: there are no objects that only their members name."""
    return text


def raw(text: str, path: Path) -> str | None:
    """The text of the value at ``path`` as it is written; None when it is not there."""
    span = _find(text, path)
    return text[span[0] : span[1]] if span else None


def assign(text: str, path: Path, value: Any) -> str:
    """``text`` with ``value`` at ``path``; the object that is to hold it must exist."""
    return assign_raw(text, path, None, value)


def assign_raw(text: str, path: Path, literal: str | None, value: Any = None) -> str:
    """As :func:`assign`, with the value's own text where it is known (``literal``)."""
    span = _find(text, path)
    depth = len(path)
    if span:
        new = literal if literal is not None else _render(value, text, depth, True)
        return text[: span[0]] + new + text[span[1] :]
    if not path:
        raise JsonTextError("there is no object to edit")
    parent = _object_at(text, path[:-1])
    inline = _is_inline(text, parent)
    new = literal if literal is not None else _render(value, text, depth, not inline)
    member = f"{json.dumps(path[-1], ensure_ascii=False)}: {new}"
    pad = "" if inline else _newline(text) + _indent(text) * depth
    if parent.members:
        last = parent.members[-1].end
        return text[:last] + "," + (" " if inline else pad) + member + text[last:]
    inside = parent.start + 1
    # Blanks that stood in an empty object stay behind the new member, so that taking it
    # out again gives the same bytes.
    tail = "" if inline or text[inside] != "}" else _newline(text) + _indent(text) * (depth - 1)
    return text[:inside] + pad + member + tail + text[inside:]


def delete(text: str, path: Path) -> str:
    """``text`` without the member at ``path``; unchanged when it is not there."""
    if not path or _find(text, path) is None:
        return text
    parent = _object_at(text, path[:-1])
    place = [member.key for member in parent.members].index(path[-1])
    member = parent.members[place]
    if place > 0:
        return text[: parent.members[place - 1].end] + text[member.end :]
    if len(parent.members) > 1:
        return text[: member.start] + text[parent.members[1].start :]
    return text[: parent.start + 1] + text[member.end :]


def _is_inline(text: str, parent: _Object) -> bool:
    """Is this object written on one line, and so will its next member be?"""
    return bool(parent.members) and "\n" not in text[parent.start : parent.members[-1].start]


def _render(value: Any, text: str, depth: int, multiline: bool) -> str:
    indent = _indent(text)
    if not multiline or not indent:
        return json.dumps(value, ensure_ascii=False)
    newline = _newline(text) + indent * depth
    return json.dumps(value, indent=indent, ensure_ascii=False).replace("\n", newline)


def _newline(text: str) -> str:
    """How the lines of this text end."""
    return "\r\n" if "\r\n" in text else "\n"


def _indent(text: str) -> str:
    """One step of indentation: the blanks before the first key, two when there is no such line."""
    match = re.search(r'\{[ \t\r]*\n([ \t]+)"', text)
    return match.group(1) if match else "  "


def _find(text: str, path: Path) -> tuple[int, int] | None:
    """Where the value at ``path`` begins and ends."""
    start = _blank(text, 0)
    end = _value_end(text, start)
    for key in path:
        if text[start : start + 1] != "{":
            return None
        member = _scan(text, start).member(key)
        if member is None:
            return None
        start, end = member.value, member.end
    return start, end


def _object_at(text: str, path: Path) -> _Object:
    span = _find(text, path)
    if span is None or text[span[0]] != "{":
        raise JsonTextError("there is no object at {}".format(".".join(path) or "the top"))
    return _scan(text, span[0])


def _scan(text: str, start: int) -> _Object:
    """The members of the object whose ``{`` stands at ``start``; the text is valid JSON."""
    members: list[_Member] = []
    position = _blank(text, start + 1)
    while text[position] != "}":
        if text[position] == ",":
            position = _blank(text, position + 1)
        key, behind = _DECODER.raw_decode(text, position)
        value = _blank(text, _blank(text, behind) + 1)
        end = _value_end(text, value)
        members.append(_Member(key, position, value, end))
        position = _blank(text, end)
    return _Object(start, position + 1, members)


def _value_end(text: str, start: int) -> int:
    return _DECODER.raw_decode(text, start)[1]


def _blank(text: str, position: int) -> int:
    match = _BLANK.match(text, position)
    return match.end() if match else position
