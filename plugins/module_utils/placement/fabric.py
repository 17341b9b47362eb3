# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The links of one machine, made ready once, and the sets with the best of them. Pure.

Make one for a machine and keep it: it depends on links and NUMA nodes, not on who uses what.
A set of GPUs is the bits of a number, bit i for row i of the matrix.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ..topology.levels import nvlinks
from . import classes, subsets, weights
from .model import Host
from .weights import Matrix

# Up to here counting classes beats reading the sorted table, whose ties are many on such a fabric.
_FEW_WAYS = 256
# Beyond so many sums of pairs a large, irregular machine is searched by exchange, without a proof.
_MOST_WORK = 2_000_000


@dataclass(frozen=True)
class Found:
    """The sets with the best links, of alike GPUs only those ranked first."""

    masks: tuple[int, ...]
    exact: bool = True


class Fabric:
    """``levels`` are words of nvidia-smi topo -m, ``nodes`` the GPUs' NUMA nodes.

    Raises PlacementError for a matrix that is none. ``pairs`` may bring other weights, whole
    numbers, for a scoring that is not ours.
    """

    def __init__(
        self,
        levels: Matrix,
        nodes: Sequence[int | None],
        pairs: Sequence[Sequence[int]] | None = None,
    ) -> None:
        self.levels = tuple(tuple(row) for row in levels)
        self.nodes = tuple(nodes)
        self.size = len(nodes)
        self.pairs = weights.matrix(levels, nodes) if pairs is None else pairs
        self.nvlinks = tuple(tuple(nvlinks(word or "") for word in row) for row in levels)
        self.classes = classes.of(self.pairs, nodes)
        self.counted = self.size > subsets.MOST or (
            self.size > subsets.MOST // 2 and classes.ways(self.classes) <= _FEW_WAYS
        )
        self.table = None if self.size > subsets.MOST else subsets.Table(self.pairs)
        self._near: dict[int, tuple[int, ...]] = {}

    def worth(self, mask: int) -> int:
        """The sum of the weights of all pairs of a set."""
        if self.table is not None:
            return self.table.total[mask]
        members = members_of(mask)
        return sum(self.pairs[i][j] for i in members for j in members if i < j)

    def near(self, step: int) -> tuple[int, ...]:
        """For each GPU those within that tier of it, itself among them. Unknown is not near."""
        known = self._near.get(step)
        if known is None:
            known = self._near[step] = tuple(
                1 << i
                | mask_of(
                    j for j, word in enumerate(row) if j != i and _within(weights.step(word), step)
                )
                for i, row in enumerate(self.levels)
            )
        return known

    def all_near(self, mask: int, step: int) -> bool:
        """Are all members within that tier of each other?"""
        near = self.near(step)
        return all(not mask & ~near[i] for i in members_of(mask))

    def farthest(self, mask: int) -> str | None:
        """The worst word between two members; None for one GPU, or where a pair is not known."""
        members = members_of(mask)
        words = [self.levels[i][j] for i in members for j in members if i < j]
        if not words or None in words:
            return None
        return min(words, key=weights.weight)

    def best(
        self,
        pool: int,
        size: int,
        required: int = 0,
        step: int | None = None,
        rank: Sequence[int] = (),
    ) -> Found:
        """The sets of ``size`` within ``pool``, with all of ``required``, whose links are best.

        ``step`` asks that all are within that tier of each other. ``rank`` orders GPUs that are
        alike, the lowest first; by default by place.
        """
        order = rank or range(self.size)
        ranked = [
            sorted(members_of(mask & pool), key=lambda i: (not required >> i & 1, order[i], i))
            for mask in self.classes
        ]
        if not self.counted:
            return Found(self._from_table(pool, size, required, step, ranked))
        if _ways(ranked, size) * len(ranked) ** 2 <= _MOST_WORK:
            return Found(self._from_classes(size, required, step, ranked))
        return Found(self._exchanged(pool, size, required, step, order), exact=False)

    def candidates(self, pool: int, size: int, required: int = 0) -> Iterator[int]:
        """Every set of ``size``, for an explanation; the best links first where there is a table.

        Without a table those of alike GPUs that are taken in order.
        """
        if self.table is not None:
            yield from self.table.all_of(pool, size, required)
            return
        ranked = [members_of(mask & pool) for mask in self.classes]
        for counts in classes.combinations(ranked, size):
            mask = _taken(ranked, counts)
            if mask & required == required:
                yield mask

    def _from_table(
        self, pool: int, size: int, required: int, step: int | None, ranked: list[list[int]]
    ) -> tuple[int, ...]:
        if self.table is None:
            return ()
        if step is None:
            found = self.table.best(pool, size, required)
        else:
            found = self.table.best_within(pool, size, self.near(step), required)
        if len(found) == 1:
            return tuple(found)
        for members in ranked:
            if len(members) > 1:
                alike = mask_of(members)
                first = frozenset(classes.prefixes(members))
                found = [mask for mask in found if mask & alike in first]
        return tuple(found)

    def _from_classes(
        self, size: int, required: int, step: int | None, ranked: list[list[int]]
    ) -> tuple[int, ...]:
        ranked = [members for members in ranked if members]
        within = [self.pairs[one[0]][one[1]] if len(one) > 1 else 0 for one in ranked]
        between = [[self.pairs[one[0]][other[0]] for other in ranked] for one in ranked]
        best: list[int] = []
        most = -1
        for counts in classes.combinations(ranked, size):
            worth = 0
            for a, many in enumerate(counts):
                if many:
                    worth += many * (many - 1) // 2 * within[a]
                    row = between[a]
                    for b in range(a):
                        worth += many * counts[b] * row[b]
            if worth < most:
                continue
            mask = _taken(ranked, counts)
            if mask & required != required or (step is not None and not self.all_near(mask, step)):
                continue
            if worth > most:
                best, most = [], worth
            best.append(mask)
        return tuple(best)

    def _exchanged(
        self, pool: int, size: int, required: int, step: int | None, order: Sequence[int]
    ) -> tuple[int, ...]:
        """Grown from every seed, then bettered by exchanging one GPU at a time."""
        best, most = 0, -1
        for seed in members_of(pool):
            mask = required | 1 << seed
            if bin(mask).count("1") > size:
                mask = required
            while bin(mask).count("1") < size:
                near = [i for i in members_of(pool & ~mask) if self._joins(mask, i, step)]
                if not near:
                    break
                mask |= 1 << max(near, key=lambda i: (self._gain(mask, i), -order[i], -i))
            if bin(mask).count("1") < size:
                continue
            mask = self._bettered(mask, pool, required, step)
            worth = self.worth(mask)
            if worth > most:
                best, most = mask, worth
        return (best,) if most >= 0 else ()

    def _bettered(self, mask: int, pool: int, required: int, step: int | None) -> int:
        while True:
            gains = [
                (self._gain(without, i) - self._gain(without, out), without | 1 << i)
                for out in members_of(mask & ~required)
                for without in [mask & ~(1 << out)]
                for i in members_of(pool & ~mask)
                if self._joins(without, i, step)
            ]
            gain, better = max(gains, default=(0, mask))
            if gain <= 0:
                return mask
            mask = better

    def _gain(self, mask: int, one: int) -> int:
        return sum(self.pairs[one][i] for i in members_of(mask))

    def _joins(self, mask: int, one: int, step: int | None) -> bool:
        return step is None or not mask & ~self.near(step)[one]


def of_host(host: Host) -> Fabric:
    """The fabric of a host's GPUs. Raises PlacementError."""
    return Fabric(host.levels, [gpu.device.numa_node for gpu in host.gpus])


def members_of(mask: int) -> list[int]:
    """The places of a set, ascending."""
    found = []
    while mask:
        low = mask & -mask
        found.append(low.bit_length() - 1)
        mask ^= low
    return found


def mask_of(places: Iterable[int]) -> int:
    """The set of these places."""
    mask = 0
    for place in places:
        mask |= 1 << place
    return mask


def _within(step: int | None, most: int) -> bool:
    return step is not None and step <= most


def _ways(ranked: Sequence[Sequence[int]], size: int) -> int:
    """In how many ways so many can be taken of these classes."""
    ways = [1] + [0] * size
    for members in ranked:
        most = len(members)
        ways = [sum(ways[max(0, taken - most) : taken + 1]) for taken in range(size + 1)]
    return ways[size]


def _taken(ranked: Sequence[Sequence[int]], counts: Sequence[int]) -> int:
    return mask_of(place for members, many in zip(ranked, counts) for place in members[:many])
