# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The three things that can be asked for: foresee a change, carry it out, resume."""

from __future__ import annotations

import time
from dataclasses import replace

from ..hardware import nvml
from . import boot, cdi, nvml_mig, prepare, targets
from .change import Clock, Options, Outcome
from .journal import Journal, Store
from .nvml_mig import Reading
from .prepare import Prepared
from .run import Run
from .stop_set import StopSet, parse


def apply(options: Options) -> Outcome:
    """Carry the change out. Raises MigError when it is refused: then nothing was changed.

    Raises ApplyError when it failed on the way: its text says whether all is as before.
    """
    options.check()
    store = Store(options.directory)
    stop_set = StopSet(parse(options.stop), options.client, options.root)
    end = time.monotonic() + boot.BUDGET_S if options.boot else None
    clock = Clock(options.deadline_s, end)
    with store.locked(clock.wait()):
        return Run(options, clock, store, stop_set).run()


def foresee(options: Options) -> Outcome:
    """What :func:`apply` would do, without doing it. Raises MigError as it would.

    A host without pynvml has no agent yet: the plan is ``unknown`` until it has.
    """
    options.check()
    outcome = Outcome()
    if nvml.load() is None:
        outcome.status = "unknown"
        outcome.actions.append("bring the GPUs to their MIG layout, once the agent is installed")
        return outcome
    store = Store(options.directory)
    unfinished = store.read()
    if unfinished:
        outcome.actions += _starts(unfinished)
    reading = nvml_mig.read(options.deadline_s)
    wanted, notes = prepare.wanted(options, store, unfinished, reading)
    outcome.warnings += reading.sick
    stop_set = StopSet(parse(options.stop), options.client, options.root)
    ready = prepare.prepare(options, reading, wanted, stop_set)
    outcome.notes += [*notes, *_notes(ready)]
    outcome.actions += [f"stop {item.text}" for item in ready.running]
    outcome.actions += [step.text for plan in ready.todo for step in plan.steps]
    _foresee_specification(outcome, options, reading, ready)
    changing = {plan.gpu.uuid for plan in ready.todo}
    # Where a GPU changes, the numbers of its instances are not known yet.
    kept = {
        plan.gpu.uuid: wanted[plan.gpu.uuid]
        if plan.gpu.uuid in changing
        else targets.of_layout(plan.gpu)
        for plan in ready.plans
    }
    outcome.actions += prepare.keep(options, kept, check_mode=True)
    outcome.actions += [f"start {item.text}" for item in reversed(ready.running)]
    outcome.status = "applied" if ready.todo else "unchanged"
    outcome.layouts = reading.layouts
    outcome.before = "".join(plan.before for plan in ready.plans)
    outcome.after = "".join(plan.after for plan in ready.plans)
    return outcome


def resume(options: Options) -> Outcome:
    """Start what a killed change left stopped; nothing else. Raises MigError."""
    options.check()
    outcome = Outcome()
    store = Store(options.directory)
    with store.locked(options.deadline_s):
        unfinished = store.read()
        if unfinished is None:
            return outcome
        outcome.actions += _starts(unfinished)
        stop_set = StopSet((), options.client, options.root)
        outcome.warnings += stop_set.start(unfinished.stopped)
        if outcome.warnings:
            return outcome  # what does not start now is tried again by the next run
        if unfinished.phase == "starting":
            store.clear()
        else:
            store.write(replace(unfinished, stopped=()))
    return outcome


def _foresee_specification(
    outcome: Outcome, options: Options, reading: Reading, ready: Prepared
) -> None:
    settings = options.specification
    if settings is None:
        return
    if ready.todo and cdi.available(settings):
        outcome.actions.append(f"refresh {settings.path}")
    elif not ready.todo:
        done = cdi.refresh(reading, settings, check_mode=True, root=options.root)
        outcome.actions += done.actions
        outcome.warnings += done.warnings


def _starts(unfinished: Journal) -> list[str]:
    return [f"start {item.text}" for item in reversed(unfinished.stopped)]


def _notes(ready: Prepared) -> list[str]:
    """The planner's notes, each once with the GPUs it is for."""
    found: dict[str, list[str]] = {}
    for plan in ready.todo:
        for note in plan.notes:
            found.setdefault(note, []).append(str(plan.gpu.index))
    return [f"GPU {', '.join(indices)}: {note}" for note, indices in found.items()]
