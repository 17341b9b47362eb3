# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which way back is meant, and what it changes, for a caller that shows it."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass

from . import scope, window
from .difference import diff
from .model import Difference, Outcome, RestoreOptions, Window
from .storage.store import Store
from .way_back import restore
from .way_back.actors_api import RestoreHost


@dataclass(frozen=True)
class Wish:
    """What is asked for. Without ``checkpoint`` it is the base of the open window.

    ``run`` and ``takeover`` say who asks, and whether another run's open change is to be ended.
    ``compare`` asks for the difference that it makes, which costs one more look at the host.
    """

    options: RestoreOptions
    run: str
    checkpoint: str = ""
    takeover: bool = False
    dry_run: bool = False
    compare: bool = False


def go_back(store: Store, host: RestoreHost, wish: Wish) -> tuple[Outcome, Difference | None]:
    """Undo the open change, or go to any other checkpoint; and the difference if wished for.

    Never falls back to the state before an earlier change: a run that failed before it began
    anything has nothing to undo. Raises RollbackError then, WindowBusyError while another run has a
    change open, and like :func:`.way_back.restore.restore`.
    """
    # Nobody may begin or end a change between the choice and the act.
    with contextlib.nullcontext() if wish.dry_run else store.locked():
        opened = store.window()
        if not wish.checkpoint and opened is None and wish.dry_run:
            note = "no change is open, as none is begun in check mode, so there is nothing to undo"
            return Outcome(notes=[note]), None
        target = store.find(wish.checkpoint) if wish.checkpoint else opened.base if opened else ""
        before = None
        if wish.compare and target:
            before = restore.foresee(store, target, wish.options, host)
        outcome = _act(store, host, wish, opened, target)
        return outcome, _difference(store, before, wish.dry_run) if before else None


def _act(
    store: Store, host: RestoreHost, wish: Wish, opened: Window | None, target: str
) -> Outcome:
    if not target or (opened is not None and target == opened.base):
        return window.undo(store, host, wish.run, wish.options, wish.takeover, wish.dry_run)
    if opened is not None:
        # Would begin be refused? Then somebody is changing the host right now.
        window.refuse_other(opened, host, wish.run, wish.takeover)
    return restore.restore(store, target, wish.options, host, wish.dry_run)


def _difference(store: Store, before: restore.Prospect, dry_run: bool) -> Difference:
    """From before to after; the latter as foreseen in a dry run, else as it was seen."""
    settled = None if dry_run else store.settled()
    return diff.difference(
        before.now,
        store.get(settled).state if settled else before.then,
        ("before", "after"),
        before.content,
        before.content,
        scope.areas(before.target.declared),
    )
