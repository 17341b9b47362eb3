# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Patterns whose one special character is ``*``: what they match, cover and have in common. Pure.

With ``*`` alone, any run of characters, all three questions have exact answers that cost next to
nothing.
"""

from __future__ import annotations

# Stands for a character that no pattern holds.
_OTHER = "\0"


def matches(pattern: str, text: str) -> bool:
    """Does the whole ``text`` match?"""
    first, *rest = pattern.split("*")
    if not rest:
        return pattern == text
    last = rest.pop()
    at, end = len(first), len(text) - len(last)
    if at > end or not text.startswith(first) or not text.endswith(last):
        return False
    for part in rest:
        found = text.find(part, at, end)
        if found < 0:
            return False
        at = found + len(part)
    return True


def covers(wide: str, narrow: str) -> bool:
    """Does ``wide`` match every text that ``narrow`` matches?

    What only a star can match stands for each star of ``narrow``: where ``wide`` matches that, the
    same star takes whatever else may stand there.
    """
    return matches(wide, narrow.replace("*", _OTHER))


def common(left: str, right: str) -> str | None:
    """A text that both match; None where there is none."""
    if "*" not in left:
        return left if matches(right, left) else None
    if "*" not in right:
        return right if matches(left, right) else None
    (first, *middle, last), (other_first, *other_middle, other_last) = (
        left.split("*"),
        right.split("*"),
    )
    begin, end = max(first, other_first, key=len), max(last, other_last, key=len)
    if not (begin.startswith(first) and begin.startswith(other_first)):
        return None
    if not (end.endswith(last) and end.endswith(other_last)):
        return None
    # A star of the one takes the middle of the other.
    return begin + "".join(middle) + "".join(other_middle) + end
