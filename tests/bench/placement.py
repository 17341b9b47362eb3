# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Placement against the best there is: link scores, and what a decision costs.

Usage: ``python tests/bench/placement.py`` in the project's environment. Link scores are over every
free mask and size of the recorded machines with up to eight GPUs (a sample on sixteen), each as a
share of the best set's, which all sets were tried for.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from itertools import combinations
from statistics import median

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
from ansible_collections.steadygpu.host.tests.unit.module_utils.topology.recorded import MACHINES

Policy = Callable[[Fabric, Sequence[int], int], Sequence[int]]


def machines() -> dict[str, Host]:
    """The recorded machines with several GPUs, and the made ones of the unit tests."""
    return {
        **{one.name: hosts.of_recorded(one) for one in MACHINES if one.size > 2},
        "made: 8 × B200, GPU 2 lost its NVLinks": hosts.lost_links(),
        "made: bridges 0-2,1-3,4-5,6-7": hosts.bridged([(0, 2), (1, 3), (4, 5), (6, 7)]),
        "made: NVLink pairs across sockets": hosts.bridged([(0, 4), (1, 5), (2, 6), (3, 7)]),
    }


def first_free(_ready: Fabric, free: Sequence[int], count: int) -> Sequence[int]:
    """The lowest numbers."""
    return free[:count]


def greedy(ready: Fabric, free: Sequence[int], count: int) -> Sequence[int]:
    """The first, and always the one with the best links to those there are."""
    chosen = [free[0]]
    while len(chosen) < count:
        left = [i for i in free if i not in chosen]
        chosen.append(max(left, key=lambda i: sum(ready.pairs[i][j] for j in chosen)))
    return chosen


def like_go_gpuallocator(ready: Fabric, free: Sequence[int], count: int) -> Sequence[int]:
    """Its best parting; links through NVSwitch, which it does not see, hidden."""
    switched = len({word for row in ready.levels for word in row if word != "X"}) == 1 or any(
        links > _MOST_DIRECT for row in ready.nvlinks for links in row
    )
    words = [
        [None if switched and (word or "").startswith("NV") else word for word in row]
        for row in ready.levels
    ]
    pairs = partition.scores(words, ready.nodes)
    if switched:
        pairs = [
            [value or _of_node(ready, i, j) for j, value in enumerate(row)]
            for i, row in enumerate(pairs)
        ]
    return partition.best_effort(pairs, free, count)


# More direct NVLinks than this between two GPUs go through a switch.
_MOST_DIRECT = 12


def _of_node(ready: Fabric, i: int, j: int) -> int:
    if i == j:
        return 0
    same = ready.nodes[i] is not None and ready.nodes[i] == ready.nodes[j]
    return partition.pair_score("NODE" if same else "SYS", 0)


def ours(ready: Fabric, free: Sequence[int], count: int) -> Sequence[int]:
    """The best set of the fabric."""
    return members_of(ready.best(mask_of(free), count).masks[0])


POLICIES: dict[str, Policy] = {
    "ours": ours,
    "go-gpuallocator-like": like_go_gpuallocator,
    "greedy, one seed": greedy,
    "first free": first_free,
}


def shares(host: Host, policy: Policy, sample: int = 0) -> list[float]:
    """What share of the best links the policy gets, for every free mask and size."""
    ready = fabric.of_host(host)
    size = ready.size
    masks: Sequence[int] = range(1, 1 << size)
    if sample or size > 8:
        drawn = random.Random(size)
        masks = [drawn.randrange(1, 1 << size) for _number in range(sample or 60)]
    found = []
    for mask in masks:
        free = members_of(mask)
        if size > partition.MOST and policy is like_go_gpuallocator:
            continue
        for count in range(2, len(free)):
            best = max(ready.worth(mask_of(one)) for one in _sets(free, count))
            found.append(ready.worth(mask_of(policy(ready, free, count))) / best if best else 1.0)
    return found


def _sets(free: Sequence[int], count: int) -> list[tuple[int, ...]]:
    return list(combinations(free, count))


def links() -> None:
    """Print the table of link scores."""
    print("| machine | states | " + " | ".join(POLICIES) + " |")
    print("|---|---|" + "---|" * len(POLICIES))
    everything: dict[str, list[float]] = {name: [] for name in POLICIES}
    for name, host in machines().items():
        found = {policy: shares(host, how) for policy, how in POLICIES.items()}
        for policy, values in found.items():
            everything[policy] += values
        print(f"| {name} | {len(found['ours'])} | {_row(found)} |")
    print(f"| all | {len(everything['ours'])} | {_row(everything)} |")


def _row(found: dict[str, list[float]]) -> str:
    return " | ".join(
        f"{sum(values) / len(values):.3f} / {_percent_best(values)} %" if values else "not run"
        for values in found.values()
    )


def _percent_best(values: Sequence[float]) -> int:
    # Rounded down: 100 % is all of them.
    return sum(value > 1 - 1e-9 for value in values) * 100 // len(values)


def decisions() -> None:
    """Print what a decision costs in this process, in CPU time: others may use the machine."""
    print("| decision | p50 | p99 | most |")
    print("|---|---|---|---|")
    for title, host in (
        ("8 GPUs, hybrid mesh", hosts.of_recorded(MACHINES[0])),
        ("8 GPUs, all behind NVSwitch", hosts.lost_links()),
        ("16 GPUs, all links different", irregular(16)),
        ("16 GPUs, NVSwitch, two nodes", uniform(16)),
    ):
        ready = fabric.of_host(host)
        drawn = random.Random(1)
        took = []
        for _number in range(2000):
            mask = drawn.randrange(1, 1 << ready.size)
            now = hosts.busy(host, members_of(~mask & (1 << ready.size) - 1))
            count = drawn.randint(1, bin(mask).count("1"))
            began = time.thread_time()
            choose.place(now, Request(count=count), ready)
            took.append((time.thread_time() - began) * 1000)
        took.sort()
        print(
            f"| {title} | {median(took):.3f} ms | {took[len(took) * 99 // 100]:.3f} ms | "
            f"{took[-1]:.3f} ms |"
        )
    built = []
    for _number in range(10):
        host = irregular(16)
        began = time.thread_time()
        fabric.of_host(host)
        built.append((time.thread_time() - began) * 1000)
    print(f"| table of 16 GPUs made | {median(built):.1f} ms | | {max(built):.1f} ms |")


def irregular(size: int) -> Host:
    """A machine on which no two pairs need be alike."""
    drawn = random.Random(7)
    matrix = [["X"] * size for _row in range(size)]
    for i, j in combinations(range(size), 2):
        matrix[i][j] = matrix[j][i] = f"NV{drawn.randint(1, 200)}"
    return hosts.made(matrix, [i * 2 // size for i in range(size)])


def uniform(size: int) -> Host:
    """All GPUs behind one NVSwitch, on two NUMA nodes."""
    matrix = [["X" if i == j else "NV6" for j in range(size)] for i in range(size)]
    return hosts.made(matrix, [i * 2 // size for i in range(size)])


def main() -> None:
    """Measure and print."""
    links()
    print()
    decisions()


if __name__ == "__main__":
    main()
