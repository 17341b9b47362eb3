# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""From the options of a run to plans: what is wanted, who is in the way, what may stop.

Reads the host and changes nothing; ``decide`` judges what is read here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from . import boot, config, decide, holders_view, resolve, targets
from .change import Options
from .journal import Journal, Store
from .model import MigError, Plan
from .nvml_mig import Reading
from .stop_set import Item, StopSet


@dataclass(frozen=True)
class Prepared:
    """``plans`` of all wanted GPUs, ``running`` what will be stopped, in order."""

    plans: tuple[Plan, ...]
    rules: decide.Rules = field(default_factory=decide.Rules)
    running: tuple[Item, ...] = ()

    @property
    def todo(self) -> tuple[Plan, ...]:
        """The plans with something to do."""
        return tuple(plan for plan in self.plans if plan.steps)


def wanted(
    options: Options, store: Store, unfinished: Journal | None, reading: Reading
) -> tuple[dict[str, targets.Target], list[str]]:
    """The target of each GPU by UUID, and notes. Raises MigError."""
    if options.boot:
        kept = boot.read_config(options.root)
        if kept is None:
            raise MigError(f"there is no {boot.CONFIG}: nothing to bring back")
        return {one.uuid: one for one in kept.gpus}, []
    if options.exactly:
        decide.refuse_absent(reading, [one.uuid for one in options.exactly])
        return {one.uuid: one for one in options.exactly}, []
    if options.previous:
        return {one.uuid: one for one in _former(store, unfinished, reading)}, []
    document = options.configs
    if document and "mig-configs" not in document:
        document = {"version": "v1", "mig-configs": document}
    configs = config.parse(document) if document else {}
    resolution = resolve.resolve(options.layout, configs, reading.layouts)
    found = {uuid: targets.Target(uuid, one) for uuid, one in resolution.wanted.items()}
    return found, list(resolution.notes)


def prepare(
    options: Options,
    reading: Reading,
    asked: Mapping[str, targets.Target],
    stop_set: StopSet,
) -> Prepared:
    """Plans that may be carried out. Raises MigError for all that is refused."""
    if options.persist and not (options.boot or options.exactly):
        boot.refuse_foreign(options.root)
    plans = decide.plans(reading, asked)
    if not any(plan.steps for plan in plans):
        # Nobody is looked for where nothing is to be done.
        return Prepared(tuple(plans))
    running = tuple(stop_set.running())
    found = rules(options, reading, running)
    ready = Prepared(tuple(decide.plans(reading, asked, found)), found, running)
    decide.refuse_unfit(reading, ready.todo, found)
    try:
        decide.refuse_in_use(ready.todo, found)
    except decide.InUseError as error:
        raise decide.InUseError(f"{error}\nNothing was changed.") from error
    return ready


def rules(options: Options, reading: Reading, stopping: Sequence[Item] = ()) -> decide.Rules:
    """What the host says now."""
    return decide.Rules(
        blockers=holders_view.find(reading, options.client, options.root),
        stopping=frozenset(item.text for item in stopping),
        driver_parameters=decide.read_driver_parameters(options.root),
    )


def keep(options: Options, kept: Mapping[str, targets.Target], check_mode: bool) -> list[str]:
    """The boot layout as asked for; the actions. Raises MigError and OSError."""
    if options.exactly:
        return []
    if not options.persist:
        return boot.forget(check_mode, options.root)
    gpus = boot.merged(boot.read_config(options.root), list(kept.values()))
    return boot.persist(boot.Config(gpus, options.specification), check_mode, options.root)


def _former(store: Store, unfinished: Journal | None, reading: Reading) -> list[targets.Target]:
    """The layout before the last change, which may be one that did not end."""
    if unfinished:
        # Only what that change was for is in its journal.
        found = [targets.of_layout(gpu) for gpu in unfinished.before]
    else:
        found = list(store.previous() or ())
    if not found:
        raise MigError(
            f"there is no layout to go back to: {store.previous_path} is written by the first "
            "change"
        )
    decide.refuse_absent(reading, [one.uuid for one in found])
    return found
