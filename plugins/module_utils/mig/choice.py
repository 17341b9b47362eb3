# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which instances stay, which go and where new ones come: the best layout that fulfils a wish.

Of all layouts with the wanted MIG devices that leave the protected instances alone, the one is
taken that, in this order,

1. keeps the most MIG devices that exist, since a program may hold one,
2. keeps the most GPU instances,
3. leaves the most room: see ``fitting.capacity``. A ``1g`` on an empty A100 goes to slice 6,
   where no ``4g`` can lie, a ``3g`` to slice 4, and three ``1c.3g`` go into one ``3g``,
4. starts new instances as far up as possible, so that the same wish always has the same answer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product

from . import fitting, names, render
from .model import ComputeInstance, Geometry, GpuInstance, MigError, Placement, Profile

# The sizes of the compute instances of one GPU instance, largest first.
Bin = tuple[int, ...]


@dataclass(frozen=True)
class Slot:
    """One GPU instance of the layout aimed at.

    ``former`` is the instance that is there now and stays, ``stays`` those of its compute
    instances that stay too, ``missing`` the sizes of those to be made.
    """

    profile: str
    placement: Placement
    former: GpuInstance | None
    stays: tuple[ComputeInstance, ...]
    missing: Bin

    @property
    def kept(self) -> GpuInstance | None:
        """What of the former instance stays."""
        return replace(self.former, compute=self.stays) if self.former else None

    @property
    def target(self) -> GpuInstance:
        """The instance as it will be; its number is known when it exists already."""
        new = tuple(ComputeInstance(size) for size in self.missing)
        former = self.former.id if self.former else None
        return GpuInstance(self.profile, self.placement, self.stays + new, former)


def choose(
    geometry: Geometry,
    devices: Mapping[str, int],
    present: Collection[GpuInstance],
    protected: Collection[int] = (),
) -> list[Slot]:
    """The best layout, in order of placement.

    ``devices`` counts MIG devices by profile; ``present`` are the instances there are now;
    ``protected`` the numbers of those that must stay as they are, though a compute instance may
    be added to them. Raises MigError, without saying which GPU, when there is no such layout.
    """
    options = _packings(geometry, devices)
    best = _best(geometry, options, present, protected)
    if best is None:
        fewest = {profile: min(map(len, ways)) for profile, ways in options.items()}
        refusal = fitting.refusal(geometry, fewest)
        if refusal is None:
            held = [one for one in present if one.id in protected]
            # Those that are in the way each by itself; else it is all of them together.
            blocking = [
                one for one in held if _best(geometry, options, present, [one.id or 0]) is None
            ]
            refusal = _in_the_way(blocking or held)
        raise MigError(refusal)
    return sorted(best, key=lambda slot: slot.placement)


def aim(
    targets: Collection[GpuInstance],
    present: Collection[GpuInstance],
    protected: Collection[int] = (),
) -> list[Slot]:
    """The layout with exactly ``targets``, each at its place, for a layout that comes back.

    What is missing is made in the order given, as the driver numbers it in that order. Raises
    MigError when a protected instance would have to go or to change.
    """
    there = {(one.profile, one.placement): one for one in present}
    slots = []
    for one in targets:
        sizes = tuple(inside.slices for inside in one.compute)
        former = there.get((one.profile, one.placement))
        slot = _slot(one.profile, one.placement, former, sizes)
        slots.append(replace(slot, missing=_missing(sizes, slot.stays)))
    stays = {slot.former.id for slot in slots if slot.former and not _harms(slot, protected)}
    held = [one for one in present if one.id in protected and one.id not in stays]
    if held:
        raise MigError(_in_the_way(held))
    return slots


def _packings(geometry: Geometry, devices: Mapping[str, int]) -> dict[str, list[tuple[Bin, ...]]]:
    """For each GPU instance profile, every way to share its compute instances among instances."""
    sizes: dict[Profile, list[int]] = {}
    for name, count in devices.items():
        if count <= 0:
            continue
        profile, size = _kind(geometry, name)
        # Also keeps an absurd count from becoming a list of that length.
        most = fitting.most_alone(geometry, profile) * (profile.slices // size)
        if count > most:
            raise MigError(f"{count} × {name} do not fit: at most {most} on one {geometry.model}")
        sizes.setdefault(profile, []).extend([size] * count)
    packings = {}
    for profile in sorted(sizes, key=lambda one: one.name):
        ways = _share(tuple(sorted(sizes[profile], reverse=True)), profile.slices)
        # More instances than there can be are of no use; the refusal wants one way at least.
        most = max(fitting.most_alone(geometry, profile), min(map(len, ways)))
        packings[profile.name] = sorted(way for way in ways if len(way) <= most)
    return packings


def _kind(geometry: Geometry, name: str) -> tuple[Profile, int]:
    """The GPU instance profile and the compute slices of a MIG device's profile."""
    try:
        compute, profile_name = names.split(name)
    except ValueError as error:
        raise MigError(str(error)) from error
    profile = geometry.profile(profile_name)
    if profile is None:
        offered = ", ".join(one.name for one in geometry.profiles)
        raise MigError(f"there is no profile {profile_name}; {geometry.model} has {offered}")
    size = profile.slices if compute is None else compute
    possible = names.compute_sizes(profile.slices)
    if size not in possible:
        listed = ", ".join(f"{one}c" for one in possible)
        raise MigError(f"a {profile_name} has no compute instance of {size}c; it has {listed}")
    return profile, size


def _share(sizes: Bin, slices: int) -> set[tuple[Bin, ...]]:
    """Every way to share ``sizes`` among instances of ``slices`` compute slices."""
    ways: set[tuple[Bin, ...]] = {()}
    for size in sizes:
        grown = set()
        for way in ways:
            grown.add(_sorted((*way, (size,))))
            for place, content in enumerate(way):
                if sum(content) + size <= slices:
                    grown.add(_sorted((*way[:place], (*content, size), *way[place + 1 :])))
        ways = grown
    return ways


def _sorted(way: tuple[Bin, ...]) -> tuple[Bin, ...]:
    return tuple(sorted(way, reverse=True))


def _best(
    geometry: Geometry,
    options: Mapping[str, list[tuple[Bin, ...]]],
    present: Collection[GpuInstance],
    protected: Collection[int],
) -> list[Slot] | None:
    """The best of all layouts under all packings; None when there is none."""
    best: list[Slot] | None = None
    best_score: tuple[object, ...] = ()
    known: dict[tuple[int, ...], list[fitting.Layout]] = {}
    for option in product(*options.values()):
        bins = dict(zip(options, option))
        counts = tuple(map(len, option))
        if counts not in known:
            known[counts] = list(fitting.layouts(geometry, dict(zip(options, counts))))
        for layout in known[counts]:
            slots = _fill(layout, bins, present, protected)
            if slots is None:
                continue
            score = _keeps(slots)
            if best is not None and score < best_score[:2]:
                continue
            starts = tuple(slot.placement.start for slot in slots if slot.former is None)
            # The packing comes last: it decides between layouts that are otherwise the same.
            full = (*score, fitting.capacity(geometry, layout), starts, option)
            if best is None or full > best_score:
                best, best_score = slots, full
    return best


def _fill(
    layout: fitting.Layout,
    bins: Mapping[str, tuple[Bin, ...]],
    present: Collection[GpuInstance],
    protected: Collection[int],
) -> list[Slot] | None:
    """Who of ``present`` stays under ``layout``; None when a protected one would have to go."""
    there = {(one.profile, one.placement): one for one in present}
    if any(one.id in protected and (one.profile, one.placement) not in layout for one in present):
        return None
    slots: list[Slot] = []
    for profile, contents in bins.items():
        places = [place for name, place in layout if name == profile]
        formers = [there.get((profile, place)) for place in places]
        best: list[Slot] | None = None
        for order in _orders(contents):
            tried = [
                _slot(profile, place, former, content)
                for place, former, content in zip(places, formers, order)
            ]
            if any(_harms(slot, protected) for slot in tried):
                continue
            if best is None or _keeps(tried) > _keeps(best):
                best = tried
        if best is None:
            return None
        slots += best
    return slots


def _slot(profile: str, place: Placement, former: GpuInstance | None, content: Bin) -> Slot:
    missing = Counter(content)
    stays = []
    for one in sorted(former.compute, key=lambda one: one.id or 0) if former else ():
        if missing[one.slices]:
            missing[one.slices] -= 1
            stays.append(one)
    sizes = tuple(sorted(missing.elements(), reverse=True))
    return Slot(profile, place, former, tuple(stays), sizes)


def _missing(sizes: Bin, stays: Collection[ComputeInstance]) -> Bin:
    """What of ``sizes`` is not among ``stays``, in the order of ``sizes``."""
    there = Counter(one.slices for one in stays)
    there.subtract(sizes)
    missing = []
    for size in reversed(sizes):
        if there[size] < 0:
            there[size] += 1
            missing.append(size)
    return tuple(reversed(missing))


def _harms(slot: Slot, protected: Collection[int]) -> bool:
    """Would a compute instance of a protected GPU instance have to go?"""
    former = slot.former
    return former is not None and former.id in protected and len(slot.stays) < len(former.compute)


def _keeps(slots: Collection[Slot]) -> tuple[int, int]:
    """The first two things a layout is judged by: MIG devices and GPU instances that stay."""
    return (
        sum(len(slot.stays) for slot in slots),
        sum(slot.former is not None for slot in slots),
    )


def _orders(contents: tuple[Bin, ...]) -> Iterator[tuple[Bin, ...]]:
    """Every order of ``contents``, equal ones once."""
    if not contents:
        yield ()
    for first in sorted(set(contents), reverse=True):
        place = contents.index(first)
        for rest in _orders(contents[:place] + contents[place + 1 :]):
            yield (first, *rest)


def _in_the_way(held: Collection[GpuInstance]) -> str:
    return (
        f"{render.numbered(held)} in use and cannot stay as it is beside the wanted layout; stop"
        " what uses it, or ask for a layout that keeps it"
    )
