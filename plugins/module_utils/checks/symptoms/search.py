# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A thousand patterns over a long log, quickly. Pure.

What a pattern cannot do without is looked for first: ``needs`` takes from a pattern the texts of
which at least one must be there, and looking for those is a hundred times faster than the pattern.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache

# Of a longer text the beginning and the end are read: where a log starts and where it breaks.
MOST_CHARACTERS = 128 * 1024
_SHORTEST = 3
_OPTIONAL = re.compile(r"[*?]|\{0?,")
_COUNTED = re.compile(r"\{\d*(?:,\d*)?\}")
_REPEATED = re.compile(r"\+|\{\d*(?:,\d*)?\}")


def flatten(text: str) -> str:
    """The text in one line with single blanks; the middle of a very long one is left out."""
    if len(text) > MOST_CHARACTERS:
        half = MOST_CHARACTERS // 2
        text = f"{text[:half]}\n{text[-half:]}"
    return " ".join(text.split())


def first(patterns: Sequence[str], flat: str, lowered: str) -> re.Match[str] | None:
    """The match of the first pattern that is found in ``flat``; ``lowered`` is it in lower case."""
    for pattern in patterns:
        wanted = needs(pattern)
        if wanted and not any(word in lowered for word in wanted):
            continue
        match = compiled(pattern).search(flat)
        if match:
            return match
    return None


@cache
def compiled(pattern: str) -> re.Pattern[str]:
    """The pattern, without case; there are more than the cache of ``re`` holds."""
    return re.compile(pattern, re.IGNORECASE)


@cache
def needs(pattern: str) -> tuple[str, ...]:
    """Texts in lower case of which one is in everything that matches; () when none is known."""
    found: list[str] = []
    for branch in _branches(pattern):
        words = _of_branch(branch)
        if not words:
            return ()
        found.extend(words)
    return tuple(dict.fromkeys(found))


def _branches(pattern: str) -> list[str]:
    """The alternatives of a pattern at its top level."""
    branches, start = [], 0
    for at, token in _tokens(pattern):
        if token == "|":
            branches.append(pattern[start:at])
            start = at + 1
    return [*branches, pattern[start:]]


def _tokens(pattern: str) -> Iterator[tuple[int, str]]:
    """The parts of a pattern with their places: characters, escapes, sets and whole groups."""
    at = 0
    while at < len(pattern):
        size = _size(pattern, at)
        yield at, pattern[at : at + size]
        at += size


def _size(pattern: str, at: int) -> int:
    if pattern[at] == "\\":
        return 2
    if pattern[at] == "[":
        return _set_size(pattern, at)
    if pattern[at] == "(":
        return _group_size(pattern, at)
    counted = _COUNTED.match(pattern, at)
    return len(counted.group(0)) if counted else 1


def _set_size(pattern: str, at: int) -> int:
    end = at + 2 if pattern[at + 1 : at + 2] != "^" else at + 3
    while end < len(pattern) and pattern[end] != "]":
        end += 2 if pattern[end] == "\\" else 1
    return end + 1 - at


def _group_size(pattern: str, at: int) -> int:
    depth, end = 0, at
    while end < len(pattern):
        char = pattern[end]
        if char == "\\":
            end += 1
        elif char == "[":
            end += _set_size(pattern, end) - 1
        elif char == "(":
            depth += 1
        elif char == ")":
            depth -= 1
            if depth == 0:
                return end + 1 - at
        end += 1
    return len(pattern) - at


def _of_branch(branch: str) -> tuple[str, ...]:
    """The longest plain text of a branch, or the texts of one of its groups."""
    run, best = "", ""
    groups: list[tuple[str, ...]] = []
    for at, token in _tokens(branch):
        after = branch[at + len(token) :]
        optional = bool(_OPTIONAL.match(after))
        plain = _plain(token)
        if plain and not optional:
            run += plain
            if not _REPEATED.match(after):
                continue
        elif token.startswith("(") and not token.startswith("(?") and not optional:
            groups.append(needs(token[1:-1]))
        best, run = max(best, run, key=len), ""
    best = max(best, run, key=len)
    if len(best) >= _SHORTEST + 1:
        return (best.lower(),)
    sure = [words for words in groups if words and min(map(len, words)) >= _SHORTEST]
    if sure:
        return max(sure, key=lambda words: min(map(len, words)))
    return (best.lower(),) if len(best) >= _SHORTEST else ()


def _plain(token: str) -> str:
    """The character that a part stands for; "" for what may be several."""
    if len(token) == 2 and token[0] == "\\":
        return "" if token[1].isalnum() else token[1]
    return token if len(token) == 1 and token not in ".^$|?*+{}()[]" else ""
