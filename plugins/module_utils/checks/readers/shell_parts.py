# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a shell script is made of: words, their parts, simple commands. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Word:
    """One word as the program gets it.

    ``value`` is without quotes; what a shell would have put in is left as ``$NAME``, ``${…}`` or
    ``$(…)``. ``line`` and ``column`` count from 1. ``variables`` are the names left in it.
    ``splits``: the word is nothing but an unquoted variable, so it may be none or several words.
    ``raw`` is how it is written, ``offset`` where that begins in the text.
    """

    value: str
    line: int
    column: int
    variables: frozenset[str] = frozenset()
    splits: bool = False
    raw: str = ""
    offset: int = 0


@dataclass(frozen=True)
class Part:
    """A piece of a word: ``kind`` is ``text``, ``name`` (a variable) or ``command`` ($(…))."""

    kind: str
    text: str
    quoted: bool
    default: str | None = None


@dataclass(frozen=True)
class RawWord:
    """A word before variables are put in."""

    parts: tuple[Part, ...]
    line: int
    column: int
    offset: int
    raw: str

    @property
    def text(self) -> str:
        """The word without quotes, variables left as they are written."""
        return "".join(part.text for part in self.parts)

    @property
    def bare(self) -> bool:
        """Is it without any quote, variable and escape?"""
        return len(self.parts) == 1 and self.parts[0] == Part("text", self.raw, False)


@dataclass
class RawCommand:
    """A simple command. ``arrays`` are ``name=(…)`` assignments, ``inner`` the spans of commands
    inside ``$(…)``; ``before`` is the operator before it, ``redirects`` operator and target,
    ``comment`` what stands behind it on its last line.
    """

    words: list[RawWord] = field(default_factory=list)
    arrays: list[tuple[str, list[RawWord]]] = field(default_factory=list)
    redirects: list[tuple[str, RawWord]] = field(default_factory=list)
    inner: list[tuple[int, int]] = field(default_factory=list)
    before: str = ""
    comment: str = ""

    def __bool__(self) -> bool:
        return bool(self.words or self.arrays or self.redirects)


def joined(parts: list[Part]) -> tuple[Part, ...]:
    """Neighbouring pieces of text as one, where they are quoted alike."""
    found: list[Part] = []
    for part in parts:
        last = found[-1] if found else None
        if last and last.kind == part.kind == "text" and last.quoted == part.quoted:
            found[-1] = Part("text", last.text + part.text, part.quoted)
        else:
            found.append(part)
    return tuple(found)


def variable_of(part: Part) -> str:
    """The name of the variable that a ``name`` part stands for."""
    match = re.match(r"\$\{?(\w+|.)", part.text)
    return match.group(1) if match else ""
