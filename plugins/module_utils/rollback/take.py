# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Take a checkpoint outside of any change and label it; remove labels and checkpoints."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

from .codec import ID, state_digest
from .model import Outcome, Reason, RollbackError
from .observation.files import MemorySink
from .storage.selector import check_label
from .storage.store import Store
from .way_back.actors_api import RestoreHost


def take(
    store: Store,
    host: RestoreHost,
    reason: Reason,
    declared: Sequence[str] = (),
    labels: Sequence[str] = (),
    dry_run: bool = False,
) -> Outcome:
    """Save what the host is, unless the newest checkpoint is just that; move ``labels`` to it.

    ``Outcome.changed`` says whether a checkpoint was added or a label moved. ``dry_run`` writes
    nothing; ``checkpoint`` is then "" for one that would be new. Raises RollbackError when the host
    cannot be read, when a label cannot be one, or when there is no room; BusyError when another
    process works with the store.
    """
    for name in labels:
        check_label(name)
    if dry_run:
        return _foresee(store, host, declared, labels)
    outcome = Outcome()
    with store.locked():
        former = {one.id for one in store.summaries()}
        before = store.labels()
        state = host.observe(store.sink, declared)
        taken = store.add(state, reason, host.machine(), tuple(declared))
        if taken.id not in former:
            outcome.actions.append(f"take checkpoint {taken.id}")
        for name in dict.fromkeys(labels):
            if store.label(name, taken.id):
                outcome.actions.append(_labelled(name, taken.id, before.get(name)))
    outcome.checkpoint = taken.id
    outcome.changed = bool(outcome.actions)
    outcome.warnings = [
        f"{part} could not be read, so this checkpoint is without: {why}"
        for part, why in state.unknown.items()
    ]
    return outcome


def remove(
    store: Store, checkpoint: str = "", labels: Sequence[str] = (), dry_run: bool = False
) -> Outcome:
    """Remove labels, and the checkpoint of a whole id with its labels. What is gone stays gone.

    Raises RollbackError for another selector, which may name something else tomorrow, and for a
    checkpoint that is needed.
    """
    if checkpoint and not ID.fullmatch(checkpoint):
        raise RollbackError(
            f"{checkpoint!r} is not the whole id of a checkpoint; wanted is one such as "
            "12-9f86d081, since another name may mean another checkpoint the next time (steadygpu "
            "checkpoint list)"
        )
    with contextlib.nullcontext() if dry_run else store.locked():
        outcome = Outcome(checkpoint=checkpoint)
        before = store.labels()
        there = checkpoint in {one.id for one in store.summaries()}
        if there:
            # Before a label is gone.
            store.refuse_needed(checkpoint, labels)
        for name in dict.fromkeys(labels):
            if name in before:
                outcome.actions.append(f"remove label {name} from {before[name]}")
                if not dry_run:
                    store.unlabel(name)
        if there:
            outcome.actions.append(f"remove checkpoint {checkpoint}")
            if not dry_run:
                store.remove(checkpoint)
        outcome.changed = bool(outcome.actions)
        return outcome


def _foresee(
    store: Store, host: RestoreHost, declared: Sequence[str], labels: Sequence[str]
) -> Outcome:
    outcome = Outcome()
    state = host.observe(MemorySink(), declared)
    wanted = (state_digest(state), host.machine().machine, tuple(declared))
    for newest in store.summaries()[-1:]:
        if (newest.state_digest, newest.host.machine, newest.declared) == wanted:
            outcome.checkpoint = newest.id
    if not outcome.checkpoint:
        outcome.actions.append("take a checkpoint")
    before = store.labels()
    for name in dict.fromkeys(labels):
        if not outcome.checkpoint or before.get(name) != outcome.checkpoint:
            new = outcome.checkpoint or "the new checkpoint"
            outcome.actions.append(_labelled(name, new, before.get(name)))
    outcome.changed = bool(outcome.actions)
    return outcome


def _labelled(name: str, now: str, before: str | None) -> str:
    return f"label {now} as {name}" + (f", which was {before}" if before else "")
