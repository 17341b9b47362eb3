# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is wished of packages, and what a package manager says that it would do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

# In the place of a version.
PRESENT = "present"
CANDIDATE = "candidate"


class PackageError(Exception):
    """The package manager failed. Says what it said."""


class FetchError(PackageError):
    """Packages could not be downloaded; nothing was changed."""


class RefusedError(PackageError):
    """Nothing was changed; says what was seen, what was wanted and what to do.

    ``would_change`` and ``would_remove`` name packages when they are the reason.
    """

    def __init__(
        self, text: str, would_change: Sequence[str] = (), would_remove: Sequence[str] = ()
    ) -> None:
        super().__init__(text)
        self.would_change = tuple(would_change)
        self.would_remove = tuple(would_remove)


class MissingError(RefusedError):
    """No package source of the host has a version that is wanted, as far as its lists tell."""


@dataclass(frozen=True)
class Wish:
    """The options of the module ``package_set``, which documents them.

    ``packages`` maps names to an exact version, a pattern with ``*``, PRESENT or CANDIDATE.
    """

    packages: Mapping[str, str]
    present: bool = True
    hold: bool = True
    on_newer: str = "adopt"
    also_change: Sequence[str] = ()
    also_remove: Sequence[str] = ()
    files: Sequence[str] = ()
    offline: bool = False
    options: Sequence[str] = ()
    update_cache: bool = True
    guard_upgrades: bool = False
    lock_timeout_s: float = 300.0
    deadline_s: float = 1800.0


@dataclass(frozen=True)
class Solution:
    """What a transaction would do: packages by name, ``changed`` those of another version now.

    ``versions`` are those that ``new`` and ``changed`` would get; ``configured`` are packages that
    somebody else left half done and that would be finished on the way.
    """

    new: frozenset[str] = frozenset()
    changed: frozenset[str] = frozenset()
    removed: frozenset[str] = frozenset()
    versions: Mapping[str, str] = field(default_factory=dict)
    configured: frozenset[str] = frozenset()
