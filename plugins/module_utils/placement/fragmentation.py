# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How much of a host is free and of no use to what is usually asked for. Pure.

The measure is that of FGD (Weng et al., USENIX ATC 2023): for each kind of task, all that is free
counts as lost on a host where the task cannot run, else the GPUs that have less free than it needs;
weighted by how often the task is asked for. A placement is judged by how much it adds.

What is ours: gains and losses within a fortieth of a GPU are equal, and then the tightest fit is
taken. The measure says nothing of CPUs that a host will lack before its GPUs are full; a tight fit
keeps hosts whole for what needs many.

GPUs are counted in thousandths, as the traces do, and their order does not matter.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

WHOLE = 1000  # thousandths of a GPU
STEP = 25

# What is left when the last digits of floats differ.
_DIGITS = 6
# More states than any run of a bench has; a host that lives for months must not grow.
_MOST_KNOWN = 400_000


class Task(NamedTuple):
    """What one container takes: CPUs in thousandths, MiB, so many GPUs, thousandths of each.

    ``models`` are those that will do, () for any.
    """

    cpu: int
    memory: int
    gpus: int
    milli: int
    models: tuple[str, ...] = ()


class State(NamedTuple):
    """What is free on one host; ``gpus`` in thousandths, ascending."""

    cpu: int
    memory: int
    gpus: tuple[int, ...]
    model: str = ""


# What is asked for where nothing was observed: the 20 most frequent of the 7,064 requests for GPUs
# in the default trace of openb, 100 % of them. (GPUs, thousandths of each, share of the requests)
USUAL: tuple[tuple[int, int, float], ...] = (
    (1, 1000, 0.5537),
    (1, 810, 0.1526),
    (1, 470, 0.1062),
    (1, 320, 0.0464),
    (1, 650, 0.0358),
    (1, 230, 0.0198),
    (1, 460, 0.0181),
    (1, 590, 0.0106),
    (1, 160, 0.0105),
    (1, 550, 0.0102),
    (1, 220, 0.0088),
    (1, 370, 0.0067),
    (8, 1000, 0.0062),
    (1, 110, 0.0034),
    (1, 480, 0.0027),
    (2, 1000, 0.0023),
    (4, 1000, 0.0021),
    (1, 50, 0.0010),
    (1, 330, 0.0010),
    (1, 350, 0.0008),
)


class Fragmentation:
    """The measure for a mix of tasks; ``mix`` are tasks with their shares of the requests."""

    def __init__(self, mix: Iterable[tuple[Task, float]]) -> None:
        kept = [(task, share) for task, share in mix if task.gpus and share > 0]
        total = sum(share for _task, share in kept)
        self._mix = [(task, share / total) for task, share in kept]
        self._rows: dict[str, tuple[list[tuple[int, int, int, int, float]], float]] = {}
        self._known: dict[State, float] = {}

    def amount(self, state: State) -> float:
        """The thousandths of GPUs that are free and lost to the mix."""
        known = self._known.get(state)
        if known is None:
            if len(self._known) > _MOST_KNOWN:
                self._known.clear()
            known = self._known[state] = self._amount(state)
        return known

    def added(self, before: State, after: State) -> float:
        """How much a placement adds; less than 0 where it uses up what was lost."""
        return self.amount(after) - self.amount(before)

    def steps(self, before: State, after: State) -> int:
        """``added`` in fortieths of a GPU, which is as fine as it is worth looking."""
        return round(self.added(before, after) / STEP)

    def _amount(self, state: State) -> float:
        rows, refused = self._of_model(state.model)
        gpus = state.gpus
        free = sum(gpus)
        whole = gpus.count(WHOLE)
        largest = gpus[-1] if gpus else 0
        parts = free - WHOLE * whole
        lost = refused * free
        below: dict[int, int] = {}
        for cpu, memory, count, milli, share in rows:
            if cpu > state.cpu or memory > state.memory:
                lost += share * free
            elif milli >= WHOLE:
                lost += share * (parts if count <= whole else free)
            elif milli > largest:
                lost += share * free
            else:
                small = below.get(milli)
                if small is None:
                    small = below[milli] = sum(one for one in gpus if one < milli)
                lost += share * small
        return round(lost, _DIGITS)

    def _of_model(self, model: str) -> tuple[list[tuple[int, int, int, int, float]], float]:
        known = self._rows.get(model)
        if known is None:
            rows = [
                (task.cpu, task.memory, task.gpus, task.milli, share)
                for task, share in self._mix
                if not task.models or model in task.models
            ]
            known = self._rows[model] = (rows, 1 - sum(row[4] for row in rows))
        return known


def of_mix(mix: Sequence[tuple[int, int, float]] = ()) -> Fragmentation:
    """The measure for one host whose CPUs nobody counts; ``mix`` as USUAL, () for that."""
    return Fragmentation((Task(0, 0, many, milli), share) for many, milli, share in mix or USUAL)


def after(state: State, task: Task) -> Iterator[State]:
    """Every state that the host can be in once the task runs on it; alike GPUs once."""
    cpu, memory = state.cpu - task.cpu, state.memory - task.memory
    if cpu < 0 or memory < 0 or (task.gpus and task.models and state.model not in task.models):
        return
    gpus = state.gpus
    if task.gpus == 0:
        yield State(cpu, memory, gpus, state.model)
    elif task.milli >= WHOLE or task.gpus > 1:
        able = [place for place, one in enumerate(gpus) if one >= task.milli]
        if len(able) >= task.gpus:
            # Those that fit the tightest: for whole GPUs they are all alike.
            chosen = set(able[: task.gpus])
            rest = [one - task.milli * (place in chosen) for place, one in enumerate(gpus)]
            yield State(cpu, memory, tuple(sorted(rest)), state.model)
    else:
        for place, one in enumerate(gpus):
            if one >= task.milli and (place == 0 or gpus[place - 1] != one):
                rest = [*gpus[:place], one - task.milli, *gpus[place + 1 :]]
                yield State(cpu, memory, tuple(sorted(rest)), state.model)


def best(
    measure: Fragmentation, state: State, task: Task, largest: State
) -> tuple[tuple[int, float], State] | None:
    """The best way to run the task here and its cost, to be compared between hosts; None: no way.

    ``largest`` is what the largest host has: the tight fit is measured by it.
    """
    found = [
        ((measure.steps(state, one), tightness(one, largest)), one) for one in after(state, task)
    ]
    return min(found, key=lambda one: one[0], default=None)


def tightness(state: State, largest: State) -> float:
    """What stays free, as shares of the largest host; the less the tighter."""
    return (
        state.cpu / max(1, largest.cpu)
        + state.memory / max(1, largest.memory)
        + sum(state.gpus) / max(1, _all(largest.gpus))
    )


def _all(gpus: Sequence[int]) -> int:
    return WHOLE * len(gpus)
