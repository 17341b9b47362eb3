# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a set leaves for the next request: fragmentation of whole GPUs. Pure.

Packed, in this order: the most GPUs that nobody is on, the most link worth among these (so a single
goes to a GPU whose NVLink partner is busy, or which has none), the best sets of the sizes that are
asked for on this host, and free GPUs gathered on few NUMA nodes. Spread, the free ones are left
evenly over the nodes first. Where devices are shared, the memory that is left and lost to what is
usually asked for comes before all these (``fragmentation``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from .fabric import Fabric, members_of
from .fragmentation import STEP, USUAL, WHOLE, State, of_mix
from .model import SPREAD, Request
from .weights import HALVES

# More sets than this are thinned out by their first terms before the dearer ones are asked.
_MOST = 32

# Tables remember the best worth by set and size; a bound keeps them small.
_MOST_KNOWN = 50_000


class Left:
    """``free`` are the GPUs that nobody is on before the request.

    ``milli`` are the thousandths of each GPU's memory that are free, and ``ask`` what a shared
    request takes of each; () where it is not shared.
    """

    def __init__(
        self,
        fabric: Fabric,
        free: int,
        request: Request,
        milli: Sequence[int] = (),
        ask: Sequence[int] = (),
    ) -> None:
        self._fabric = fabric
        self._free = free
        self._spread = request.policy == SPREAD
        mix = request.mix or USUAL
        self._sizes = [(many, share) for many, part, share in mix if part >= WHOLE]
        self._milli, self._ask = milli, ask
        self._measure = of_mix(request.mix) if milli else None
        self._known: dict[int, tuple[float, ...]] = {}

    @property
    def words(self) -> tuple[str, ...]:
        """What the terms are, for an explanation."""
        terms = ("free GPUs", "links of the free GPUs", "links of the usual sizes")
        gathered = "free GPUs gathered on nodes"
        ordered = (gathered, *terms) if self._spread else (*terms, gathered)
        return ("memory not lost to others", *ordered) if self._measure else ordered

    def after(self, mask: int) -> tuple[float, ...]:
        """What is left once this set is taken; more is better, term by term."""
        if self._measure is not None:
            return (self.unlost(mask), *self._whole(self._free & ~mask))
        return self._whole(self._free & ~mask)

    def _whole(self, rest: int) -> tuple[float, ...]:
        known = self._known.get(rest)
        if known is None:
            if len(self._known) > _MOST_KNOWN:
                self._known.clear()
            gathered = self._gathered(rest)
            known = (*self._cheap(rest), self._of_mix(rest))
            known = (-gathered, *known) if self._spread else (*known, gathered)
            self._known[rest] = known
        return known

    def shortlist(self, masks: Sequence[int]) -> list[int]:
        """Those worth a closer look: all of few, of many those with the best first terms."""
        if len(masks) <= _MOST or self._measure is not None:
            return list(masks)
        cheap = {mask: self._first(self._free & ~mask) for mask in masks}
        most = max(cheap.values())
        return [mask for mask in masks if cheap[mask] == most][:_MOST]

    def unlost(self, mask: int) -> float:
        """The memory of shared devices that is not lost to others, 0 is the best there is.

        In fortieths of a GPU, so that the last MiB decides nothing.
        """
        if self._measure is None:
            return 0.0
        after = sorted(
            one - (self._ask[place] if mask >> place & 1 else 0)
            for place, one in enumerate(self._milli)
        )
        lost = self._measure.amount(State(0, 0, tuple(max(0, one) for one in after)))
        return -float(round(lost / STEP))

    def _first(self, rest: int) -> tuple[float, ...]:
        return (-self._gathered(rest),) if self._spread else self._cheap(rest)

    def _cheap(self, rest: int) -> tuple[float, ...]:
        return (float(bin(rest).count("1")), self._fabric.worth(rest) / HALVES)

    def _of_mix(self, rest: int) -> float:
        table = self._fabric.table
        if table is None:
            return 0.0
        value = 0.0
        for size, share in self._sizes:
            if size > 1 and size <= table.size:
                found = table.first(rest, size)
                if found:
                    value += share * table.total[found] / (HALVES * size * (size - 1))
        return round(value, 6)

    def _gathered(self, rest: int) -> float:
        nodes = Counter(self._fabric.nodes[i] for i in members_of(rest))
        return float(sum(many * many for many in nodes.values()))
