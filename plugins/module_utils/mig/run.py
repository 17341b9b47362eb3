# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One MIG change under the lock: it takes place as a whole, or the host is as before.

The order is always: refuse, journal, stop, change, read back, specification, boot layout,
start. Whatever goes wrong on the way is undone here, or after a kill by the next run.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..atomic import read_text
from . import boot, bring, cdi, decide, holders_view, nvml_mig, prepare, render, targets
from .change import ApplyError, Options, Outcome
from .journal import Journal, Store
from .model import GpuLayout, MigError, Plan
from .nvml_mig import Reading
from .prepare import Prepared
from .stop_set import Item, StopSet

# What was stopped needs a moment until its device files are closed.
_SETTLE_S = 10.0
# How long the boot waits for a GPU that a working driver does not show.
_ABSENT_S = 5.0


class Run:
    """One run. The caller holds the store's lock."""

    def __init__(self, options: Options, store: Store, stop_set: StopSet) -> None:
        self._options = options
        self._store = store
        self._stop_set = stop_set
        self._outcome = Outcome()
        # At boot the containers that a killed run stopped wait for their engine.
        self._later: tuple[Item, ...] = ()
        self._specification: str | None = None

    def run(self) -> Outcome:
        """The change. Raises MigError, or ApplyError as soon as anything was done."""
        try:
            return self._run()
        except ApplyError:
            raise
        except (MigError, OSError) as error:
            if self._outcome.actions:
                raise ApplyError(str(error), self._outcome.actions) from error
            raise MigError(str(error)) from error

    def _run(self) -> Outcome:
        options, outcome = self._options, self._outcome
        unfinished = self._store.read()
        if unfinished and unfinished.stopped:
            unfinished = self._start_left_behind(unfinished)
        reading = self._first_reading()
        wanted, notes = prepare.wanted(options, self._store, unfinished, reading)
        outcome.warnings += notes
        ready = prepare.prepare(options, reading, wanted, self._stop_set)
        before = unfinished.before if unfinished else reading.layouts
        stopped = (*self._later, *ready.running)
        journal = Journal("changing", before, tuple(wanted.values()), stopped)
        if ready.todo:
            reading = self._carry_out(journal, ready, wanted)
        else:
            self._finish(before, reading, wanted)
        if ready.todo or unfinished:
            self._start(journal)
        if options.boot:
            decide.refuse_absent(reading, wanted)
        self._tell(reading, ready.plans)
        return outcome

    def _carry_out(
        self, journal: Journal, ready: Prepared, wanted: Mapping[str, targets.Target]
    ) -> Reading:
        """All that may change something. Raises ApplyError, with all as it was before."""
        settings = self._options.specification
        if settings:
            self._specification = read_text(settings.path)
        self._store.write(journal)
        try:
            self._stop(ready.running, wanted)
            reading = self._change(wanted, ready.rules)
            self._finish(journal.before, reading, wanted)
        except (MigError, OSError) as error:
            raise self._undo(error, journal, ready.todo) from error
        return reading

    # -- the way there ---------------------------------------------------------------------

    def _start_left_behind(self, unfinished: Journal) -> Journal:
        """First of all the services that a killed run stopped come back.

        At boot systemd starts the units by itself once we are done.
        """
        booting, items = self._options.boot, unfinished.stopped
        if booting:
            self._later = tuple(item for item in items if item.kind == "container")
        self._start_items(items, wait=not booting)
        left = replace(unfinished, stopped=self._later)
        self._store.write(left)
        return left

    def _first_reading(self) -> Reading:
        """All GPUs. At boot the driver may still be coming up: it is waited for."""
        options = self._options
        end = time.monotonic() + options.deadline_s
        kept = boot.read_config(options.root) if options.boot else None
        expected = {one.uuid for one in kept.gpus} if kept else set()
        while True:
            late = not options.boot or time.monotonic() >= end
            try:
                reading = nvml_mig.read(options.deadline_s)
                if late or expected <= {gpu.uuid for gpu in reading.layouts}:
                    return reading
                # The driver is there, so a GPU that it does not show is hardly to come.
                end = min(end, time.monotonic() + _ABSENT_S)
            except nvml_mig.NvmlMigError:
                if late:
                    raise
            # The driver has no event to wait on.
            time.sleep(1.0)

    def _stop(self, items: Sequence[Item], wanted: Mapping[str, targets.Target]) -> None:
        """Stop the set and wait until nobody is in the way. Raises MigError."""
        for item in items:
            self._stop_set.stop(item)
            self._outcome.actions.append(f"stop {item.text}")
        end = time.monotonic() + _SETTLE_S
        while items:
            reading = nvml_mig.read(self._options.deadline_s)
            rules = prepare.rules(self._options, reading)
            try:
                decide.refuse_in_use(decide.plans(reading, wanted, rules), rules)
                return
            except MigError:
                if time.monotonic() >= end:
                    raise
            time.sleep(0.2)

    def _change(self, wanted: Mapping[str, targets.Target], rules: decide.Rules) -> Reading:
        options, outcome = self._options, self._outcome
        try:
            brought = bring.bring(wanted, outcome.actions, options.deadline_s, rules)
        except bring.StepError as error:
            if error.code != nvml_mig.IN_USE:
                raise
            raise MigError(f"{error}{self._holders()}") from error
        outcome.pending = bring.pending(brought, options.root)
        if any(status == nvml_mig.IN_USE for status in brought.waiting.values()):
            outcome.warnings.append(f"A mode change had to wait.{self._holders()}")
        return brought.reading

    def _holders(self) -> str:
        """Who came, or was not seen, between the check and the change."""
        reading = nvml_mig.read(self._options.deadline_s)
        found = holders_view.find(reading, self._options.client, self._options.root)
        lines = [f"\n  GPU {one.gpu_index}: {one.text}" for one in found]
        return "\nHeld now by:" + "".join(lines) if lines else "\nNo holder can be seen now."

    def _finish(
        self,
        before: Sequence[GpuLayout],
        reading: Reading,
        wanted: Mapping[str, targets.Target],
    ) -> None:
        """Everything that follows from the new layout; each part alone does no harm twice."""
        options, outcome = self._options, self._outcome
        try:
            self._refresh(reading)
        except MigError as error:
            # At boot instances without a specification are better than none.
            if not options.boot:
                raise
            outcome.warnings.append(str(error))
        if options.boot:
            return
        waiting = {entry["uuid"] for entry in outcome.pending}
        kept = {
            gpu.uuid: wanted[gpu.uuid] if gpu.uuid in waiting else targets.of_layout(gpu)
            for gpu in reading.layouts
            if gpu.uuid in wanted
        }
        outcome.actions += prepare.keep(options, kept, check_mode=False)
        was = [gpu for gpu in before if gpu.uuid in wanted]
        now = {gpu.uuid: render.layout_text(gpu) for gpu in reading.layouts}
        if any(render.layout_text(gpu) != now.get(gpu.uuid) for gpu in was):
            self._store.write_previous([targets.of_layout(gpu) for gpu in was])

    def _refresh(self, reading: Reading) -> None:
        options, outcome = self._options, self._outcome
        if options.specification:
            done = cdi.refresh(reading, options.specification, False, options.root)
            outcome.actions += done.actions
            outcome.warnings += done.warnings

    # -- the way back ----------------------------------------------------------------------

    def _undo(self, error: Exception, journal: Journal, todo: Sequence[Plan]) -> ApplyError:
        """The layout before, and all that was stopped; the error that tells both."""
        touched = {plan.gpu.uuid for plan in todo}
        former = {gpu.uuid: targets.of_layout(gpu) for gpu in journal.before if gpu.uuid in touched}
        lines = [str(error)]
        # At boot there is nothing worth going back to: instances that are there are used.
        if former and not self._options.boot:
            lines.append(self._restore(former))
        try:
            self._start(journal)
        except (MigError, OSError) as second:
            lines.append(f"The journal {self._store.journal_path} is left: {second}")
        return ApplyError("\n".join([*lines, *self._outcome.warnings]), self._outcome.actions)

    def _restore(self, former: Mapping[str, targets.Target]) -> str:
        """Go back; how it went, in words. An error of the way back must not hide the first."""
        options, actions = self._options, self._outcome.actions
        first = len(actions)
        try:
            brought = bring.bring(former, actions, options.deadline_s)
        except MigError as error:
            return f"Going back to the layout before failed as well: {error}"
        text = _way_back(actions[first:], bring.pending(brought, options.root))
        settings = options.specification
        try:
            if settings:
                done = cdi.put_back(self._specification, brought.reading, settings, options.root)
                actions += done.actions
        except (MigError, OSError) as error:
            text += f"\nThe CDI specification is not: {error}"
        return text

    def _start(self, journal: Journal) -> None:
        """Start what was stopped, then close the journal."""
        self._start_items(journal.stopped)
        if self._later:
            self._store.write(replace(journal, phase="starting", stopped=self._later))
            self._outcome.warnings += boot.start_later()
        else:
            self._store.clear()

    def _start_items(self, items: Sequence[Item], wait: bool = True) -> None:
        now = [item for item in items if item not in self._later]
        self._outcome.actions += [f"start {item.text}" for item in reversed(now)]
        self._outcome.warnings += self._stop_set.start(now, wait)

    def _tell(self, reading: Reading, plans: Sequence[Plan]) -> None:
        outcome = self._outcome
        planned = {plan.gpu.uuid for plan in plans}
        outcome.layouts = reading.layouts
        outcome.before = "".join(plan.before for plan in plans)
        outcome.after = "".join(
            render.layout_text(gpu) for gpu in reading.layouts if gpu.uuid in planned
        )
        if outcome.pending:
            outcome.status = "pending"
        elif any(plan.steps for plan in plans):
            outcome.status = "applied"


def _way_back(undone: Sequence[str], pending: Sequence[Mapping[str, Any]]) -> str:
    """How the restoring went, for the message of the error before it."""
    if pending:
        reasons = "; ".join(str(entry["reason"]) for entry in pending)
        return f"The layout before comes back only later: {reasons}"
    if undone:
        return f"The layout is as it was before ({'; '.join(undone)})."
    return "The layout is as it was before: no GPU was changed."
