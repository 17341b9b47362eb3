# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The way back of kept settings: the live values first, then the record that explains them.

In this order a restore that is cut short finds the record of what it comes from, and does it again.
"""

from __future__ import annotations

from ...acs import go_back as bridges
from ...boot import generated
from ...boot.model import Machine
from ...settings import between, record
from ...settings.model import SettingsError
from .. import codec
from ..model import Done, Left, RollbackError, Step
from . import put_back
from .actors_api import Context

_ACS, _KERNEL = "acs", "kernel"


def act(step: Step, context: Context) -> Done:
    """Bring the values and the record at ``step.subject`` to the step's entry.

    What the kernel refuses is told as left, and the record goes back all the same: it says what was
    there before. What is in no file and no live value (bridges, entries of the boot loader) is
    known by the record alone: where that cannot go back, the record stays, for the next try. Raises
    RollbackError.
    """
    path = step.subject
    entry = codec.entry_from_json(step.details["entry"])
    owner = record.owner_of(path) or ""
    notes: tuple[str, ...] = ()
    left: tuple[Left, ...] = ()
    changed = False
    try:
        now = record.load(owner, context.root)
        then = None
        if entry.digest is not None:
            with context.content(entry.digest) as handle:
                then = record.parse(owner, handle.read().decode("utf-8", errors="replace"))
        found = between.moves(now, then, context.root)
        refused = between.carry_out(found, context.root)
        changed = len(found) > len(refused)
        done, kept = _beside(owner, now, then, context.root)
        changed = changed or bool(done)
        notes = (*(move.text for move in found), *done)
        if refused or kept:
            reason = "; ".join([*refused, *kept])
            left = (Left(f"settings of {owner}", reason, pending=True),)
        if kept:
            return Done(changed, left=left, notes=notes)
    except SettingsError as error:
        notes = (f"live values of {owner} stay as they are: {error}",)
    except OSError as error:
        raise RollbackError(f"{error.filename}: {error.strerror}") from error
    changed = put_back.put_back(path, entry, context.content, context.root) or changed
    return Done(changed, left=left, notes=notes)


def _beside(
    owner: str, now: record.Record | None, then: record.Record | None, root: str
) -> tuple[list[str], list[str]]:
    """What an owner has elsewhere than in files and live values: what was done, and what was not.

    Raises SettingsError.
    """
    if owner == _ACS:
        return bridges.go_back(now, then, root)
    if owner == _KERNEL:
        return generated.go_back(now, then, Machine(root))
    return [], []
