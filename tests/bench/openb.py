# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How full a cluster gets: the openb traces replayed with Random, BestFit, FGD and ours.

Usage: ``python tests/bench/openb.py [--seeds N] [--traces default,multigpu50,gpuspec33]
[--part K]`` in the project's environment. 1,213 hosts with 6,212 GPUs; containers arrive until
130 % of the GPUs were asked for, and none leaves. All policies are asked in one harness, in the
same order of arrivals, and answers are remembered by the state of a host and the request. ``--part
4`` is a quarter of the hosts, for a quick look.
"""

from __future__ import annotations

import argparse
import csv
import random
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ansible_collections.steadygpu.host.plugins.module_utils.placement import fragmentation
from ansible_collections.steadygpu.host.plugins.module_utils.placement.fragmentation import (
    Fragmentation,
    State,
    Task,
)

DATA = Path(__file__).resolve().parents[1] / "data" / "openb"
TRACES = ("default", "multigpu50", "gpuspec33")
ARRIVALS = 1.3
# FGD's authors judge by the most frequent tasks that make up so much of the requests.
COVERED = 0.95

# The cost of being in the second state after the first; less is better.
Policy = Callable[[State, State], "tuple[float, ...]"]


@dataclass(frozen=True)
class Result:
    """One replay: GPUs that stayed free, and their share of all in percent."""

    unallocated: float
    percent_allocated: float
    seconds: float


def hosts(part: int = 1) -> list[State]:
    """The hosts of the trace; of ``part`` one in so many."""
    with open(DATA / "openb_node_list_gpu_node.csv", encoding="utf-8") as handle:
        rows = list(csv.DictReader(handle))
    return [
        State(
            int(row["cpu_milli"]), int(row["memory_mib"]), (1000,) * int(row["gpu"]), row["model"]
        )
        for row in rows[::part]
    ]


def tasks(trace: str) -> list[Task]:
    """The requests of a trace, in its order."""
    with open(DATA / f"openb_pod_list_{trace}.csv", encoding="utf-8") as handle:
        return [
            Task(
                int(row["cpu_milli"]),
                int(row["memory_mib"]),
                int(row["num_gpu"]),
                int(row["gpu_milli"]) if int(row["num_gpu"]) else 0,
                tuple(filter(None, (row.get("gpu_spec") or "").split("|"))),
            )
            for row in csv.DictReader(handle)
        ]


def arrivals(asked: Sequence[Task], gpus: int, seed: int) -> list[Task]:
    """The requests in a drawn order, some drawn again, until enough GPUs are asked for."""
    drawn = random.Random(seed)
    order = list(asked)
    drawn.shuffle(order)
    found, demand = [], 0
    while demand < ARRIVALS * gpus * 1000:
        task = order.pop() if order else drawn.choice(asked)
        found.append(task)
        demand += task.gpus * task.milli
    return found


def measure_of(asked: Sequence[Task]) -> Fragmentation:
    """The mix that fragmentation is measured against: the frequent tasks of the trace."""
    counted = Counter(task for task in asked if task.gpus)
    total = sum(counted.values())
    kept, seen = [], 0
    for task, many in counted.most_common():
        kept.append((task, float(many)))
        seen += many
        if seen >= COVERED * total:
            break
    return Fragmentation(kept)


def policies(measure: Fragmentation, largest: State) -> dict[str, Policy]:
    """By name; Random is not here, as it weighs nothing."""
    return {
        "BestFit": lambda _before, then: (fragmentation.tightness(then, largest),),
        "FGD": lambda before, then: (measure.added(before, then),),
        "ours": lambda before, then: (
            measure.steps(before, then),
            fragmentation.tightness(then, largest),
        ),
    }


def replay(start: Sequence[State], asked: Sequence[Task], policy: Policy) -> Result:
    """Every task to the host that it costs least on, while there is one."""
    began = time.perf_counter()
    alike: dict[State, list[int]] = defaultdict(list)
    for number, state in enumerate(start):
        alike[state].append(number)
    known: dict[Task, dict[State, tuple[tuple[float, ...], State] | None]] = defaultdict(dict)
    taken = 0
    for task in asked:
        answers = known[task]
        best: tuple[tuple[float, ...], State] | None = None
        where = None
        for state in alike:
            if state in answers:
                answer = answers[state]
            else:
                ways = [(policy(state, one), one) for one in fragmentation.after(state, task)]
                answer = min(ways, key=lambda way: way[0], default=None)
                answers[state] = answer
            if answer is not None and (best is None or answer[0] < best[0]):
                best, where = answer, state
        if best is not None and where is not None:
            _move(alike, where, best[1])
            taken += task.gpus * task.milli
    return _result(start, taken, began)


def replay_at_random(start: Sequence[State], asked: Sequence[Task], seed: int) -> Result:
    """Every task to any host that it fits on."""
    began = time.perf_counter()
    drawn = random.Random(seed)
    states = list(start)
    taken = 0
    for task in asked:
        order = list(range(len(states)))
        while order:
            place = drawn.randrange(len(order))
            order[place], order[-1] = order[-1], order[place]
            number = order.pop()
            ways = list(fragmentation.after(states[number], task))
            if ways:
                states[number] = drawn.choice(ways)
                taken += task.gpus * task.milli
                break
    return _result(start, taken, began)


def compare(trace: str, seed: int, part: int = 1, names: Sequence[str] = ()) -> dict[str, Result]:
    """All policies on one trace with one order of arrivals."""
    start, asked = hosts(part), tasks(trace)
    order = arrivals(asked, sum(len(state.gpus) for state in start), seed)
    largest = State(
        max(state.cpu for state in start),
        max(state.memory for state in start),
        max((state.gpus for state in start), key=len),
    )
    found = {}
    if not names or "Random" in names:
        found["Random"] = replay_at_random(start, order, seed)
    for name, policy in policies(measure_of(asked), largest).items():
        if not names or name in names:
            found[name] = replay(start, order, policy)
    return found


def _move(alike: dict[State, list[int]], before: State, then: State) -> None:
    number = alike[before].pop()
    if not alike[before]:
        del alike[before]
    alike[then].append(number)


def _result(start: Sequence[State], taken: int, began: float) -> Result:
    gpus = sum(len(state.gpus) for state in start)
    return Result(
        round(gpus - taken / 1000, 3),
        round(taken / gpus / 10, 2),
        round(time.perf_counter() - began, 1),
    )


def main(argv: Sequence[str] | None = None) -> None:
    """Replay and print the table."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--traces", default=",".join(TRACES))
    parser.add_argument("--part", type=int, default=1)
    given = parser.parse_args(argv)
    print("| trace | policy | GPUs allocated | unallocated | against FGD | seconds |")
    print("|---|---|---|---|---|---|")
    for trace in given.traces.split(","):
        rounds = [compare(trace, seed, given.part) for seed in range(1, given.seeds + 1)]
        fgd = sum(one["FGD"].unallocated for one in rounds)
        for name in rounds[0]:
            mine = [one[name] for one in rounds]
            free = sum(one.unallocated for one in mine)
            percent = sum(one.percent_allocated for one in mine) / len(mine)
            seconds = sum(one.seconds for one in mine) / len(mine)
            print(
                f"| {trace} | {name} | {percent:.2f} % | {free / len(mine):.1f} | "
                f"{free / fgd:.2f} × | {seconds:.1f} |"
            )
            sys.stdout.flush()


if __name__ == "__main__":
    main()
