# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How near two GPUs are as a number from 0 to 1. Pure.

``derived`` is a rank, not a bandwidth: 0.40 is nearer than 0.25 and nothing more. Its order is
that of levels.py, and every NVLink pair is above every PCIe pair:

    1.00 the GPU itself
    0.70 + 0.30 · k / most   k NVLinks, ``most`` those of the machine's best pair
    0.68 INTERNAL · 0.65 PIX · 0.55 PXB · 0.40 PHB · 0.25 NODE · 0.10 SYS

The steps are wide where the path leaves a switch (0.55 to 0.40) and where it leaves a socket
(0.25 to 0.10), because there an allocation must not be talked into crossing by a small gain
elsewhere. They come from this ordering, not from a measurement.

``measured`` is a share of the bandwidth of the machine's best pair. The two kinds are never
mixed in one matrix: a pair that was not measured is None in a measured matrix.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Optional

from .levels import SELF, nvlinks

DERIVED = "derived"
MEASURED = "measured"

Levels = Sequence[Sequence[Optional[str]]]
Affinity = list[list[Optional[float]]]

_PCIE = {"INTERNAL": 0.68, "PIX": 0.65, "PXB": 0.55, "PHB": 0.40, "NODE": 0.25, "SYS": 0.10}
_NVLINK_LEAST = 0.70
_NVLINK_SPAN = 0.30
_DIGITS = 4


def derived(levels: Levels) -> Affinity:
    """The rank of every pair of a level matrix; None where the level is unknown."""
    most = max((nvlinks(word) for row in levels for word in row if word), default=0)
    return [[_rank(word, most) for word in row] for row in levels]


def measured(levels: Levels, bandwidth: Sequence[Sequence[float | None]]) -> Affinity:
    """Each pair's share of the best pair's bandwidth (GB/s, one row a source).

    A pair counts by its slower direction. Raises ValueError when the two matrices are not of
    one size.
    """
    if [len(row) for row in levels] != [len(row) for row in bandwidth]:
        raise ValueError(
            f"{len(levels)} GPUs and a bandwidth matrix of {len(bandwidth)} rows: give the "
            "matrix of this machine, one row and one column a GPU"
        )
    slower = [
        [_slower(bandwidth[i][j], bandwidth[j][i]) for j in range(len(levels))]
        for i in range(len(levels))
    ]
    pairs = [
        speed for i, row in enumerate(slower) for j, speed in enumerate(row) if i != j and speed
    ]
    best = max(pairs, default=None)
    return [
        [1.0 if levels[i][j] == SELF else _share(speed, best) for j, speed in enumerate(row)]
        for i, row in enumerate(slower)
    ]


def _rank(word: str | None, most: int) -> float | None:
    if word is None:
        return None
    if word == SELF:
        return 1.0
    links = nvlinks(word)
    if links:
        return round(_NVLINK_LEAST + _NVLINK_SPAN * links / most, _DIGITS)
    return _PCIE.get(word)


def _slower(there: float | None, back: float | None) -> float | None:
    known = [speed for speed in (there, back) if speed is not None]
    return min(known, default=None)


def _share(speed: float | None, best: float | None) -> float | None:
    return None if speed is None or not best else round(speed / best, _DIGITS)
