# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A day on a box with eight GPUs that others use too, without asking anybody.

Usage: ``python tests/bench/shared_day.py`` in the project's environment. Our containers come and
go; foreign programs take GPUs by themselves, mostly GPU 0, as CUDA does by default. A collision is
a container that is started on a GPU that somebody is on. ``--gpus N`` and the peers know their own
leases only, or not even these; ours sees who holds a GPU. A start counts as best when no free set
has better links.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ansible_collections.steadygpu.host.plugins.module_utils.placement import (
    choose,
    fabric,
    partition,
)
from ansible_collections.steadygpu.host.plugins.module_utils.placement.fabric import (
    Fabric,
    mask_of,
    members_of,
)
from ansible_collections.steadygpu.host.plugins.module_utils.placement.model import Host, Request
from ansible_collections.steadygpu.host.tests.unit.module_utils.placement import hosts
from ansible_collections.steadygpu.host.tests.unit.module_utils.topology.recorded import by_name

MINUTES = 24 * 60
GPUS = 8
SIZES = (1, 1, 1, 2, 2, 4)
# A container comes every so many minutes, a foreigner; and they stay as long on average.
_EVERY, _STAYS = 8, 25
_FOREIGN_EVERY, _FOREIGN_STAYS = 30, 40


@dataclass
class Day:
    """What happened to the containers that were to start."""

    started: int = 0
    refused: int = 0
    collided: int = 0
    several: int = 0
    best: int = 0
    ends: list[tuple[int, frozenset[int]]] = field(default_factory=list)


# The machine, who leased what, who else is there, how many are wanted -> the GPUs, or none.
Policy = Callable[[Host, Fabric, frozenset[int], frozenset[int], int], Sequence[int]]


def by_number(
    _host: Host, _ready: Fabric, _leased: frozenset[int], _foreign: frozenset[int], count: int
) -> Sequence[int]:
    """``docker run --gpus N``: 0 to N-1, whoever is there."""
    return range(count)


def like_go_gpuallocator(
    _host: Host, ready: Fabric, leased: frozenset[int], _foreign: frozenset[int], count: int
) -> Sequence[int]:
    """The best parting of what it did not lease itself."""
    free = [i for i in range(GPUS) if i not in leased]
    return partition.best_effort(partition.scores(ready.levels, ready.nodes), free, count)


def like_vgpu_manager(
    _host: Host, ready: Fabric, leased: frozenset[int], _foreign: frozenset[int], count: int
) -> Sequence[int]:
    """Tiers: the first set joined by NVLink, else on one NUMA node, else any."""
    free = mask_of(i for i in range(GPUS) if i not in leased)
    for step in (0, 4):
        found = ready.best(free, count, step=step).masks if bin(free).count("1") >= count else ()
        if found:
            return members_of(min(found))
    return [i for i in range(GPUS) if i not in leased][:count]


def ours(
    host: Host, ready: Fabric, leased: frozenset[int], foreign: frozenset[int], count: int
) -> Sequence[int]:
    """The library, with what the facts say of holders."""
    found = choose.place(hosts.busy(host, leased | foreign), Request(count=count), ready)
    return hosts.names(found.chosen)


POLICIES: dict[str, Policy] = {
    "--gpus N": by_number,
    "go-gpuallocator-like": like_go_gpuallocator,
    "vgpu-manager-like": like_vgpu_manager,
    "ours": ours,
}


def day(host: Host, policy: Policy, seed: int) -> Day:
    """One day; the same arrivals for every policy."""
    ready = fabric.of_host(host)
    comes, alien = random.Random(seed), random.Random(seed + 1)
    seen = Day()
    strangers: list[tuple[int, int]] = []
    for minute in range(MINUTES):
        seen.ends = [one for one in seen.ends if one[0] > minute]
        strangers = [one for one in strangers if one[0] > minute]
        if alien.random() < 1 / _FOREIGN_EVERY:
            stays = round(alien.expovariate(1 / _FOREIGN_STAYS)) + 1
            gpu = 0 if alien.random() < 0.5 else alien.randrange(GPUS)
            strangers.append((minute + stays, gpu))
        if comes.random() >= 1 / _EVERY:
            continue
        count = comes.choice(SIZES)
        stays = round(comes.expovariate(1 / _STAYS)) + 1
        leased = frozenset(i for _end, gpus in seen.ends for i in gpus)
        foreign = frozenset(gpu for _end, gpu in strangers)
        chosen = frozenset(policy(host, ready, leased, foreign, count))
        if len(chosen) < count:
            seen.refused += 1
            continue
        seen.started += 1
        seen.collided += bool(chosen & (leased | foreign))
        _judge(seen, ready, leased | foreign, chosen)
        seen.ends.append((minute + stays, chosen))
    return seen


def _judge(seen: Day, ready: Fabric, taken: frozenset[int], chosen: frozenset[int]) -> None:
    """Of sets of several, where enough was free: were there better links?"""
    free = mask_of(i for i in range(GPUS) if i not in taken)
    if len(chosen) < 2 or bin(free).count("1") < len(chosen):
        return
    seen.several += 1
    best = ready.worth(ready.best(free, len(chosen)).masks[0])
    seen.best += not chosen & taken and ready.worth(mask_of(chosen)) == best


def main() -> None:
    """Live through five days on three machines and print."""
    print("| a shared day | policy | started | collided | refused | best links where free |")
    print("|---|---|---|---|---|---|")
    for title, host in (
        ("hybrid mesh", hosts.of_recorded(by_name("hybrid cube mesh"))),
        ("bridged pairs", hosts.bridged([(0, 2), (1, 3), (4, 5), (6, 7)])),
        ("a GPU without its NVLinks", hosts.lost_links()),
    ):
        for name, policy in POLICIES.items():
            days = [day(host, policy, seed) for seed in range(5)]
            several = sum(one.several for one in days)
            best = sum(one.best for one in days)
            print(
                f"| {title} | {name} | {sum(one.started for one in days)} | "
                f"{sum(one.collided for one in days)} | {sum(one.refused for one in days)} | "
                f"{best * 100 / max(1, several):.1f} % |"
            )


if __name__ == "__main__":
    main()
