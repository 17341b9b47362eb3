# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How many MIG devices a host still takes: ours, first fit, and what could be had.

Usage: ``python tests/bench/mig_acceptance.py`` in the project's environment. Each round asks for
devices that all fit together on the GPUs, in a drawn order, one after the other, and none may move
later. So the offline optimum is all of them, and what a policy takes less is what its places cost.
``drained`` starts on GPUs from which devices of an earlier round, placed by the first fit that
users have today, went at random; what fits beside the others was tried out.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache

from ansible_collections.steadygpu.host.plugins.module_utils.mig import tables
from ansible_collections.steadygpu.host.plugins.module_utils.mig.fitting import Layout
from ansible_collections.steadygpu.host.plugins.module_utils.mig.model import (
    Geometry,
    Placement,
    Profile,
)
from ansible_collections.steadygpu.host.plugins.module_utils.placement import slots
from ansible_collections.steadygpu.host.plugins.module_utils.placement.slots import Room

MODEL = "NVIDIA A100-SXM4-40GB"
MIXES: dict[str, dict[str, float]] = {
    "all alike": dict.fromkeys(
        ("1g.5gb", "1g.10gb", "2g.10gb", "3g.20gb", "4g.20gb", "7g.40gb"), 1
    ),
    "mostly small": {"1g.5gb": 10, "2g.10gb": 5, "3g.20gb": 3, "4g.20gb": 1, "7g.40gb": 1},
    "mostly large": {"1g.5gb": 2, "2g.10gb": 2, "3g.20gb": 3, "4g.20gb": 2, "7g.40gb": 1},
    "1g and 3g": {"1g.5gb": 4, "3g.20gb": 4, "4g.20gb": 2},
}
_MISSES = 8

Place = tuple[int, Placement]
Policy = Callable[[Room, Sequence[Layout], Profile], "Place | None"]


def first_fit(room: Room, gpus: Sequence[Layout], profile: Profile) -> Place | None:
    """The first GPU with a start that is free, and the first such start."""
    for number, layout in enumerate(gpus):
        starts = room.starts(layout, profile)
        if starts:
            return number, min(starts)
    return None


def ours(room: Room, gpus: Sequence[Layout], profile: Profile) -> Place | None:
    """The library's."""
    return room.choose(gpus, profile)


def accepted(mix: str, gpus: int, seed: int, drained: bool, policy: Policy) -> tuple[int, int]:
    """Compute slices that one round took, and that it could have taken."""
    drawn = random.Random(seed)
    room = room_of(mix)
    before: list[Layout] = [()] * gpus
    if drained:
        for name in _together(room, drawn, MIXES[mix], before):
            _put(room, before, name, first_fit)
        before = [tuple(one for one in layout if drawn.random() < 0.5) for layout in before]
    wanted = _together(room, drawn, MIXES[mix], before)
    drawn.shuffle(wanted)
    taken = sum(_put(room, before, name, policy) for name in wanted)
    return taken, sum(_named(name).slices for name in wanted)


def _put(room: Room, gpus: list[Layout], name: str, policy: Policy) -> int:
    profile = _named(name)
    found = policy(room, gpus, profile)
    if found is None:
        return 0
    gpus[found[0]] = slots.with_instance(gpus[found[0]], name, found[1])
    return profile.slices


def _together(
    room: Room, drawn: random.Random, mix: dict[str, float], before: Sequence[Layout]
) -> list[str]:
    """Devices that fit beside ``before``, until one after the other does not any more."""
    found: list[str] = []
    for layout in before:
        wanted: Counter[str] = Counter()
        misses = 0
        while misses < _MISSES:
            name = drawn.choices(list(mix), list(mix.values()))[0]
            wanted[name] += 1
            if not _fits(room, layout, sorted(wanted.elements(), key=_size)):
                wanted[name] -= 1
                misses += 1
        found += wanted.elements()
    return found


def _fits(room: Room, layout: Layout, names: Sequence[str]) -> bool:
    if not names:
        return True
    profile = _named(names[0])
    return any(
        _fits(room, slots.with_instance(layout, profile.name, start), names[1:])
        for start in room.starts(layout, profile)
    )


@cache
def room_of(mix: str) -> Room:
    """What A100s have room for, remembered over all rounds."""
    return Room(geometry(), MIXES[mix])


@cache
def geometry() -> Geometry:
    """What an A100 offers."""
    found = tables.geometry_for(MODEL, "")
    if found is None:
        raise LookupError(MODEL)
    return found


def _named(name: str) -> Profile:
    found = geometry().profile(name)
    if found is None:
        raise LookupError(name)
    return found


def _size(name: str) -> int:
    return -_named(name).placements[0].size


def share(mix: str, gpus: int, drained: bool, policy: Policy, rounds: int = 60) -> float:
    """What of all slices a policy takes."""
    pairs = [accepted(mix, gpus, seed, drained, policy) for seed in range(rounds)]
    return sum(taken for taken, _all in pairs) / sum(possible for _taken, possible in pairs)


def main() -> None:
    """Measure and print."""
    print("| MIG requests | GPUs | first fit | ours | more | of the offline optimum |")
    print("|---|---|---|---|---|---|")
    for drained in (False, True):
        for gpus in (1, 8):
            for mix in MIXES:
                rounds = 80 if gpus == 1 else 10
                first = share(mix, gpus, drained, first_fit, rounds)
                best = share(mix, gpus, drained, ours, rounds)
                kind = f"{mix}, {'drained' if drained else 'empty'}"
                print(
                    f"| {kind} | {gpus} | {first:.3f} | {best:.3f} | "
                    f"{(best / first - 1) * 100:+.1f} % | {best:.3f} |"
                )


if __name__ == "__main__":
    main()
