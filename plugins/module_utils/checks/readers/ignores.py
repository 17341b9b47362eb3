# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Comments that switch a rule off where they stand, with the reason why. Pure.

    docker run --privileged ubuntu true   # steadygpu: ignore[privileged] throw-away build machine

A comment at the end of a line holds for that line, and for the command of which it is the last
line. A comment of its own holds for what follows: the next line, the lines that continue it, and
those that are indented deeper (a Compose service, say). ``ignore-file[…]`` holds for the file.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from ..model import Finding, Position

_COMMENT = re.compile(
    r"(?:#|;|//|<!--)[ \t]*steadygpu:[ \t]*ignore(-file)?[ \t]*(?:\[([^\]\n]*)\])?([^\n]*)"
)
_LONGEST_LINE = 4096


@dataclass(frozen=True)
class IgnoreComment:
    """One such comment. ``rules`` are the ids it names, ``reason`` is "" where none is given.

    It holds from line ``first`` to line ``last`` (count from 1); ``first`` is 0 for the whole
    file, ``last`` is below ``first`` where nothing follows the comment.
    """

    at: Position
    rules: tuple[str, ...]
    reason: str
    first: int
    last: int

    def holds_for(self, finding: Finding) -> bool:
        """Does it switch this finding off? Without a reason it switches off nothing."""
        here = self.first == 0 or self.first <= finding.at.line <= self.last
        return bool(self.reason) and here and finding.rule in self.rules


def read_ignores(text: str, file: str) -> tuple[IgnoreComment, ...]:
    """Every comment of this kind in ``text``."""
    if "steadygpu:" not in text:
        return ()
    lines = text.splitlines()
    found = []
    for number, line in enumerate(lines, start=1):
        match = _COMMENT.search(line[:_LONGEST_LINE])
        if match is None:
            continue
        first, last = (
            (0, 0) if match[1] else _reach(lines, number, not line[: match.start()].strip())
        )
        found.append(
            IgnoreComment(
                at=Position(file, number, match.start() + 1),
                rules=tuple(word for word in re.split(r"[\s,]+", match[2] or "") if word),
                reason=match[3].replace("-->", "").strip(" \t\r-:"),
                first=first,
                last=last,
            )
        )
    return tuple(found)


def without_ignored(
    findings: Iterable[Finding], comments: Iterable[IgnoreComment]
) -> tuple[list[Finding], int]:
    """The findings that no comment switches off, and how many were switched off."""
    comments = list(comments)
    everything = list(findings)
    left = [f for f in everything if not any(comment.holds_for(f) for comment in comments)]
    return left, len(everything) - len(left)


def _reach(lines: list[str], number: int, alone: bool) -> tuple[int, int]:
    """First and last line, counted from 1, of what the comment in line ``number`` is about."""
    if not alone:
        first = number
        while first > 1 and _continues(lines[first - 2]):
            first -= 1
        return first, number
    first = number + 1
    while first <= len(lines) and (
        not lines[first - 1].strip() or _COMMENT.search(lines[first - 1])
    ):
        first += 1
    if first > len(lines):
        return first, first - 1
    last, depth = first, _indent(lines[first - 1])
    while last < len(lines) and (
        _continues(lines[last - 1]) or not lines[last].strip() or _indent(lines[last]) > depth
    ):
        last += 1
    return first, last


def _continues(line: str) -> bool:
    return line.rstrip("\r").endswith("\\")


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" \t"))
