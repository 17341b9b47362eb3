# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Put lines into a TOML text and take them out again, with the blank lines around them. Pure.

What :func:`below`, :func:`before`, :func:`at_end` or :func:`add_section` put in, :func:`cut` and
:func:`cut_header` take out so that the very bytes are there that were there before.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_COMMENT = re.compile(r"[ \t]*#")
_HEADER = re.compile(r"[ \t]*#[ \t]*\[[^\]]+\]\]?[ \t]*\r?$", re.MULTILINE)


def line_start(text: str, offset: int) -> int:
    """Where the line of ``offset`` begins."""
    return text.rfind("\n", 0, offset) + 1


def line_end(text: str, offset: int) -> int:
    """Where the line of ``offset`` ends, before its line break."""
    end = text.find("\n", offset)
    if end < 0:
        return len(text)
    return end - 1 if text[max(end - 1, offset) : end] == "\r" else end


def indent(text: str, offset: int) -> str:
    """The blanks that the line of ``offset`` begins with."""
    match = re.compile(r"[ \t]*").match(text, line_start(text, offset))
    return match.group() if match else ""


def newline(text: str) -> str:
    """The line break of this text."""
    return "\r\n" if "\r\n" in text else "\n"


def below(text: str, offset: int, line: str) -> str:
    """``text`` with a line below that of ``offset``."""
    end = line_end(text, offset)
    return text[:end] + newline(text) + line + text[end:]


def before(text: str, offset: int, line: str) -> str:
    """``text`` with a line, and a blank one behind it, before ``offset``, a line's beginning.

    It stands at the top of the text or behind a blank line.
    """
    rest = text[offset:]
    return text[:offset] + line + newline(text) + (newline(text) if rest else "") + rest


def at_end(text: str, line: str) -> str:
    """``text`` with a line behind its last one that is not blank."""
    end = _last_line(text)
    return before(text, 0, line) if end is None else below(text, end, line)


def commented(text: str, gaps: Sequence[tuple[int, int]], key: str) -> int | None:
    """The offset of the last line in ``gaps`` that is a comment with a value for ``key``.

    A gap begins where a statement ends. What stands below a header that is a comment is of another
    table.
    """
    pattern = re.compile(rf"[ \t]*#[ \t]*{re.escape(key)}[ \t]*=[^\r\n]*[^\s\[{{,]")
    found = None
    for start, end in gaps:
        line = _next_line(text, start) if start else 0
        while line < end:
            if _HEADER.match(text, line):
                return found
            if pattern.match(text, line):
                found = line
            line = _next_line(text, line)
    return found


def add_section(text: str, offset: int | None, lines: Sequence[str]) -> str:
    """``text`` with a section below the line of ``offset`` and its comments; None: at the end."""
    end = _last_line(text) if offset is None else _with_comments(text, line_end(text, offset))
    block = newline(text).join(lines)
    if end is None:
        return before(text, 0, block)
    return text[:end] + newline(text) * 2 + block + text[end:]


def head_end(text: str, header: int) -> int:
    """Where what stands above a header and the comments right above that header ends."""
    start = line_start(text, header)
    while start > 0:
        above = line_start(text, start - 1)
        if not _COMMENT.match(text, above):
            break
        start = above
    return start


def cut(text: str, start: int, end: int) -> str:
    """``text`` without the lines from ``start`` to ``end``, and without a gap of two blank ones."""
    first, behind = line_start(text, start), _next_line(text, end)
    gap = first == 0 or _is_blank(text, line_start(text, first - 1))
    if gap and behind < len(text) and _is_blank(text, behind):
        behind = _next_line(text, behind)
    return _without(text, first, behind)


def cut_header(text: str, start: int, end: int) -> str:
    """:func:`cut` for a header: the blank line above it goes with it."""
    first = line_start(text, start)
    if first == 0 or not _is_blank(text, line_start(text, first - 1)):
        return cut(text, start, end)
    return _without(text, line_start(text, first - 1), _next_line(text, end))


def _without(text: str, first: int, behind: int) -> str:
    if behind == len(text) and not text.endswith("\n") and first > 0:
        first -= 2 if text[:first].endswith("\r\n") else 1
    return text[:first] + text[behind:]


def _next_line(text: str, offset: int) -> int:
    end = text.find("\n", offset)
    return len(text) if end < 0 else end + 1


def _is_blank(text: str, start: int) -> bool:
    return not text[start : line_end(text, start)].strip()


def _last_line(text: str) -> int | None:
    """The end of the last line that is not blank; None when there is none."""
    length = len(text.rstrip())
    return line_end(text, length - 1) if length else None


def _with_comments(text: str, end: int) -> int:
    """``end``, or the end of the comments right below, unless those belong to what follows."""
    last = end
    while True:
        following = _next_line(text, last)
        if following >= len(text) or _is_blank(text, following):
            return last
        if not _COMMENT.match(text, following):
            return end
        last = line_end(text, following)
