# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""GPUs that are alike, counted instead of listed: how a uniform fabric or a large host is searched.

Two GPUs are alike when they are on one NUMA node and have the same weight to every third. Which
of them is taken changes no link, so a set is described by how many of each class are in it, and
an NVSwitch of 72 GPUs on two nodes has fewer such descriptions than one node of eight has sets.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence


def of(weights: Sequence[Sequence[int]], nodes: Sequence[int | None]) -> tuple[int, ...]:
    """The classes as bit sets, in the order of their first members."""
    found: list[list[int]] = []
    for i in range(len(weights)):
        for members in found:
            if nodes[members[0]] == nodes[i] and _alike(weights, members[0], i):
                members.append(i)
                break
        else:
            found.append([i])
    return tuple(sum(1 << i for i in members) for members in found)


def ways(classes: Sequence[int]) -> int:
    """How many descriptions there are at most."""
    product = 1
    for mask in classes:
        product *= bin(mask).count("1") + 1
    return product


def prefixes(members: Sequence[int]) -> tuple[int, ...]:
    """The sets that take members in order: none, the first, the first two and so on."""
    found = [0]
    for place in members:
        found.append(found[-1] | 1 << place)
    return tuple(found)


def combinations(ranked: Sequence[Sequence[int]], size: int) -> Iterator[tuple[int, ...]]:
    """Every way to take ``size`` in all: how many of each class."""
    if not ranked:
        if size == 0:
            yield ()
        return
    behind = sum(len(members) for members in ranked[1:])
    for here in range(min(size, len(ranked[0])), max(0, size - behind) - 1, -1):
        for rest in combinations(ranked[1:], size - here):
            yield (here, *rest)


def _alike(weights: Sequence[Sequence[int]], one: int, other: int) -> bool:
    row, twin = weights[one], weights[other]
    return all(row[k] == twin[k] for k in range(len(row)) if k not in (one, other))
