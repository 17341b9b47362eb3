# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which of two versions is newer: release branches, and package revisions. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ...versions import parse

_EPOCH = re.compile(r"(\d+):")
_DIGITS = re.compile(r"\d+")
_OTHERS = re.compile(r"\D+")


def at_least_one(version: str, fixed: Sequence[str], width: int = 2) -> bool:
    """Does ``version`` have what the releases ``fixed`` brought, one for each branch?

    The first ``width`` numbers name a branch: 2 for ``1.2.8``, 1 for the driver's
    ``580.159.03``. A branch newer than all of them has it, a branch between two of them that is
    not named has not. Only leading numbers count, so a release candidate counts as its release.
    A version that names a branch only (``1.2``, ``535``) is taken for the branch's newest.
    """
    have = parse(version)
    first = sorted(parse(one) for one in fixed)
    if not have or not first:
        return False
    if len(have) <= width:
        have = have + (1 << 30,) * (width + 1 - len(have))
    own = [one for one in first if one[:width] == have[:width]]
    return _filled(have) >= _filled(own[0] if own else first[-1])


def _filled(version: tuple[int, ...]) -> tuple[int, ...]:
    return version + (0,) * (6 - len(version))


def not_older(have: str, wanted: str) -> bool:
    """Is the package version ``have`` equal to or newer than ``wanted``, by dpkg's order?

    rpm orders the versions that are compared here, all of one package, in the same way. An epoch
    that only one of the two has is not counted: ``rpm -q`` does not print it.
    """
    if bool(_EPOCH.match(have)) != bool(_EPOCH.match(wanted)):
        have, wanted = _epoch(have)[1], _epoch(wanted)[1]
    return compare(have, wanted) >= 0


def compare(left: str, right: str) -> int:
    """-1, 0 or 1 as ``dpkg --compare-versions`` finds (deb-version(7))."""
    left_epoch, left_rest = _epoch(left)
    right_epoch, right_rest = _epoch(right)
    if left_epoch != right_epoch:
        return -1 if left_epoch < right_epoch else 1
    for one, other in zip(_revision(left_rest), _revision(right_rest)):
        order = _compare_part(one, other)
        if order:
            return order
    return 0


def _epoch(version: str) -> tuple[int, str]:
    match = _EPOCH.match(version)
    return (int(match.group(1)), version[match.end() :]) if match else (0, version)


def _revision(version: str) -> tuple[str, str]:
    upstream, _dash, revision = version.rpartition("-")
    return (upstream, revision) if upstream else (version, "")


def _compare_part(left: str, right: str) -> int:
    while left or right:
        words = [_take(_OTHERS, left), _take(_OTHERS, right)]
        if words[0] != words[1]:
            ranks = [[_rank(letter) for letter in word] + [0] for word in words]
            if ranks[0] != ranks[1]:
                return -1 if ranks[0] < ranks[1] else 1
        left, right = left[len(words[0]) :], right[len(words[1]) :]
        digits = [_take(_DIGITS, left), _take(_DIGITS, right)]
        numbers = [int(text or "0") for text in digits]
        if numbers[0] != numbers[1]:
            return -1 if numbers[0] < numbers[1] else 1
        left, right = left[len(digits[0]) :], right[len(digits[1]) :]
    return 0


def _take(pattern: re.Pattern[str], text: str) -> str:
    match = pattern.match(text)
    return match.group(0) if match else ""


def _rank(letter: str) -> int:
    """A tilde sorts before the end, letters before everything else."""
    if letter == "~":
        return -1
    return ord(letter) if letter.isalpha() else ord(letter) + 0x110000
