# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a plan promises: the state after it. Pure."""

from __future__ import annotations

from dataclasses import replace

from ..codec import entry_from_json
from ..model import PackageState, Plan, State, Step, UnitState
from .actors_api import HOLD, MIG, PACKAGE_INSTALL, PACKAGE_REMOVE, PATH_KINDS, SYSCTL, UNIT

_NO_UNIT = UnitState("not-found", "inactive", "")


def promised(now: State, plan: Plan) -> State:
    """The state if every step does what it says. What appears by itself is not foreseen."""
    state = now
    for step in plan.steps:
        state = _after(state, step)
    return state


def _after(state: State, step: Step) -> State:
    details, subject = step.details, step.subject
    if step.kind in PATH_KINDS:
        return replace(state, files={**state.files, subject: entry_from_json(details["entry"])})
    if step.kind == UNIT:
        unit = state.units.get(subject, _NO_UNIT)
        unit = replace(
            unit,
            enabled=details.get("enabled", unit.enabled),
            active=details.get("active", unit.active),
        )
        return replace(state, units={**state.units, subject: unit})
    if step.kind == SYSCTL:
        return replace(state, sysctls={**state.sysctls, subject: details["value"]})
    if step.kind == MIG:
        wanted = {gpu["uuid"]: gpu for gpu in details["gpus"]}
        return replace(state, mig=[wanted.get(gpu["uuid"], gpu) for gpu in state.mig or ()])
    packages = dict(state.packages)
    if step.kind == PACKAGE_INSTALL:
        for name, version in details["packages"].items():
            packages[name] = PackageState(version, name in packages and packages[name].held)
    elif step.kind == PACKAGE_REMOVE:
        for name in details["packages"]:
            packages.pop(name, None)
    elif step.kind == HOLD:
        for name, held in details["packages"].items():
            if name in packages:
                packages[name] = replace(packages[name], held=held)
    else:
        return state
    return replace(state, packages=packages)
