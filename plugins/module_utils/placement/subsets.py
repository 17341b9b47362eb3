# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Every subset of up to 16 GPUs with the worth of its links, sorted once. Pure.

A set is the bits of a number. Asking for the best free set is then reading down a list until a
number has no bit that is not free: exact, and microseconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from math import comb

MOST = 16

# Making a set costs so many times what reading one does.
_DEARER = 8


class Table:
    """The table of one weight matrix (whole numbers, symmetric, zero on the diagonal)."""

    def __init__(self, weights: Sequence[Sequence[int]]) -> None:
        size = len(weights)
        if size > MOST:
            raise ValueError(f"a table of {size} GPUs; wanted are at most {MOST}")
        self.size = size
        self.total, self.count = _sums(weights)
        self.rows: list[list[int]] = [[] for _size in range(size + 1)]
        rows = self.rows
        for mask, many in enumerate(self.count):
            rows[many].append(mask)
        total = self.total
        for row in rows:
            # Stable: of equal sums the lowest number first.
            row.sort(key=total.__getitem__, reverse=True)
        self._near: dict[tuple[int, ...], list[list[int]]] = {}

    def best(self, free: int, size: int, required: int = 0) -> list[int]:
        """The sets of the best worth within ``free`` that have all of ``required``."""
        return self._first(self.rows[size], free, required)

    def first(self, free: int, size: int) -> int:
        """One set of the best worth within ``free``; 0 where there is none."""
        taken = ~free
        row = self.rows[size]
        if comb(self.count[free], size) * _DEARER <= len(row):
            # Few sets are within: looking at these is quicker than looking for one of them.
            bits = [1 << place for place in range(self.size) if free >> place & 1]
            within = map(sum, combinations(bits, size))
            return max(within, key=self.total.__getitem__, default=0)
        for mask in row:
            if not mask & taken:
                return mask
        return 0

    def best_within(
        self, free: int, size: int, near: tuple[int, ...], required: int = 0
    ) -> list[int]:
        """As ``best``, of sets whose members are all near each other; ``near[i]`` are i's."""
        rows = self._near.get(near)
        if rows is None:
            rows = self._near[near] = self._cliques(near)
        return self._first(rows[size], free, required)

    def all_of(self, free: int, size: int, required: int = 0) -> list[int]:
        """Every set, the best worth first."""
        taken = ~free
        return [m for m in self.rows[size] if not m & taken and m & required == required]

    def _first(self, row: list[int], free: int, required: int) -> list[int]:
        taken = ~free
        total = self.total
        found: list[int] = []
        best = None
        for mask in row:
            if best is not None and total[mask] != best:
                break
            if not mask & taken and mask & required == required:
                best = total[mask]
                found.append(mask)
        return found

    def _cliques(self, near: tuple[int, ...]) -> list[list[int]]:
        good = [True]
        for place in range(self.size):
            far = ~near[place]
            good += [ok and not mask & far for mask, ok in enumerate(good)]
        return [[mask for mask in row if good[mask]] for row in self.rows]


def _sums(weights: Sequence[Sequence[int]]) -> tuple[list[int], list[int]]:
    """The worth and the number of members of every set, each from the sets without its last."""
    total, count = [0], [0]
    for place, row in enumerate(weights):
        to_last = [0]
        for other in range(place):
            extra = row[other]
            to_last += [value + extra for value in to_last]
        total += [before + more for before, more in zip(total, to_last)]
        count += [many + 1 for many in count]
    return total, count
