# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which checkpoints go. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

_DAY_S = 86400.0

# So many of the newest stay however old the clock says they are.
_WHATEVER_AGE = 3


@dataclass(frozen=True)
class Kept:
    """A checkpoint as far as retention looks at it.

    ``taken_at`` in seconds since the epoch, None where it cannot be read.
    """

    id: str
    sequence: int
    taken_at: float | None


def going(
    checkpoints: Iterable[Kept],
    keep: int,
    max_age_days: float | None,
    now: float,
    needed: Collection[str] = (),
) -> list[str]:
    """The ids of the checkpoints to delete, the oldest first.

    Those beyond the ``keep`` newest go, and those older than ``max_age_days`` (None: no limit) at
    ``now``, seconds since the epoch. Never the ``needed`` ones (labelled, or part of something
    under way), never the newest, and never one of the three newest by its age: a clock that
    jumped ahead must not leave nothing to go back to. What is newer goes by the sequence: a clock
    that jumped back deletes nothing, and one from before a checkpoint was taken says nothing
    about its age.
    """
    newest_first = sorted(checkpoints, key=lambda one: one.sequence, reverse=True)
    gone = []
    for rank, one in enumerate(newest_first):
        if rank == 0 or one.id in needed:
            continue
        if rank >= keep or (rank >= _WHATEVER_AGE and _too_old(one, max_age_days, now)):
            gone.append(one.id)
    return gone[::-1]


def _too_old(one: Kept, max_age_days: float | None, now: float) -> bool:
    if max_age_days is None or one.taken_at is None or one.taken_at > now:
        return False
    return now - one.taken_at > max_age_days * _DAY_S
