# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The live values that lie between two records of one owner: for a restore of a checkpoint.

The files of a checkpoint hold the record from then. What the kernel holds is as the record from now
says, and a file that is put back does not change it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from .live import write_live
from .model import Target
from .readback import live_value, same_value
from .record import Former, Record


@dataclass(frozen=True)
class Move:
    """One live value: ``seen`` now, ``back`` as it was then."""

    target: Target
    seen: str | None
    back: str

    @property
    def text(self) -> str:
        """What is done, in words."""
        return f"set {self.target.name} to {self.back} (is {self.seen or 'unset'})"


def moves(now: Record | None, then: Record | None, root: str = "/") -> list[Move]:
    """What must be written so that the kernel holds what it held under ``then``.

    A value that neither record explains is somebody else's and stays. Raises OSError.
    """
    found = []
    for target, ours, back in _wanted(now, then):
        seen = live_value(target, root)
        if back is None or same_value(target, seen, back):
            continue
        if any(one is not None and same_value(target, seen, one) for one in ours):
            found.append(Move(target, seen, back))
    return found


def carry_out(found: list[Move], root: str = "/") -> list[str]:
    """Write them all. Returns what was refused, a sentence for each."""
    refused = []
    for move in found:
        try:
            write_live(move.target, move.back, root)
        except OSError as error:
            refused.append(f"{move.target.name} could not be set to {move.back}: {error.strerror}")
    return refused


_Wanted = tuple[Target, tuple["str | None", ...], "str | None"]


def _wanted(now: Record | None, then: Record | None) -> Iterator[_Wanted]:
    """Targets, what we may have left there, and what was there then."""
    here = {one.target.identity: one for one in (*now.formers, *now.returning)} if now else {}
    there = {one.target.identity: one for one in then.formers} if then else {}
    # Backwards: of a pair such as runtime and period, one bounds the other.
    for identity, one in reversed(list(here.items())):
        if one.target.is_live and identity not in there:
            yield one.target, _left(one), _before(one)
    for identity, one in there.items():
        if one.target.is_live:
            since = here.get(identity)
            # Without a record now, our own way back has put its former value there.
            ours = _left(since) if since else (one.value, one.target.neutral or None)
            yield one.target, ours, one.target.wanted


def _left(one: Former) -> tuple[str | None, ...]:
    return one.target.wanted, one.left


def _before(one: Former) -> str | None:
    return one.value if one.value is not None else one.target.neutral or None
