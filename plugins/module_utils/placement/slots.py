# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where on a GPU a new MIG device goes so that the most can still follow. Pure.

A start is judged by what remains possible beside it: for each profile that is asked for, how many
of it alone would still fit, weighted by how often it is asked for and by its size. Everything is
tried: a GPU has at most seven starts for a profile.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..mig import fitting
from ..mig.fitting import Layout
from ..mig.model import Geometry, Placement, Profile

# A layout is asked for its room again and again: one memory a geometry, of this many layouts.
_MOST_KNOWN = 20_000


class Room:
    """What one model of GPU still has room for.

    ``mix`` is the share of requests for each profile; without it all profiles count the same.
    """

    def __init__(self, geometry: Geometry, mix: Mapping[str, float] | None = None) -> None:
        self.geometry = geometry
        # The order in which fitting.capacity counts.
        self._profiles = sorted(
            geometry.profiles, key=lambda one: (-one.slices, -_size(one), one.name)
        )
        self._shares = [_share(one, mix) for one in self._profiles]
        self._known: dict[Layout, tuple[tuple[int, ...], float]] = {}

    def starts(self, layout: Layout, profile: Profile) -> list[Placement]:
        """Where the profile still fits beside ``layout``."""
        if not self._look(layout)[0][self._profiles.index(profile)]:
            return []
        return [
            place
            for place in profile.placements
            if not any(place.overlaps(other) for _name, other in layout)
        ]

    def best(self, layout: Layout, profile: Profile) -> tuple[float, Placement] | None:
        """The start that costs the least, and its cost; None where it does not fit.

        Of equal ones the last, as the first start is where the largest profiles lie.
        """
        before = self.value(layout)
        found = [
            (before - self.value(with_instance(layout, profile.name, place)), place)
            for place in self.starts(layout, profile)
        ]
        return min(found, key=lambda one: (one[0], -one[1].start), default=None)

    def choose(self, gpus: Sequence[Layout], profile: Profile) -> tuple[int, Placement] | None:
        """Of several GPUs of this model the one, and the start on it; None where none has room.

        An empty GPU only where no other has room, as the largest profiles need a whole one.
        """
        found = [
            (layout == (), cost, number, place)
            for number, layout in enumerate(gpus)
            for best in [self.best(layout, profile)]
            if best is not None
            for cost, place in [best]
        ]
        if not found:
            return None
        _empty, _cost, number, place = min(found, key=lambda one: one[:3])
        return number, place

    def value(self, layout: Layout) -> float:
        """What is still possible beside ``layout``, in compute slices."""
        return self._look(layout)[1]

    def _look(self, layout: Layout) -> tuple[tuple[int, ...], float]:
        known = self._known.get(layout)
        if known is None:
            if len(self._known) > _MOST_KNOWN:
                self._known.clear()
            room = fitting.capacity(self.geometry, layout)
            value = sum(
                share * profile.slices * many
                for profile, share, many in zip(self._profiles, self._shares, room)
            )
            known = self._known[layout] = (room, value)
        return known


def with_instance(layout: Layout, name: str, place: Placement) -> Layout:
    """The layout with one more instance."""
    return tuple(sorted((*layout, (name, place))))


def without_instance(layout: Layout, name: str, place: Placement) -> Layout:
    """The layout with one instance less."""
    rest = list(layout)
    rest.remove((name, place))
    return tuple(rest)


def layout_of(instances: Sequence[tuple[str, Placement]]) -> Layout:
    """A layout in its canonical order."""
    return tuple(sorted(instances))


def _share(profile: Profile, mix: Mapping[str, float] | None) -> float:
    """How often it is asked for; by default all plain profiles alike, and no special ones."""
    if mix is not None:
        return mix.get(profile.name, 0.0)
    return 0.0 if "+" in profile.name or "-" in profile.name else 1.0


def _size(profile: Profile) -> int:
    return max((place.size for place in profile.placements), default=0)
