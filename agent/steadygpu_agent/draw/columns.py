# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The PCIe tree as columns of known width: cards, stacks of network adapters, bars. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Union

from steadygpu_agent.draw.tree import Branch, Leaf, Panel, Part

# A GPU, a stack of network adapters, or a bar with all that is below it.
Column = Union[Leaf, tuple[Leaf, ...], Branch]

_NICS_IN_ROW = 10


@dataclass(frozen=True)
class Sizes:
    """How large the parts of one picture are."""

    gpu_width: float = 176.0
    gpu_height: float = 94.0
    nic_width: float = 88.0
    nic_height: float = 30.0
    gap: float = 12.0

    nic_gap: float = 8.0

    @property
    def nics_in_stack(self) -> int:
        """As many as fit beside a GPU's card."""
        return max(int((self.gpu_height + self.nic_gap) // (self.nic_height + self.nic_gap)), 1)

    def stack_height(self, row: Sequence[Panel]) -> float:
        """Of the highest stack where a row has no GPU."""
        tallest = max(len(column) for panel in row for column in _stacks(panel.children, self))
        return tallest * self.nic_height + (tallest - 1) * self.nic_gap

    def width(self, column: Column) -> float:
        """Of one column, all that hangs below a bar included."""
        if isinstance(column, Branch):
            return columns_width(columns(column.children, self), self)
        return self.gpu_width if isinstance(column, Leaf) else self.nic_width


def columns(parts: Sequence[Part], sizes: Sizes) -> list[Column]:
    """``parts`` from left to right, neighbouring network adapters in stacks.

    Beside a GPU a stack is as high as its card; adapters alone stand in a row.
    """
    alone = all(isinstance(part, Leaf) and part.nic for part in parts)
    most = -(-len(parts) // _NICS_IN_ROW) if alone else sizes.nics_in_stack
    found: list[Column] = []
    for part in parts:
        if not (isinstance(part, Leaf) and part.nic):
            found.append(part)
        elif found and isinstance(found[-1], tuple) and len(found[-1]) < most:
            found[-1] = (*found[-1], part)
        else:
            found.append((part,))
    return found


def columns_width(used: Sequence[Column], sizes: Sizes) -> float:
    """Of all of them beside each other."""
    return sum(sizes.width(column) for column in used) + sizes.gap * (len(used) - 1)


def depth(parts: Sequence[Part]) -> int:
    """How many bars lie above the deepest device."""
    return max((1 + depth(part.children) for part in parts if isinstance(part, Branch)), default=0)


def _stacks(parts: Sequence[Part], sizes: Sizes) -> list[tuple[Leaf, ...]]:
    found: list[tuple[Leaf, ...]] = []
    for column in columns(parts, sizes):
        if isinstance(column, tuple):
            found.append(column)
        elif isinstance(column, Branch):
            found += _stacks(column.children, sizes)
    return found
