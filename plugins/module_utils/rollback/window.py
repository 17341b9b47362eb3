# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How a change begins, and how it ends: confirmed, or undone.

What is open is one file, the window, which names the checkpoint to go back to. That checkpoint is
whole before the window is written, and the window goes last: a run that is killed leaves either no
window or one that can be undone.
"""

from __future__ import annotations

import datetime
import itertools
import secrets
from collections.abc import Sequence
from dataclasses import replace

from .. import vouched
from . import scope
from .codec import state_digest
from .model import (
    BEFORE_CHANGE,
    STABLE,
    BusyError,
    Checkpoint,
    Outcome,
    Reason,
    RestoreOptions,
    RollbackError,
    State,
    Window,
)
from .storage.store import Store
from .way_back.actors_api import RestoreHost


class WindowBusyError(BusyError):
    """The open change is another run's, which ``window`` tells about; nothing was changed."""

    def __init__(self, message: str, window: Window) -> None:
        super().__init__(message)
        self.window = window


def begin(
    store: Store,
    host: RestoreHost,
    run: str,
    what: str,
    confirm_within_s: float,
    reason: Reason,
    declared: Sequence[str] = (),
    takeover: bool = False,
    dry_run: bool = False,
) -> Outcome:
    """Keep the state before a change and open the window in which it has to be confirmed.

    ``run`` identifies the caller's run. One that has the window open already joins it with
    ``what``. A window of another run that has expired, or with ``takeover``, is adopted: it keeps
    the checkpoint that it goes back to. ``Outcome.opened`` if the caller opened or adopted it, and
    so has to confirm. ``Outcome.changed`` is False, unless an interrupted restore had to be ended.

    Raises WindowBusyError when another run has a change open, RollbackError when there is no room.
    """
    if dry_run:
        window = store.window()
        if window is not None:
            refuse_other(window, host, run, takeover)
        return Outcome(
            checkpoint=window.base if window else "",
            window=window,
            opened=window is None or window.run != run,
        )
    with store.locked():
        outcome = Outcome()
        ended = _end_interrupted(store, host)
        if ended is not None:
            outcome = replace(ended, checkpoint="")
        window = store.window()
        if window is not None and _copied(store, host, window):
            outcome.warnings.append(
                f"the change that {window.reason.who or window.run} began was on another machine, "
                f"whose disk was copied here; it cannot be undone here, so this change begins anew"
            )
            window = None
        if window is not None:
            refuse_other(window, host, run, takeover)
            base = _widened(store, host, window, declared)
            outcome.opened, window = _adopt(window, host, run, what, confirm_within_s, outcome)
            window = replace(window, base=base)
        else:
            state = host.observe(store.sink, declared)
            reason = replace(reason, what=reason.what or what)
            base = store.add(state, reason, host.machine(), tuple(declared)).id
            name = secrets.token_hex(8)
            window = Window(name, run, base, host.moment(), confirm_within_s, reason)
            outcome.opened = True
            outcome.warnings += _unknown(state)
        if window != store.window():
            store.write_window(window)
        outcome.window, outcome.checkpoint = window, window.base
        return outcome


def confirm(
    store: Store,
    host: RestoreHost,
    run: str,
    keep: int,
    max_age_days: float | None,
    takeover: bool = False,
    dry_run: bool = False,
) -> Outcome:
    """End the open change: what the host is now is the stable state.

    Old checkpoints go, as ``keep`` (how many stay) and ``max_age_days`` say. Nothing open is no
    error. ``Outcome.changed`` as with :func:`begin`; ``checkpoint`` is the state of now.

    Raises WindowBusyError when it is another run's.
    """
    if dry_run:
        window = store.window()
        if window is not None:
            refuse_other(window, host, run, takeover, expired_is_free=False)
        return Outcome(window=window, checkpoint=window.base if window else "")
    if store.window() is None and store.restore_journal() is None:
        return Outcome(notes=["no change is open"])
    with store.locked():
        outcome = _end_interrupted(store, host) or Outcome()
        window = store.window()
        if window is None:
            outcome.notes.append("no change is open")
            return outcome
        refuse_other(window, host, run, takeover, expired_is_free=False)
        base = _base(store, window, outcome)
        declared = base.declared if base else ()
        state = host.observe(store.sink, declared)
        after = store.add(state, window.reason, host.machine(), declared)
        if base is not None and not same_configuration(base.state, state):
            store.label(BEFORE_CHANGE, base.id)
            # What an earlier way back had left for later is overtaken.
            store.write_pending([])
        store.label(STABLE, after.id)
        store.set_settled(after.id)
        store.clear_window()
        outcome.checkpoint, outcome.window = after.id, window
        outcome.warnings += _unknown(state)
        _prune(store, host, keep, max_age_days, outcome)
        return outcome


def undo(
    store: Store,
    host: RestoreHost,
    run: str,
    options: RestoreOptions,
    takeover: bool = False,
    dry_run: bool = False,
) -> Outcome:
    """Bring the host back to what it was before the open change, and end the change.

    Raises RollbackError when nothing is open, WindowBusyError when it is another run's and has not
    expired, and like :func:`.way_back.restore.restore`.
    """
    # Only here, since what is not imported is not compiled each time that a change is begun.
    from .way_back.restore import foresee, restore_locked

    if dry_run:
        window = _open(store)
        refuse_other(window, host, run, takeover)
        outcome = foresee(store, window.base, options, host).outcome
        outcome.window = window
        return outcome
    with store.locked():
        opened = store.window()
        if opened is not None:
            refuse_other(opened, host, run, takeover)
        ended = _end_interrupted(store, host)
        if ended is not None and store.window() is None:
            # It was this undoing that had been interrupted.
            ended.window = opened
            return ended
        window = _open(store)
        outcome = restore_locked(store, window.base, options, host, window.id, ended)
        outcome.window = window
        return outcome


def _end_interrupted(store: Store, host: RestoreHost) -> Outcome | None:
    if store.restore_journal() is None:
        return None
    from .way_back.restore import resume_locked

    return resume_locked(store, host)


def refuse_other(
    window: Window, host: RestoreHost, run: str, takeover: bool, expired_is_free: bool = True
) -> None:
    """Raise WindowBusyError if the window is another run's, unless told to take it over.

    One that has expired holds nobody up if ``expired_is_free``.
    """
    if window.run == run or takeover:
        return
    seconds = window.seconds_left(host.moment())
    if seconds <= 0 and expired_is_free:
        return
    opened = datetime.datetime.fromtimestamp(window.opened.wall, datetime.timezone.utc)
    state = f"has {_duration(seconds)} left" if seconds > 0 else "has expired"
    reason = window.reason
    told = [f"{key} {value}" for key, value in (("why", reason.why), ("ticket", reason.ticket))]
    named = [text for text, value in zip(told, (reason.why, reason.ticket)) if value]
    raise WindowBusyError(
        f"{reason.who or 'somebody'} has a change open on this host: "
        f"{', '.join([reason.what or 'unnamed', *window.joined, *named])}; begun "
        f"{opened:%Y-%m-%d %H:%M} UTC by {window.run}, it {state}. Nothing was changed. Wait until "
        "it is over; or, if that run is dead, keep what it did (steadygpu checkpoint confirm), "
        f"undo it (steadygpu checkpoint restore {window.base}), or go on with it (takeover: true)",
        window,
    )


def same_configuration(one: State, other: State) -> bool:
    """Are both the same but for what comes and goes by itself, such as containers?

    A part that one of them does not know tells nothing.
    """
    unknown = {**one.unknown, **other.unknown}
    blank = State()
    bare = [
        replace(
            state,
            runtime={},
            unknown={},
            units=blank.units if "units" in unknown else state.units,
            sysctls=blank.sysctls if "sysctls" in unknown else state.sysctls,
            packages=blank.packages if "packages" in unknown else state.packages,
            mig=blank.mig if "mig" in unknown else state.mig,
            kernel_cmdline="" if "kernel_cmdline" in unknown else state.kernel_cmdline,
        )
        for state in (one, other)
    ]
    return state_digest(bare[0]) == state_digest(bare[1])


def _open(store: Store) -> Window:
    window = store.window()
    if window is None:
        raise RollbackError(
            "no change is open, so there is nothing to undo; to go back to an earlier state name "
            f"a checkpoint or a label, for example {BEFORE_CHANGE} (steadygpu checkpoint list)"
        )
    return window


def _copied(store: Store, host: RestoreHost, window: Window) -> bool:
    """Was the change begun on another machine, of whose disk this is a copy?"""
    return store.get(window.base).host.machine != host.machine().machine


def _adopt(
    window: Window,
    host: RestoreHost,
    run: str,
    what: str,
    confirm_within_s: float,
    outcome: Outcome,
) -> tuple[bool, Window]:
    """Join the caller's own window, or take over another's; whether the latter, and the window."""
    now = host.moment()
    expired = window.seconds_left(now) <= 0
    other = window.run != run
    if what and what not in (window.reason.what, *window.joined):
        window = replace(window, joined=(*window.joined, what))
    if not other and not expired:
        return False, window
    whose = f"the change that {window.reason.who or window.run} began" if other else "this change"
    state = "had expired" if expired else "was taken over"
    outcome.warnings.append(
        f"{whose} {state}; it goes on, and undoing it leads back to {window.base}, the state before"
    )
    return other, replace(window, run=run, opened=now, confirm_within_s=confirm_within_s)


def _widened(store: Store, host: RestoreHost, window: Window, declared: Sequence[str]) -> str:
    """The base of a window that somebody joins who will change further paths.

    Those are not changed yet: as they are now they belong to the state before the change.
    """
    base = store.get(window.base)
    further = [path for path in declared if path not in base.declared]
    if not further:
        return base.id
    both = (*base.declared, *further)
    known = scope.areas(base.declared)
    now = host.observe(store.sink, both)
    added = {
        path: entry
        for path, entry in now.files.items()
        if path not in base.state.files and scope.area_of(path, known) is None
    }
    state = replace(base.state, files={**base.state.files, **added})
    wider = store.add(state, base.reason, host.machine(), both)
    _vouch_again(base.sequence, host.root)
    return wider.id


def _vouch_again(sequence: int, root: str) -> None:
    """What was written since the former base was, by its content, written since the new one."""
    try:
        ledger = vouched.since(sequence, root=root)
        for layer in itertools.zip_longest(*ledger.values()):
            told = {path: token for path, token in zip(ledger, layer) if token is not None}
            vouched.vouch_digests(
                {path: None if token == vouched.ABSENT else token for path, token in told.items()},
                root=root,
            )
    except OSError as error:
        raise RollbackError(
            f"what this collection wrote since cannot be kept in mind: {error}; nothing was "
            "changed. Make room, or the disk writable, and try again"
        ) from error


def _base(store: Store, window: Window, outcome: Outcome) -> Checkpoint | None:
    try:
        return store.get(window.base)
    except RollbackError as error:
        outcome.warnings.append(f"the state before this change is lost: {error}")
        return None


def _prune(
    store: Store, host: RestoreHost, keep: int, max_age_days: float | None, outcome: Outcome
) -> None:
    try:
        gone = store.prune(keep, max_age_days, host.moment().wall)
    except (RollbackError, OSError) as error:
        # The change has ended well; an old checkpoint too many harms nobody.
        outcome.warnings.append(f"old checkpoints were not removed: {error}")
        return
    if gone:
        outcome.notes.append(f"removed {len(gone)} old checkpoints")


def _unknown(state: State) -> list[str]:
    return [
        f"{part} could not be read, so this checkpoint is without: {why}"
        for part, why in state.unknown.items()
    ]


def _duration(seconds: float) -> str:
    minutes = int(seconds // 60)
    if minutes >= 120:
        return f"{minutes // 60} h {minutes % 60} min"
    return f"{minutes} min" if minutes else f"{int(seconds)} s"
