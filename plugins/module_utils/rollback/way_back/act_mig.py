# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The way back of the MIG layout: the very instances that were there, once nobody is on them."""

from __future__ import annotations

import os

from ...atomic import read_text
from ...mig import boot, cdi, nvml_mig, targets
from ...mig.apply import apply
from ...mig.change import ApplyError, Options
from ...mig.journal import DIRECTORY
from ...mig.model import MigError
from ..model import Done, Left, RollbackError, Step
from ..scope import canonical
from .actors_api import Context


def act(step: Step, context: Context, socket: str) -> Done:
    """Give each GPU of the step its former layout; refused while anybody holds one of them.

    Raises RollbackError for a change that failed on the way; its text says what the GPUs have now.
    """
    try:
        wanted = targets.from_json("the checkpoint", step.details["gpus"])
    except MigError as error:
        raise RollbackError(str(error)) from error
    if not wanted:
        return Done()
    specification = _specification(context, socket)
    options = Options(
        exactly=wanted,
        deadline_s=context.options.deadline_s,
        specification=specification,
        socket=socket,
        directory=os.path.join(context.root, DIRECTORY.lstrip("/")),
        root=context.root,
    )
    try:
        outcome = apply(options)
    except (ApplyError, OSError) as error:
        raise RollbackError(str(error)) from error
    except MigError as error:
        # The specification of the former layout is back already: a name that outlives its device
        # is worse than a missing one.
        notes = _fit(specification, context)
        return Done(bool(notes), (Left(step.subject, str(error), pending=True),), notes)
    left = tuple(
        Left(str(one["uuid"]), str(one["reason"]), pending=True) for one in outcome.pending
    )
    return Done(outcome.changed, left, (*outcome.warnings, *outcome.notes))


def _specification(context: Context, socket: str) -> cdi.Settings | None:
    """The CDI specification that goes with the layout; None where there was none."""
    try:
        config = boot.read_config(context.root)
    except MigError:
        config = None
    settings = (config.cdi if config else None) or cdi.Settings(socket=socket)
    there = context.target.state.files.get(canonical(settings.path))
    path = os.path.join(context.root, settings.path.lstrip("/"))
    return settings if (there is not None and there.there) or os.path.exists(path) else None


def _fit(specification: cdi.Settings | None, context: Context) -> tuple[str, ...]:
    """Make the specification name what there is; what was done."""
    if specification is None or read_text(specification.path) is None:
        return ()
    try:
        reading = nvml_mig.read(context.options.deadline_s)
        done = cdi.refresh(reading, specification, check_mode=False, root=context.root)
    except (MigError, OSError) as error:
        return (f"{specification.path} may name MIG devices that do not exist: {error}",)
    return (*done.actions, *done.warnings)
