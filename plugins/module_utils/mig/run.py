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
from .change import ApplyError, Clock, Options, Outcome
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

    def __init__(self, options: Options, clock: Clock, store: Store, stop_set: StopSet) -> None:
        self._options = options
        self._clock = clock
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
        wanted, outcome.notes = prepare.wanted(options, self._store, unfinished, reading)
        outcome.warnings += reading.sick
        ready = prepare.prepare(options, reading, wanted, self._stop_set)
        before = self._before(unfinished, reading, wanted)
        journal = Journal("changing", before, (*self._later, *ready.running))
        if ready.todo:
            reading = self._carry_out(journal, ready, wanted, reading)
        else:
            self._finish(before, reading, wanted)
        if ready.todo or unfinished:
            self._start(journal)
        if options.boot:
            decide.refuse_absent(reading, wanted)
        self._tell(reading, ready.plans)
        return outcome

    def _before(
        self,
        unfinished: Journal | None,
        reading: Reading,
        wanted: Mapping[str, targets.Target],
    ) -> tuple[GpuLayout, ...]:
        """What undo goes back to: of a GPU that a killed run touched, the layout before that one.

        At boot only the latter counts: a boot brings instances back and changes no layout.
        """
        now = () if self._options.boot else reading.layouts
        known = {gpu.uuid: gpu for gpu in now if gpu.uuid in wanted}
        known.update({gpu.uuid: gpu for gpu in unfinished.before} if unfinished else {})
        return tuple(sorted(known.values(), key=lambda gpu: gpu.index))

    def _carry_out(
        self,
        journal: Journal,
        ready: Prepared,
        wanted: Mapping[str, targets.Target],
        reading: Reading,
    ) -> Reading:
        """All that may change something. Raises ApplyError, with all as it was before."""
        settings = self._options.specification
        if settings:
            self._specification = read_text(settings.path)
        if not self._options.boot:
            self._store.write(journal)
        try:
            reading = self._stop(ready.running, wanted, reading)
            reading = self._change(wanted, reading)
            self._finish(journal.before, reading, wanted)
        except (MigError, OSError) as error:
            raise self._undo(error, journal, ready.todo) from error
        return reading

    # -- the way there ---------------------------------------------------------------------

    def _start_left_behind(self, unfinished: Journal) -> Journal:
        """First of all the services that a killed run stopped come back.

        At boot systemd starts the units by itself once we are done, and containers wait for
        their engine: that they come back is arranged before anything here can fail.
        """
        booting, items = self._options.boot, unfinished.stopped
        if booting:
            self._later = tuple(item for item in items if item.kind == "container")
        self._start_items(items, wait=not booting)
        left = replace(unfinished, stopped=self._later)
        self._store.write(left)
        if self._later:
            self._outcome.warnings += boot.start_later()
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
                reading = nvml_mig.read(self._clock.wait())
                if late or expected <= {gpu.uuid for gpu in reading.layouts}:
                    return reading
                # The driver is there, so a GPU that it does not show is hardly to come.
                end = min(end, time.monotonic() + _ABSENT_S)
            except nvml_mig.NvmlMigError:
                if late or time.monotonic() >= end:
                    raise
            # The driver has no event to wait on.
            time.sleep(1.0)

    def _stop(
        self, items: Sequence[Item], wanted: Mapping[str, targets.Target], reading: Reading
    ) -> Reading:
        """Stop the set and wait until nobody is in the way. Raises MigError."""
        for item in items:
            self._stop_set.stop(item)
            self._outcome.actions.append(f"stop {item.text}")
        end = time.monotonic() + _SETTLE_S
        while items:
            reading = nvml_mig.read(self._clock.wait())
            rules = decide.Rules(self._look(reading))
            try:
                decide.refuse_in_use(decide.plans(reading, wanted, rules), rules)
                break
            except decide.InUseError:
                if time.monotonic() >= end:
                    raise
            time.sleep(0.2)
        return reading

    def _change(self, wanted: Mapping[str, targets.Target], reading: Reading) -> Reading:
        options, outcome = self._options, self._outcome
        try:
            brought = bring.bring(wanted, reading, outcome.actions, self._clock, self._look)
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
        found = self._look(nvml_mig.read(self._clock.wait()))
        lines = [f"\n  GPU {one.gpu_index}: {one.text}" for one in found]
        return "\nHeld now by:" + "".join(lines) if lines else "\nNo holder can be seen now."

    def _look(self, reading: Reading) -> tuple[holders_view.Blocker, ...]:
        return holders_view.find(reading, self._options.client, self._options.root)

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
        now = {gpu.uuid: render.layout_text(gpu) for gpu in reading.layouts}
        kept = self._kept(reading, wanted)
        changed = [gpu for gpu in before if render.layout_text(gpu) != now.get(gpu.uuid)]
        if not options.boot:
            # Before ``keep``, which writes the new one.
            changed = [gpu for gpu in changed if not self._brought_back(gpu, kept)]
            outcome.actions += prepare.keep(options, kept, check_mode=False)
        if changed:
            self._store.write_previous([targets.of_layout(gpu) for gpu in before])

    def _brought_back(self, gpu: GpuLayout, kept: Mapping[str, targets.Target]) -> bool:
        """Did this GPU only get again what it had to have, and had lost by a reboot?

        Such a GPU is no layout that anybody wants to go back to.
        """
        config = boot.read_config(self._options.root)
        former = {one.uuid: one for one in config.gpus}.get(gpu.uuid) if config else None
        if former is None or gpu.uuid not in kept or former.wanted != kept[gpu.uuid].wanted:
            return False
        most = former.wanted.devices or {}
        had = render.device_counts(gpu.instances)
        return all(count <= most.get(name, 0) for name, count in had.items())

    def _kept(
        self, reading: Reading, wanted: Mapping[str, targets.Target]
    ) -> dict[str, targets.Target]:
        """What comes back at boot: the very instances there are, or what a mode waits for."""
        waiting = {entry["uuid"] for entry in self._outcome.pending}
        return {
            gpu.uuid: wanted[gpu.uuid] if gpu.uuid in waiting else targets.of_layout(gpu)
            for gpu in reading.layouts
            if gpu.uuid in wanted
        }

    def _refresh(self, reading: Reading) -> None:
        options, outcome = self._options, self._outcome
        settings = options.specification
        if settings:
            settings = replace(settings, deadline_s=self._clock.within(settings.deadline_s))
            done = cdi.refresh(reading, settings, False, options.root)
            outcome.actions += done.actions
            outcome.warnings += done.warnings

    # -- the way back ----------------------------------------------------------------------

    def _undo(self, error: Exception, journal: Journal, todo: Sequence[Plan]) -> ApplyError:
        """The layout before, and all that was stopped; the error that tells both."""
        text, whole = self._go_back(journal, todo)
        lines = [str(error), text] if text else [str(error)]
        try:
            self._start(journal, whole)
        except (MigError, OSError) as second:
            lines.append(f"The journal {self._store.journal_path} is left: {second}")
        return ApplyError("\n".join([*lines, *self._outcome.warnings]), self._outcome.actions)

    def _go_back(self, journal: Journal, todo: Sequence[Plan]) -> tuple[str, bool]:
        """How it went, in words, and whether all is as before.

        An error of the way back must not hide the first, and nobody is disturbed for it either.
        """
        options, actions = self._options, self._outcome.actions
        first = len(actions)
        touched = {plan.gpu.uuid for plan in todo}
        former = {gpu.uuid: targets.of_layout(gpu) for gpu in journal.before if gpu.uuid in touched}
        try:
            reading = nvml_mig.read(self._clock.wait())
            if options.boot:
                # There is nothing worth going back to: instances that are there are used.
                self._refresh(reading)
                return "", False
            brought = bring.bring(former, reading, actions, self._clock, self._look)
            decide.refuse_absent(reading, former)
        except (MigError, OSError) as error:
            what = (
                "Then the CDI specification" if options.boot else "Going back to the layout before"
            )
            return f"{what} failed as well: {error}", False
        pending = bring.pending(brought, options.root)
        text = _way_back(actions[first:], pending)
        settings = options.specification
        try:
            if settings:
                done = cdi.put_back(self._specification, brought.reading, settings, options.root)
                actions += done.actions
        except (MigError, OSError) as error:
            text += f"\nThe CDI specification is not: {error}"
        return text, not pending

    def _start(self, journal: Journal, whole: bool = True) -> None:
        """Start what was stopped, then close the journal.

        It stays open after a change that is neither ``whole`` nor undone: the layout before it
        is in there alone.
        """
        self._start_items(journal.stopped)
        if self._later or (journal.before and not whole):
            phase = "starting" if whole else "changing"
            self._store.write(replace(journal, phase=phase, stopped=self._later))
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
