# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What NVIDIA's go-gpuallocator would choose: an option for hosts that move from it, and a peer.

Its policy is not that of ``choose``: all free GPUs are parted into sets of the wanted size so that
the parting as a whole scores best, and the best set of that parting is given. It knows a fixed
list of sets for the DGX-1 and DGX-2 besides. Read from its behaviour at 876e7b76 (Apache-2.0) and
written anew; its own tests are the cases in tests/data/placement. The number of partings grows
beyond reason at 16 GPUs (2,627,625 of size 4), so more than 10 are refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

from ..topology.levels import nvlinks

MOST = 10

_PCIE = {"SYS": 10, "NODE": 20, "PHB": 30, "PXB": 40, "PIX": 50, "INTERNAL": 60}
_NVLINK = 100
_PADDING = -1

Scores = Sequence[Sequence[int]]
Sets = Mapping[int, Sequence[Sequence[int]]]

# By number of GPUs: the sets that its fixed policies know; of one GPU any will do.
DGX1_PASCAL: Sets = {
    2: ((0, 2), (1, 3), (4, 6), (5, 7)),
    4: ((0, 1, 2, 3), (4, 5, 6, 7)),
    8: (tuple(range(8)),),
}
DGX1_VOLTA: Sets = {
    2: ((0, 3), (1, 2), (4, 7), (5, 6)),
    4: ((0, 1, 2, 3), (4, 5, 6, 7)),
    8: (tuple(range(8)),),
}
DGX2_VOLTA: Sets = {
    2: tuple((place, place + 1) for place in range(0, 16, 2)),
    4: tuple(tuple(range(place, place + 4)) for place in range(0, 16, 4)),
    8: (tuple(range(8)), tuple(range(8, 16))),
    16: (tuple(range(16)),),
}


def pair_score(pcie: str | None, links: int) -> int:
    """The PCIe class and 100 for each NVLink; it does not see links through NVSwitch."""
    return _PCIE.get(pcie or "", 0) + _NVLINK * links


def scores(levels: Sequence[Sequence[str | None]], nodes: Sequence[int | None]) -> Scores:
    """The pair scores of a level matrix.

    An NVLink word hides the PCIe class: one NUMA node counts as NODE there, two as SYS.
    """
    return [
        [
            0 if i == j else _of_word(word, nodes[i] is not None and nodes[i] == nodes[j])
            for j, word in enumerate(row)
        ]
        for i, row in enumerate(levels)
    ]


def best_effort(
    pairs: Scores, available: Sequence[int], size: int, required: Sequence[int] = ()
) -> list[int]:
    """Its policy best-effort: the places chosen, ascending; [] where there is no such set.

    Raises ValueError for more than 10 available GPUs.
    """
    if len(available) > MOST:
        raise ValueError(f"{len(available)} GPUs; the partings of more than {MOST} are too many")
    if size < 1 or len(available) < size or len(required) > size:
        return []
    if not set(required) <= set(available):
        return []
    padded = [*available, *([_PADDING] * (-len(available) % size))]
    best: list[tuple[int, ...]] = []
    most = -1
    for parting in _partings(padded, size):
        if required and not any(_serves(one, required) for one in parting):
            continue
        worth = sum(_worth(pairs, one) for one in parting)
        if worth > most:
            best, most = parting, worth
    chosen: tuple[int, ...] = ()
    most = -1
    for one in best:
        if _serves(one, required) and _worth(pairs, one) > most:
            chosen, most = one, _worth(pairs, one)
    return sorted(chosen)


def simple(available: Sequence[int], size: int, required: Sequence[int] = ()) -> list[int]:
    """Its policy simple: the required ones, then the first there are; [] for too few."""
    if len(available) < size or len(required) > size or not set(required) <= set(available):
        return []
    rest = [place for place in available if place not in required]
    return sorted([*required, *rest][:size])


def fixed(
    known: Sets, available: Sequence[int], size: int, required: Sequence[int] = ()
) -> list[int]:
    """Its policies for the DGX-1 and DGX-2: the first known set that is free; [] for none."""
    if not set(required) <= set(available) or len(required) > size or size < 1:
        return []
    sets = [(one,) for one in available] if size == 1 else known.get(size, ())
    for one in sets:
        if set(one) <= set(available) and set(required) <= set(one):
            return sorted(one)
    return []


def _of_word(word: str | None, same_node: bool) -> int:
    links = nvlinks(word or "")
    if not links:
        return pair_score(word, 0)
    return pair_score("NODE" if same_node else "SYS", links)


def _serves(one: Sequence[int], required: Sequence[int]) -> bool:
    return _PADDING not in one and set(required) <= set(one)


def _worth(pairs: Scores, one: Sequence[int]) -> int:
    return sum(pairs[i][j] for i, j in combinations(one, 2) if _PADDING not in (i, j))


def _partings(places: Sequence[int], size: int) -> Iterator[list[tuple[int, ...]]]:
    """Every way to part ``places`` into sets of ``size``, in the order of its members."""
    if not places:
        yield []
        return
    first, rest = places[0], places[1:]
    seen = set()
    for others in combinations(range(len(rest)), size - 1):
        one = (first, *(rest[place] for place in others))
        if one in seen:  # Two paddings are one and the same.
            continue
        # All padding goes into one set, so that the others are whole.
        if _PADDING in one and _PADDING in [rest[k] for k in range(len(rest)) if k not in others]:
            continue
        seen.add(one)
        left = [place for number, place in enumerate(rest) if number not in others]
        for parting in _partings(left, size):
            yield [one, *parting]
