# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One budget of time for a whole proof."""

from __future__ import annotations

from time import monotonic


class DeadlinePassedError(Exception):
    """The time that the user gave is over."""


class Budget:
    """Seconds that are spent from now on, whoever spends them."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._end = monotonic() + seconds

    @property
    def spent(self) -> bool:
        """Is nothing left?"""
        return monotonic() >= self._end

    def left(self) -> float:
        """Seconds left, more than 0. Raises DeadlinePassedError when there are none."""
        left = self._end - monotonic()
        if left <= 0:
            raise DeadlinePassedError(f"the {self._seconds:g} s of deadline_s are over")
        return left

    def at_least(self, seconds: float) -> None:
        """Allow this many seconds from now, for what must be done in any case."""
        self._end = max(self._end, monotonic() + seconds)
