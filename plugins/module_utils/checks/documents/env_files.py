# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Files of environment variables, as a model for rules. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from ..model import Given, Position


@dataclass(frozen=True)
class EnvEntry:
    """One line that sets a variable. ``value.value`` is without quotes; ``raw`` has them.

    ``spaced`` says that blanks stand around the equals sign, ``export`` that the word does.
    """

    name: str
    value: Given
    raw: str
    spaced: bool = False
    export: bool = False


@dataclass(frozen=True)
class EnvFile:
    """One file of variables. ``example`` is true for ``.env.example`` and its like."""

    at: Position
    entries: tuple[EnvEntry, ...]
    example: bool = False

    def last(self, name: str) -> EnvEntry | None:
        """The entry that counts for a name: the last one."""
        return next((entry for entry in reversed(self.entries) if entry.name == name), None)
