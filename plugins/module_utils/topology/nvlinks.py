# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""NVLinks of a whole machine to level words, for sources that list them link by link. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .levels import SELF

# A GPU's key to the number of links to each other end: another GPU's key, or a switch.
Links = Mapping[str, Mapping[str, int]]


def between(one: str, other: str, direct: Links, to_switches: Mapping[str, int]) -> int:
    """How many NVLinks join two GPUs, directly, else through NVSwitch.

    A link counts when both ends list it. Through switches every link of a GPU reaches every
    other GPU, so the smaller number bounds the pair.
    """
    own = min(direct.get(one, {}).get(other, 0), direct.get(other, {}).get(one, 0))
    return own or min(to_switches.get(one, 0), to_switches.get(other, 0))


def matrix(
    keys: Sequence[str],
    pcie: Sequence[Sequence[str | None]],
    direct: Links,
    to_switches: Mapping[str, int],
) -> tuple[tuple[str | None, ...], ...]:
    """The levels of all pairs: NVLink where there is one, else the PCIe word of ``pcie``."""
    rows = []
    for i, one in enumerate(keys):
        row: list[str | None] = []
        for j, other in enumerate(keys):
            count = 0 if i == j else between(one, other, direct, to_switches)
            row.append(SELF if i == j else f"NV{count}" if count else pcie[i][j])
        rows.append(tuple(row))
    return tuple(rows)
