# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Edit a TOML list as it is written: elements that stay keep their lines and comments. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from .toml_lines import indent, line_end, line_start, newline
from .toml_write import value_text

# What may stand behind an element on its own line.
_BEHIND = re.compile(r"[ \t]*(,?)[ \t]*(?:#[^\r\n]*)?(?=\r?\n)")

Span = tuple[int, int]


def edit(literal: str, elements: Sequence[Span], old: Sequence[Any], new: Sequence[Any]) -> str:
    """The list's text with ``new`` in it. ``elements`` are the places of ``old`` in ``literal``.

    What is in both in the same order stays; what is new comes behind it. Raises ValueError for
    what TOML has no word for.
    """
    quotes = bool(elements) and literal[elements[-1][0]] == "'"
    kept: list[int] = []
    for place, value in enumerate(old):
        if len(kept) < len(new) and repr(value) == repr(new[len(kept)]):
            kept.append(place)
    further = [value_text(value, quotes) for value in new[len(kept) :]]
    if not kept:
        return _anew(literal, elements, further)
    if further:
        literal = _append(literal, elements[-1], further)
    gone = [place for place in range(len(old)) if place not in kept]
    return _remove(literal, elements, gone, kept[0])


def _alone(literal: str, element: Span) -> bool:
    """Has the element a line of its own, with a break before it and one behind it?"""
    start, end = element
    begins = line_start(literal, start)
    before = literal[begins:start]
    return begins > 0 and not before.strip() and _BEHIND.match(literal, end) is not None


def _append(literal: str, last: Span, further: Sequence[str]) -> str:
    start, end = last
    behind = _BEHIND.match(literal, end)
    if behind is None or not _alone(literal, last):
        return literal[:end] + "".join(", " + one for one in further) + literal[end:]
    comma = behind.group(1)
    pad = newline(literal) + indent(literal, start)
    lines = pad + ("," + pad).join(further) + comma
    after = line_end(literal, end)
    return literal[:end] + ("" if comma else ",") + literal[end:after] + lines + literal[after:]


def _remove(literal: str, elements: Sequence[Span], gone: Sequence[int], first: int) -> str:
    """Without the elements ``gone``; ``first`` is the first one that stays."""
    if all(_alone(literal, elements[place]) for place in gone):
        for place in reversed(gone):
            start, end = elements[place]
            behind = literal.find("\n", end) + 1
            literal = literal[: line_start(literal, start)] + literal[behind:]
        return literal
    for place in reversed(gone):
        if place > first:
            literal = literal[: elements[place - 1][1]] + literal[elements[place][1] :]
    return literal[: elements[0][0]] + literal[elements[first][0] :]


def _anew(literal: str, elements: Sequence[Span], texts: Sequence[str]) -> str:
    """A list of these texts, one a line where it was so before."""
    if not texts or not elements or not _alone(literal, elements[0]):
        return "[{}]".format(", ".join(texts))
    first, last = elements[0], elements[-1]
    behind = _BEHIND.match(literal, last[1])
    comma = "," if behind is not None and behind.group(1) else ""
    pad = newline(literal) + indent(literal, first[0])
    closing = newline(literal) + indent(literal, len(literal) - 1)
    return "[" + pad + ("," + pad).join(texts) + comma + closing + "]"
