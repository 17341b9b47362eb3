# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The steps of a plan, one after the other: each is done, or told as left, or stops all.

A step that fails stops nothing else, since the rest of the host is better off restored. Only a disk
that is full or read-only does: what comes after would fail as well.
"""

from __future__ import annotations

import errno
import itertools
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ..codec import entry_from_json
from ..model import Left, Plan, RollbackError, Step
from ..observation.files import MemorySink, look, open_directory
from . import put_back
from .actors_api import FILE, PATH_KINDS, Actor, Context, token
from .put_back import Item

_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)


@dataclass
class Carried:
    """What came of the steps; ``actions`` are the texts of those that changed something."""

    changed: bool = False
    actions: list[str] = field(default_factory=list)
    conflicts: list[str] = field(default_factory=list)
    left: list[Left] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def did(self, step: Step, changed: bool) -> None:
        """A step was done; it may have had nothing to do."""
        if changed:
            self.changed = True
            self.actions.append(step.text)

    def failed(self, step: Step, error: Exception) -> None:
        """A step was not done. Raises RollbackError where going on makes no sense."""
        known = isinstance(error, (RollbackError, OSError)) and str(error)
        reason = str(error) if known else f"{type(error).__name__}: {error}"
        if step.kind in PATH_KINDS and _is_disk(error):
            raise _stopped(step.subject, error) from error
        if step.details.get("expected") == "directory":
            # Somebody has put something of theirs into it; that is nothing to worry about.
            self.left.append(Left(step.subject, reason))
            return
        self.left.append(Left(step.subject, reason, pending=True))
        self.warnings.append(f"could not {step.text}: {reason}")


def carry_out(
    plan: Plan,
    context: Context,
    actors: Mapping[str, Actor],
    ours: Mapping[str, Sequence[str]],
    vouch: Callable[[], None],
) -> Carried:
    """Do every step of ``plan``; doing so again changes nothing more.

    ``ours`` are the tokens that this collection wrote since the target, by path. ``vouch`` is
    called before anything is written. Raises RollbackError when the disk is full or read-only; then
    what was done stays done, and each path is as it was or as it shall be.
    """
    carried = Carried()
    try:
        vouch()
    except OSError as error:
        raise _stopped("the ledger of what this collection writes", error) from error
    for files, steps in itertools.groupby(plan.steps, key=lambda step: step.kind == FILE):
        if files:
            _put_back(list(steps), context, ours, carried)
            continue
        for step in steps:
            _act(step, context, actors.get(step.kind), ours, carried)
    return carried


def sweep(plan: Plan, root: str) -> None:
    """Remove the temporary files that a killed run has left beside the plan's paths."""
    paths = (step.subject for step in plan.steps if step.kind in PATH_KINDS)
    put_back.sweep_leftovers(sorted({os.path.dirname(path) for path in paths}), root)


def _put_back(
    steps: Sequence[Step],
    context: Context,
    ours: Mapping[str, Sequence[str]],
    carried: Carried,
) -> None:
    """Files need no actor: putting them back is the same on every host."""
    ready = [step for step in steps if _keep(step, context.root, ours, carried)]
    items = [Item(step.subject, entry_from_json(step.details["entry"])) for step in ready]
    results = put_back.put_back_all(items, context.content, context.root)
    for step, result in zip(ready, results):
        if isinstance(result, RollbackError):
            carried.failed(step, result)
        else:
            carried.did(step, result)


def _act(
    step: Step,
    context: Context,
    actor: Actor | None,
    ours: Mapping[str, Sequence[str]],
    carried: Carried,
) -> None:
    if actor is None:
        carried.left.append(Left(step.subject, f"nobody does such a step here ({step.kind})"))
        return
    if step.kind in PATH_KINDS and not _keep(step, context.root, ours, carried):
        return
    try:
        done = actor(step, context)
    except Exception as error:
        # Also what nobody has foreseen: it would stop this restore at the same step each time that
        # it is resumed, and keep all later ones from it.
        carried.failed(step, error)
        return
    carried.did(step, done.changed)
    carried.left += done.left
    carried.notes += done.notes


def _keep(step: Step, root: str, ours: Mapping[str, Sequence[str]], carried: Carried) -> bool:
    """Keep beside its path what others wrote there. False if the step must not be done."""
    try:
        if not _by_others(step, root, ours.get(step.subject, ())):
            return True
        kept = put_back.keep_conflict(step.subject, root)
    except (RollbackError, OSError) as error:
        carried.failed(step, error)
        return False
    if kept is not None:
        carried.conflicts.append(step.subject)
        carried.warnings.append(
            f"{step.subject} was changed by others since; what they wrote is kept as {kept}"
        )
    return True


def _by_others(step: Step, root: str, ours: Sequence[str]) -> bool:
    """Is there something at the path now that must be kept?

    The plan may be older than what is there: it was made before a power cut, say, and somebody has
    edited the file since.
    """
    wanted = token(entry_from_json(step.details["entry"]))
    directory = open_directory(os.path.dirname(step.subject), root)
    try:
        present = token(look(directory, step.subject, MemorySink(0, 0)))
    finally:
        if directory is not None and directory >= 0:
            os.close(directory)
    if present in (wanted, "absent", "directory"):
        return False
    if present == step.details["expected"]:
        return bool(step.details["conflict"])
    # Docker's file may be at a text in between, which was vouched for.
    return present not in ours


def _is_disk(error: BaseException) -> bool:
    return any(isinstance(one, OSError) and one.errno in _DISK for one in _causes(error))


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__


def _stopped(what: str, error: Exception) -> RollbackError:
    return RollbackError(
        f"the restore stopped at {what}: {error}. Each file is as it was or as it shall be, and "
        "the journal stays: make the disk writable, or room on it, then run: "
        "steadygpu checkpoint resume"
    )
