# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the NVLinks of a machine form, and which GPUs have fewer than they should. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ansible_collections.steadygpu.host.plugins.module_utils.topology.levels import nvlinks
from ansible_collections.steadygpu.host.plugins.module_utils.topology.model import Machine
from ansible_collections.steadygpu.host.plugins.module_utils.topology.remarks import weakened

# nvml.h: NVML_NVLINK_MAX_LINKS. A row that adds up to more has a switch in between.
_MAX_LINKS = 18


@dataclass(frozen=True)
class Link:
    """``count`` NVLinks straight between the GPUs at the indexes ``one`` < ``other``."""

    one: int
    other: int
    count: int


@dataclass(frozen=True)
class Fabric:
    """The NVLinks of a machine.

    ``switched`` has the links of each GPU into the NVSwitches, by index; it is empty where the
    GPUs are wired to each other, then ``direct`` has the wires. ``short`` has the links of each
    GPU that lost some, ``expected`` is the most that any GPU has to one place.
    """

    switched: dict[int, int]
    direct: tuple[Link, ...]
    expected: int
    short: dict[int, int]


def read(machine: Machine) -> Fabric:
    """The fabric behind the words of the matrix.

    Between two GPUs on NVSwitches the matrix has the links each of them has into the switches,
    between two others the wires between them; the sum of a row tells which it is.
    """
    direct = tuple(
        Link(one, other, count)
        for one, row in enumerate(machine.levels)
        for other, word in enumerate(row)
        if one < other and (count := nvlinks(word or ""))
    )
    rows = [_row(direct, index) for index in range(len(machine.gpus))]
    most = [max(row, default=0) for row in rows]
    short = {index: most[index] for index in weakened(machine)}
    expected = max(most, default=0)
    if direct and (machine.nvswitches or max(sum(row) for row in rows) > _MAX_LINKS):
        return Fabric({i: count for i, count in enumerate(most) if count}, (), expected, short)
    return Fabric({}, direct, expected, short)


def losses(fabric: Fabric) -> dict[int, str]:
    """By GPU how many NVLinks it has left, where it lost some."""
    return {index: f"{left} of {fabric.expected} NVLinks" for index, left in fabric.short.items()}


def _row(direct: Sequence[Link], index: int) -> list[int]:
    return [link.count for link in direct if index in (link.one, link.other)]
