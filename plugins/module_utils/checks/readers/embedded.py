# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Files inside files: code blocks of Markdown, and what a script writes with a here-document. Pure.

A piece keeps its place: as many empty lines stand before it as lines come before it in the whole,
so that the positions that its reader gives are those of the whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

MARKDOWN = "markdown"
# Of all pieces together. Their empty lines count, so that thousands of them cost no minutes.
LIMIT_CHARACTERS = 4 * 1024 * 1024

_FENCE = re.compile(r"^([ \t>]*)(`{3,}|~{3,})[ \t]*([^`\n]*)$")
# What the first word after a fence says of the block; a word that is not here lets the text decide.
_LANGUAGES = {
    "bash": "shell",
    "sh": "shell",
    "shell": "shell",
    "zsh": "shell",
    "console": "shell",
    "shell-session": "shell",
    "dockerfile": MARKDOWN,
    "python": MARKDOWN,
    "go": MARKDOWN,
    "c": MARKDOWN,
    "cpp": MARKDOWN,
    "diff": MARKDOWN,
    "xml": "dump",
}
_HEREDOC = re.compile(r"<<(-?)[ \t]*(['\"\\]?)(\w+)['\"]?")
_TARGET = re.compile(r"(?:\btee\b(?:[ \t]+-\S+)*[ \t]+|>>?[ \t]*)['\"]?(/?[\w$.{}/~-]+\.?\w*)")


@dataclass(frozen=True)
class Piece:
    """One file inside another: its text with empty lines before it, its kind or name if known.

    ``kind`` is a key of ``kinds.KINDS`` ("markdown": of no interest) or None; ``name`` is the
    file that a script writes it to, "" where there is none.
    """

    text: str
    kind: str | None = None
    name: str = ""


def pieces(text: str, kind: str) -> Iterator[Piece]:
    """The files inside ``text``, which is Markdown or a script (``shell``).

    What comes after :data:`LIMIT_CHARACTERS` of them is left out.
    """
    left = LIMIT_CHARACTERS
    for piece in _all_pieces(text, kind):
        left -= len(piece.text)
        if left < 0:
            return
        yield piece


def _all_pieces(text: str, kind: str) -> Iterator[Piece]:
    if kind == MARKDOWN:
        for fence in _fences(text):
            yield fence
            if fence.kind == "shell":
                yield from _heredocs(fence.text)
    else:
        yield from _heredocs(text)


def _fences(text: str) -> Iterator[Piece]:
    opened: tuple[int, str, str, str] | tuple[()] = ()
    lines = text.split("\n")
    for number, line in enumerate(lines):
        fence = _FENCE.match(line)
        if fence and not opened:
            opened = (number, fence[1], fence[2], fence[3].strip())
        elif fence and opened and fence[2].startswith(opened[2]) and not fence[3].strip():
            start, indent, _marks, info = opened
            inside = [
                row[len(indent) :] if row.startswith(indent) else row.lstrip()
                for row in lines[start + 1 : number]
            ]
            # A second opening mark inside, without a closing one: no text of the block.
            inside = ["" if row.startswith("```") else row for row in inside]
            if any(inside):
                language = re.split(r"[\s{,:]", info.lower(), maxsplit=1)[0]
                padded = "\n" * (start + 1) + "\n".join(inside) + "\n"
                yield Piece(padded, _LANGUAGES.get(language))
            opened = ()


def _heredocs(text: str) -> Iterator[Piece]:
    lines = text.split("\n")
    number = 0
    while number < len(lines):
        line = lines[number]
        here = None if line.lstrip().startswith("#") else _HEREDOC.search(line)
        number += 1
        if here is None:
            continue
        start = number
        while number < len(lines) and not _ends(lines[number], here[3], bool(here[1])):
            number += 1
        target = _TARGET.search(line)
        # Without a quoted word the shell would put its variables in: such a body is a template.
        if target and number < len(lines) and (here[2] or "$" not in "".join(lines[start:number])):
            body = lines[start:number]
            body = [row.lstrip("\t") for row in body] if here[1] else body
            yield Piece("\n" * start + "\n".join(body) + "\n", None, target[1])
        number += 1


def _ends(line: str, word: str, tabs: bool) -> bool:
    return (line.lstrip("\t") if tabs else line).rstrip("\r") == word
