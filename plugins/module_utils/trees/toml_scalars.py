# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Strings, numbers, truth values and dates of TOML 1.0. Pure."""

from __future__ import annotations

import re
from typing import Any

from .node import Node
from .places import Places, whole

STRING_STARTS = ('"', "'")

_WORD = re.compile(r"[A-Za-z0-9_+.:-]+(?: (?=[0-9]{2}:)[0-9:.+Zz-]+)?")
_DECIMAL = re.compile(r"[+-]?(?:0|[1-9](?:_?[0-9])*)$")
_BASED = re.compile(
    r"0x[0-9A-Fa-f](?:_?[0-9A-Fa-f])*$|0o[0-7](?:_?[0-7])*$|0b[01](?:_?[01])*$",
)
_DIGITS = r"[0-9](?:_?[0-9])*"
_FLOAT = re.compile(
    rf"[+-]?(?:0|[1-9](?:_?[0-9])*)(?:\.{_DIGITS})?(?:[eE][+-]?{_DIGITS})?$",
)
_DATE = r"[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])"
_TIME = r"(?:[01][0-9]|2[0-3]):[0-5][0-9]:(?:[0-5][0-9]|60)(?:\.[0-9]+)?"
_MOMENT = re.compile(
    rf"{_DATE}(?:[Tt ]{_TIME}(?:[Zz]|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])?)?$|{_TIME}$"
)
_CONSTANTS: dict[str, Any] = {
    "true": True,
    "false": False,
    **{sign + "inf": float(sign + "inf") for sign in ("", "+", "-")},
    **{sign + "nan": float("nan") for sign in ("", "+", "-")},
}

_ESCAPES = {"b": "\b", "t": "\t", "n": "\n", "f": "\f", "r": "\r", '"': '"', "\\": "\\"}
# A run of characters that stand for themselves, in each kind of string.
_PLAIN = {
    '"': re.compile(r'[^"\\\x00-\x08\x0a-\x1f\x7f]+'),
    "'": re.compile(r"[^'\x00-\x08\x0a-\x1f\x7f]+"),
    '"""': re.compile(r'(?:[^"\\\x00-\x08\x0b-\x1f\x7f]|\r\n)+'),
    "'''": re.compile(r"(?:[^'\x00-\x08\x0b-\x1f\x7f]|\r\n)+"),
}
_LINE_END = re.compile(r"\\[ \t]*\r?\n[ \t\r\n]*")
_UNICODE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8}))")
# Longer numbers are refused by Python itself, and by every reader of TOML.
_LONGEST = 400


def read_scalar(text: str, start: int, places: Places) -> tuple[Node, int]:
    """The value that begins at ``start`` and the offset just behind it. Raises TreeError."""
    line, column = places.at(start)
    if text[start : start + 1] in STRING_STARTS:
        value, behind = read_string(text, start, places)
        return Node(value, line, column, value), behind
    match = _WORD.match(text, start)
    if match is None:
        found = text[start : start + 1] or "the end"
        raise places.error(f"wanted is a value, not {found!r}", start)
    word = match.group()
    if word in _CONSTANTS:
        return Node(_CONSTANTS[word], line, column, word), match.end()
    if len(word) <= _LONGEST:
        if _DECIMAL.match(word):
            return Node(int(word.replace("_", "")), line, column, word), match.end()
        if _BASED.match(word):
            return Node(int(word.replace("_", ""), 0), line, column, word), match.end()
        if _FLOAT.match(word):
            return Node(float(word.replace("_", "")), line, column, word), match.end()
    if _MOMENT.match(word):
        return Node(word, line, column, word), match.end()
    said = f"{word[:40]!r} is not a TOML value; text needs quotes"
    if word.lower() in ("true", "false"):
        said = f"{word} is not TOML: wanted is {word.lower()}"
    raise places.error(said, start)


def read_string(text: str, start: int, places: Places) -> tuple[str, int]:
    """The string whose first quote is at ``start`` and the offset just behind its last one."""
    mark = text[start]
    quote = mark * 3 if text.startswith(mark * 3, start) else mark
    offset = start + len(quote)
    if len(quote) == 3:
        # A line break right behind the opening quotes does not count.
        for newline in ("\n", "\r\n"):
            if text.startswith(newline, offset):
                offset += len(newline)
                break
    parts: list[str] = []
    while True:
        plain = _PLAIN[quote].match(text, offset)
        if plain:
            parts.append(plain.group())
            offset = plain.end()
        elif text.startswith(quote, offset):
            # Up to two quotes may stand right before the closing three.
            while (
                len(quote) == 3
                and text.startswith(quote + mark, offset)
                and _room(text, offset, mark)
            ):
                parts.append(mark)
                offset += 1
            return whole("".join(parts)), offset + len(quote)
        elif text.startswith(mark, offset):
            parts.append(mark)
            offset += 1
        elif mark == '"' and text.startswith("\\", offset):
            part, offset = _escape(text, offset, len(quote) == 3, places)
            parts.append(part)
        else:
            found = text[offset : offset + 1]
            if found in ("", "\n", "\r"):
                line, _column = places.at(start)
                raise places.error(f"the string of line {line} is not closed", offset)
            raise places.error(f"the control character {found!r} in a string", offset)


def _room(text: str, offset: int, mark: str) -> bool:
    """Are there at most five quotes, so that the first belongs to the string?"""
    return not text.startswith(mark * 6, offset)


def _escape(text: str, offset: int, several: bool, places: Places) -> tuple[str, int]:
    """What the escape at ``offset`` stands for and the offset just behind it."""
    end = _LINE_END.match(text, offset)
    if several and end:
        return "", end.end()
    known = _ESCAPES.get(text[offset + 1 : offset + 2])
    if known is not None:
        return known, offset + 2
    code = _UNICODE.match(text, offset)
    if code is None:
        raise places.error(f"{text[offset : offset + 2]!r} is not an escape of TOML", offset)
    number = int(code.group(1) or code.group(2), 16)
    if number > 0x10FFFF or 0xD800 <= number <= 0xDFFF:
        raise places.error(f"{code.group()} is not a character", offset)
    return chr(number), code.end()
