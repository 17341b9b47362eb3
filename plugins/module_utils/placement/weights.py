# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the link between two GPUs is worth, as whole numbers. Pure.

Twice the anchors' numbers, so that halves are whole: SYS 1, NODE 2, PHB 3, PXB 4, PIX 5, one board
6, k NVLinks 5 + 10 k, and 0.5 more on one NUMA node without NVLink. One NVLink is thus worth more
than any PCIe path, as on every machine on which both were measured; the numbers are ranks and
no bandwidths. A pair that nobody knows is worth nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Optional

from ..claims.model import LINKS
from ..topology.levels import SELF, is_level, nvlinks
from .model import PlacementError

HALVES = 2  # a weight divided by it is the number people know

_PCIE = {"SYS": 2, "NODE": 4, "PHB": 6, "PXB": 8, "PIX": 10, "INTERNAL": 12}
_NVLINK_BASE = 10
_NVLINK = 20
_SAME_NODE = 1

Matrix = Sequence[Sequence[Optional[str]]]


def weight(word: str | None, same_node: bool = False) -> int:
    """What a level word is worth; ``same_node`` only where both nodes are known."""
    if word is None:
        return 0
    count = nvlinks(word)
    if count:
        return _NVLINK_BASE + _NVLINK * count
    return _PCIE[word] + (_SAME_NODE if same_node else 0)


def matrix(levels: Matrix, nodes: Sequence[int | None]) -> tuple[tuple[int, ...], ...]:
    """The weights of all pairs. Raises PlacementError for a matrix that is none, see check()."""
    check(levels, len(nodes))
    return tuple(
        tuple(
            0 if i == j else weight(word, nodes[i] is not None and nodes[i] == nodes[j])
            for j, word in enumerate(row)
        )
        for i, row in enumerate(levels)
    )


def check(levels: Matrix, size: int) -> None:
    """Raises PlacementError, which names the cell, unless this is a symmetric level matrix."""
    if len(levels) != size or any(len(row) != size for row in levels):
        shape = f"{len(levels)} rows of {', '.join(str(len(row)) for row in levels[:8])}"
        raise PlacementError(f"the link matrix has {shape}; wanted is {size} × {size}")
    for i, row in enumerate(levels):
        for j, word in enumerate(row):
            if word is not None and not (isinstance(word, str) and is_level(word)):
                raise PlacementError(
                    f"between GPU {i} and {j} stands {word!r}; wanted is NV#, PIX, PXB, PHB, NODE "
                    "or SYS, or null where it is not known"
                )
            if (word == SELF) != (i == j) and not (i == j and word is None):
                raise PlacementError(
                    f"between GPU {i} and {j} stands {word!r}; {SELF} belongs on the diagonal only"
                )
            if levels[j][i] != word:
                raise PlacementError(
                    f"the link matrix is not symmetric: GPU {i} to {j} is {word}, {j} to {i} is "
                    f"{levels[j][i]}"
                )


def step(word: str | None) -> int | None:
    """The place of a word among the claims' tiers, 0 for NVLink; None where it is not known."""
    if word is None:
        return None
    if nvlinks(word):
        return 0
    # One board is at least as near as one switch, and claims have no word of their own for it.
    return LINKS.index("pix" if word == "INTERNAL" else word.lower())
