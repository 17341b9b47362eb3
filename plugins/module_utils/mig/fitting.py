# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which GPU instances fit on one GPU together, and where.

Everything here is exact: a GPU has at most twelve memory slices and a profile at most seven
places, so that all layouts can be looked at.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations

from .model import Geometry, Placement, Profile

# One layout: (profile, placement) of every GPU instance, in order of profile and placement.
Layout = tuple[tuple[str, Placement], ...]


def layouts(geometry: Geometry, counts: Mapping[str, int]) -> Iterator[Layout]:
    """Every way to place ``counts`` instances per profile on an empty GPU; none: impossible.

    Profiles that are not in ``geometry`` raise KeyError.
    """
    profiles = sorted(
        (_named(geometry, name) for name, count in counts.items() if count),
        # The largest first: they have the fewest places.
        key=lambda profile: (-_size(profile), profile.name),
    )
    if _short_of(geometry, counts):
        return
    yield from _place(profiles, counts, ())


def fits(geometry: Geometry, counts: Mapping[str, int]) -> bool:
    """Is there any layout with these instances?"""
    return next(layouts(geometry, counts), None) is not None


def most_alone(geometry: Geometry, profile: Profile) -> int:
    """How many instances of one profile an empty GPU takes, placements and slices considered."""
    return _room(geometry, profile, ())


def capacity(geometry: Geometry, layout: Layout) -> tuple[int, ...]:
    """What could still be created beside ``layout``: for each profile, how many of it alone.

    Profiles with more compute slices and more memory come first, so that comparing two of
    these tuples asks first for the largest instance one may want next.
    """
    profiles = sorted(geometry.profiles, key=lambda one: (-one.slices, -_size(one), one.name))
    return tuple(_room(geometry, profile, layout) for profile in profiles)


def refusal(geometry: Geometry, counts: Mapping[str, int]) -> str | None:
    """Why these instances do not fit together, for a person; None when they do."""
    for name, count in counts.items():
        most = most_alone(geometry, _named(geometry, name))
        if count > most:
            return f"{count} × {name} do not fit: at most {most} on one {geometry.model}"
    listed = " + ".join(f"{count} × {name}" for name, count in counts.items() if count)
    short = _short_of(geometry, counts)
    if short:
        return f"{listed} do not fit together: {short}"
    if fits(geometry, counts):
        return None
    places = "; ".join(
        f"{name} at {','.join(str(place.start) for place in profile.placements)}"
        f" with {_size(profile)} slices"
        for name in counts
        for profile in [_named(geometry, name)]
    )
    return f"{listed} do not fit together: no choice of places leaves room for all ({places})"


def media_of(geometry: Geometry) -> tuple[int, int]:
    """The decoders and optical flow engines of the whole GPU: those of its largest profile."""
    return (
        max((profile.media[0] for profile in geometry.profiles), default=0),
        max((profile.media[1] for profile in geometry.profiles), default=0),
    )


def _place(profiles: list[Profile], counts: Mapping[str, int], taken: Layout) -> Iterator[Layout]:
    if not profiles:
        yield tuple(sorted(taken))
        return
    profile = profiles[0]
    free = [one for one in profile.placements if not _blocked(one, taken)]
    for chosen in combinations(free, counts[profile.name]):
        if any(one.overlaps(other) for one, other in combinations(chosen, 2)):
            continue
        added = tuple((profile.name, place) for place in chosen)
        yield from _place(profiles[1:], counts, taken + added)


def _room(geometry: Geometry, profile: Profile, layout: Layout) -> int:
    """How many instances of ``profile`` still go beside ``layout``."""
    present = sum(name == profile.name for name, _place in layout)
    limits = [profile.most - present]
    used = [_named(geometry, name) for name, _place in layout]
    if profile.slices:
        free = geometry.compute_slices - sum(one.slices for one in used)
        limits.append(free // profile.slices)
    for kind, total in enumerate(media_of(geometry)):
        if profile.media[kind]:
            free = total - sum(one.media[kind] for one in used)
            limits.append(free // profile.media[kind])
    # The largest number of disjoint places: always take the one that ends first.
    disjoint, end = 0, 0
    for place in sorted(profile.placements, key=lambda one: one.end):
        if place.start >= end and not _blocked(place, layout):
            disjoint, end = disjoint + 1, place.end
    return max(0, min(*limits, disjoint))


def _short_of(geometry: Geometry, counts: Mapping[str, int]) -> str | None:
    """What there is too little of, whatever the places; None when the sums are right."""
    wanted = [(_named(geometry, name), count) for name, count in counts.items()]
    compute = sum(profile.slices * count for profile, count in wanted)
    memory = sum(_size(profile) * count for profile, count in wanted)
    if compute > geometry.compute_slices:
        return f"they need {compute} compute slices, there are {geometry.compute_slices}"
    if memory > geometry.memory_slices:
        return f"they need {memory} memory slices, there are {geometry.memory_slices}"
    for kind, (what, total) in enumerate(
        zip(("decoders", "optical flow engines"), media_of(geometry))
    ):
        needed = sum(profile.media[kind] * count for profile, count in wanted)
        if needed > total:
            return f"they need {needed} {what}, there are {total}"
    if any(count > profile.most for profile, count in wanted):
        return "one of the profiles is wanted more often than the GPU has it"
    return None


def _blocked(place: Placement, layout: Layout) -> bool:
    return any(place.overlaps(other) for _name, other in layout)


def _named(geometry: Geometry, name: str) -> Profile:
    profile = geometry.profile(name)
    if profile is None:
        raise KeyError(name)
    return profile


def _size(profile: Profile) -> int:
    return max((place.size for place in profile.placements), default=0)
