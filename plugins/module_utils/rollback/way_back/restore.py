# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The way back, carried out: journalled, so that whatever kills it, the next run ends it.

Order of what is kept: the state that is about to be replaced, the journal with the plan, the ledger
of what will be written; then the steps; then the state that came of it, which is settled, and the
window closed. The journal goes last: as long as it is there, all of this is done again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ... import vouched
from .. import scope
from ..codec import entry_from_json
from ..model import (
    BEFORE_RESTORE,
    DIRECTORY,
    Checkpoint,
    Left,
    Outcome,
    Plan,
    RestoreJournal,
    RestoreOptions,
    RollbackError,
    State,
)
from ..observation.files import MemorySink
from ..storage.store import Store
from .actors_api import FILE, Context, RestoreHost, token
from .carry_out import Carried, carry_out, sweep
from .plan import make_plan, refuse_foreign
from .promises import promised

# What the checkpoint of a restore's end is called, with the target's id.
_AFTER = "after restoring {}"


@dataclass(frozen=True)
class Prospect:
    """What a restore would do: from ``now``, by ``plan``, to ``then``. Nothing was written.

    ``content`` gives the content of a file of ``now`` or ``then``, None where it was too large to
    remember.
    """

    target: Checkpoint
    now: State
    plan: Plan
    then: State
    content: Callable[[str], bytes | None]
    outcome: Outcome


def restore(
    store: Store,
    selector: str,
    options: RestoreOptions,
    host: RestoreHost,
    dry_run: bool = False,
    window_id: str = "",
) -> Outcome:
    """Bring the host back to a checkpoint, as far as that costs nobody anything.

    A restore that was interrupted is ended first. The open window is closed if its id is
    ``window_id`` or if the checkpoint is its base. What did not go back, and why, is in
    ``Outcome.left``. ``dry_run`` writes nothing, not even to the store.

    Raises RollbackError when there is no such checkpoint, when it is another machine's, and when
    the disk is full or read-only: then the journal stays and the next run goes on. Raises BusyError
    when another process works with the store.
    """
    if dry_run:
        return foresee(store, selector, options, host).outcome
    with store.locked():
        return restore_locked(store, selector, options, host, window_id)


def resume(store: Store, host: RestoreHost) -> Outcome | None:
    """End a restore that was interrupted; None when there is none. Raises like :func:`restore`."""
    if store.restore_journal() is None:
        return None
    with store.locked():
        return resume_locked(store, host)


def foresee(store: Store, selector: str, options: RestoreOptions, host: RestoreHost) -> Prospect:
    """What :func:`restore` would do. Raises RollbackError as it does, but writes nothing."""
    target = store.get(selector)
    sink = MemorySink()
    now = host.observe(sink, target.declared)
    plan = _plan(store, target, now, options, host)
    outcome = Outcome(
        changed=bool(plan.steps),
        checkpoint=target.id,
        actions=[step.text for step in plan.steps],
        conflicts=list(plan.conflicts),
        left=list(plan.left),
        notes=_at_boot(plan, target),
    )
    journal = store.restore_journal()
    if journal is not None:
        outcome.notes.append(f"the interrupted restore to {journal.target} would be ended first")

    def content(digest: str) -> bytes | None:
        seen = sink.content(digest)
        try:
            return store.content(digest) if seen is None else seen
        except RollbackError:
            return None

    return Prospect(target, now, plan, promised(now, plan), content, outcome)


def restore_locked(
    store: Store,
    selector: str,
    options: RestoreOptions,
    host: RestoreHost,
    window_id: str = "",
    ended: Outcome | None = None,
) -> Outcome:
    """:func:`restore` for a caller that holds the store's lock.

    ``ended`` is what came of an interrupted restore that the caller has ended already.
    """
    # Before anything interrupted is ended: that may close the window which the selector names.
    target = store.get(selector)
    outcome = ended or resume_locked(store, host) or Outcome()
    now = host.observe(store.sink, target.declared)
    plan = _plan(store, target, now, options, host, _again(store))
    window = store.window()
    if window is not None and window.base == target.id:
        window_id = window.id
    elif window is not None and window.id != window_id:
        outcome.warnings.append(
            f"the change of {window.reason.who or window.run} stays open; it goes back to "
            f"{window.base} when it is undone"
        )
    reason = replace(options.reason, what=f"before restoring {target.id}")
    replaced = store.add(now, reason, host.machine(), target.declared)
    journal = RestoreJournal(target.id, replaced.id, window_id, options, plan)
    if plan.steps:
        if not _goes_on(store, target):
            store.label(BEFORE_RESTORE, replaced.id)
        store.write_restore(journal)
        return _go_back(store, target, journal, host, outcome)
    outcome.checkpoint = target.id
    outcome.left = list(plan.left)
    _settle(store, journal, replaced, outcome.left)
    return outcome


def resume_locked(store: Store, host: RestoreHost) -> Outcome | None:
    """:func:`resume` for a caller that holds the store's lock."""
    journal = store.restore_journal()
    if journal is None:
        return None
    try:
        target = store.get(journal.target)
        # A disk that was copied to another machine holds the journal, too.
        refuse_foreign(target, journal.options, host.machine().machine)
    except RollbackError as error:
        raise RollbackError(
            f"a restore was interrupted and cannot be ended: {error}. To give it up, delete "
            f"restore.json in {DIRECTORY}, then restore another checkpoint"
        ) from error
    outcome = Outcome(
        # The run that was killed may have kept some of them already.
        conflicts=list(journal.plan.conflicts),
        notes=[f"ended the restore to {target.id} that was interrupted"],
    )
    sweep(journal.plan, host.root)
    return _go_back(store, target, journal, host, outcome)


def _plan(
    store: Store,
    target: Checkpoint,
    now: State,
    options: RestoreOptions,
    host: RestoreHost,
    again: Mapping[str, Mapping[str, Any]] | None = None,
) -> Plan:
    settled = _settled(store)
    later = settled is not None and settled.sequence > target.sequence
    return make_plan(
        target,
        now,
        _ours(target, host),
        settled,
        options,
        scope.areas(target.declared),
        host.machine().machine,
        since_settled=_vouched(settled.sequence, host) if settled and later else {},
        window_open=store.window() is not None,
        again=again,
    )


def _again(store: Store) -> dict[str, dict[str, Any]]:
    """What an earlier restore left for later, as :func:`.plan.make_plan` takes it."""
    try:
        said, pending = store.pending_since(), store.pending()
    except RollbackError:
        # It is only told; damaged, it must not bar the way back, which writes it anew.
        return {}
    return {one.subject: {"waits": one.reason, "said": said} for one in pending}


def _goes_on(store: Store, target: Checkpoint) -> bool:
    """Is this the restore that ended last, done once more for what it had left?

    Then the state to undo it to is the one that was there before the first time.
    """
    settled = _settled(store)
    same = settled is not None and settled.reason.what == _AFTER.format(target.id)
    return same and BEFORE_RESTORE in store.labels()


def _settled(store: Store) -> Checkpoint | None:
    chosen = store.settled()
    try:
        return None if chosen is None else store.get(chosen)
    except RollbackError:
        # Damaged or deleted by hand: then it is not known, as on a new host.
        return None


def _ours(target: Checkpoint, host: RestoreHost) -> Mapping[str, Sequence[str]]:
    # Another host's count says nothing about this host's ledger.
    foreign = target.host.machine != host.machine().machine
    return _vouched(0 if foreign else target.sequence, host)


def _vouched(sequence: int, host: RestoreHost) -> Mapping[str, Sequence[str]]:
    try:
        ledger = vouched.since(sequence, root=host.root)
    except OSError as error:
        raise RollbackError(
            f"the ledger of what this collection wrote cannot be read: {error}; without it nobody "
            "knows what others wrote, so nothing was changed. Make it readable to root"
        ) from error
    found: dict[str, list[str]] = {}
    for path, tokens in ledger.items():
        found.setdefault(scope.canonical(path), []).extend(tokens)
    return found


def _go_back(
    store: Store,
    target: Checkpoint,
    journal: RestoreJournal,
    host: RestoreHost,
    outcome: Outcome,
) -> Outcome:
    """Carry out the journal's plan, see what came of it, and end the restore."""
    plan = journal.plan
    context = Context(store.open_content, journal.options, target, host.root)
    ours = _ours(target, host)
    done = carry_out(plan, context, host.actors(), ours, lambda: _vouch(plan, host.root))
    try:
        after_state = host.observe(store.sink, target.declared)
        remaining = _plan(store, target, after_state, journal.options, host)
        reason = replace(journal.options.reason, what=_AFTER.format(target.id))
        after = store.add(after_state, reason, host.machine(), target.declared)
        _tell(outcome, target, done, _left(done, remaining))
        outcome.notes += _at_boot(plan, target)
        _settle(store, journal, after, outcome.left)
    except RollbackError as error:
        raise RollbackError(
            f"every step back to {target.id} was done or tried, but how it ended could not be "
            f"kept, so it counts as interrupted: {error}. Then run: steadygpu checkpoint resume"
        ) from error
    return outcome


def _at_boot(plan: Plan, target: Checkpoint) -> list[str]:
    """What goes back on the disk, and counts for the kernel later."""
    areas = scope.areas(target.declared)
    found = [(step, scope.area_of(step.subject, areas)) for step in plan.steps if step.kind == FILE]
    paths = [step.subject for step, area in found if area is not None and area.tells == "boot"]
    return [f"{path} counts from the next boot on" for path in paths]


def _vouch(plan: Plan, root: str) -> None:
    """Say in the ledger what we are about to write, else a later restore took it for others'."""
    tokens: dict[str, str | None] = {}
    for step in plan.steps:
        if "entry" not in step.details or step.details.get("expected") == "directory":
            continue
        entry = entry_from_json(step.details["entry"])
        if entry.kind in ("file", "link", "absent"):
            tokens[step.subject] = token(entry) if entry.there else None
    if tokens:
        vouched.vouch_digests(tokens, root=root)


def _left(done: Carried, remaining: Plan) -> list[Left]:
    """Each subject once: what its actor said, what the plan said, what is seen not to be so."""
    unmet = [
        Left(step.subject, f"not as it was after all; still to do: {step.text}", pending=True)
        for step in remaining.steps
    ]
    found: dict[str, Left] = {}
    for one in (*done.left, *remaining.left, *unmet):
        found.setdefault(one.subject, one)
    return list(found.values())


def _tell(outcome: Outcome, target: Checkpoint, done: Carried, left: Sequence[Left]) -> None:
    outcome.changed = outcome.changed or done.changed
    outcome.checkpoint = target.id
    outcome.actions += done.actions
    outcome.conflicts += [path for path in done.conflicts if path not in outcome.conflicts]
    outcome.notes += done.notes
    outcome.warnings += done.warnings
    outcome.left = list(left)


def _settle(store: Store, journal: RestoreJournal, after: Checkpoint, left: Sequence[Left]) -> None:
    """The restore has ended. The window before the journal: a killed run does both again."""
    store.write_pending([one for one in left if one.pending])
    store.set_settled(after.id)
    window = store.window()
    if window is not None and window.id == journal.window:
        store.clear_window()
    store.clear_restore()
