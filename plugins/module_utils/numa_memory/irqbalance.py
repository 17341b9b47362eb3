# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""irqbalance kept away from CPUs, and from the interrupts of drivers.

It reads its variables from an environment file when it starts. So it is started anew, which moves
no interrupt by itself, and systemd has nothing to reload. Interrupts are named by the driver, not
by their numbers: those change at every boot. See irqbalance(1).
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass

from .. import vouched
from ..atomic import read_text
from ..engine.services import parse_environment_file
from ..process import CommandMissingError, find_program, run
from ..settings.model import DIFFERS, EFFECTIVE, ENVIRONMENT, INERT, Target
from ..settings.readback import read_back
from .model import NumaError

_PROGRAM = "irqbalance"
_UNIT = "irqbalance.service"
_START_S = 15.0
_PATHS = ("/etc/default/irqbalance", "/etc/sysconfig/irqbalance")
_CPUS, _ARGS, _OLD = "IRQBALANCE_BANNED_CPULIST", "IRQBALANCE_ARGS", "IRQBALANCE_BANNED_CPUS"
_BEGIN = "# BEGIN steadygpu.host (role numa), which also removes it"
_END = "# END steadygpu.host (role numa)"


@dataclass(frozen=True)
class View:
    """irqbalance on this host. ``path`` and ``text`` are of its environment file."""

    installed: bool
    active: bool
    path: str
    text: str | None
    takes_arguments: bool


@dataclass(frozen=True)
class Plan:
    """``after`` is None where the file is not to be there. ``targets`` tell how it is verified."""

    path: str
    before: str | None
    after: str | None
    targets: tuple[Target, ...] = ()

    @property
    def changed(self) -> bool:
        """Is there anything to write?"""
        return self.before != self.after


def look(root: str = "/") -> View:
    """What is there. Raises OSError."""
    path = next((p for p in _PATHS if os.path.exists(_below(root, p))), _PATHS[0])
    installed = (
        find_program(_PROGRAM) is not None
        if root == "/"
        else os.path.exists(_below(root, "/usr/sbin/irqbalance"))
    )
    unit = ""
    active = False
    if installed and root == "/":
        try:
            unit = run(["systemctl", "cat", "--no-pager", _UNIT]).stdout
            active = run(["systemctl", "is-active", "--quiet", _UNIT]).ok
        except CommandMissingError:
            pass
    takes = f"${_ARGS}" in unit or f"${{{_ARGS}}}" in unit
    return View(installed, active, path, read_text(_below(root, path)), takes)


def plan(view: View, cpus: str, drivers: tuple[str, ...]) -> Plan:
    """The environment file with these bans, or without any of ours. Raises NumaError. Pure."""
    wanted = _variables(cpus, drivers)
    inert = []
    for name, why in _inert(view).items():
        if name in wanted:
            inert.append(_target(name, wanted.pop(name), INERT, why))
    rest = _without(view.text) or ""
    theirs = parse_environment_file(rest)
    for name in [*wanted, *([_OLD] if _CPUS in wanted else [])]:
        if theirs.get(name) and theirs[name] != wanted.get(name):
            raise NumaError(
                f"{view.path} sets {name}={theirs[name]}, which is not of this collection"
                + (f"; wanted is {name}={wanted[name]}" if name in wanted else "")
                + ". Take the line out, or ask for the same"
            )
    if not wanted:
        return Plan(view.path, view.text, _without(view.text), tuple(inert))
    gap = "" if not rest or rest.endswith("\n") else "\n"
    lines = [_BEGIN, *(f'{name}="{value}"' for name, value in wanted.items()), _END]
    text = rest + gap + "\n".join(lines) + "\n"
    note = f"irqbalance was started with another value: systemctl restart {_UNIT}"
    targets = tuple(_target(name, value, ENVIRONMENT, note) for name, value in wanted.items())
    return Plan(view.path, view.text, text, (*targets, *inert))


def apply(planned: Plan, view: View, check_mode: bool, root: str = "/") -> list[str]:
    """Write the file and start irqbalance anew, if it runs. Raises OSError and NumaError."""
    actions = []
    if planned.changed:
        actions.append(f"{'write' if planned.after else 'remove'} {planned.path}")
        if not check_mode and planned.after is None:
            vouched.remove(_below(root, planned.path), root)
        elif not check_mode:
            vouched.write(_below(root, planned.path), planned.after or "", root=root)
    if view.active and (planned.changed or _is_stale(planned, root)):
        actions.append(f"restart {_UNIT}")
        if not check_mode:
            _restart(planned, root)
    return actions


def _restart(planned: Plan, root: str) -> None:
    done = run(["systemctl", "restart", _UNIT])
    if done.ok:
        _await(planned, root)
        return
    if planned.before is None:
        vouched.remove(_below(root, planned.path), root)
    else:
        vouched.write(_below(root, planned.path), planned.before, root=root)
    run(["systemctl", "restart", _UNIT])
    raise NumaError(
        f"{_UNIT} did not start with {planned.path}, which was put back: {done.said}. See: "
        f"journalctl -b -u {_UNIT}"
    )


def _await(planned: Plan, root: str) -> None:
    """Until the program runs: for systemd a unit is started before its program is."""
    end = time.monotonic() + _START_S
    asked = [target for target in planned.targets if target.kind == ENVIRONMENT]
    while time.monotonic() < end:
        if all(read_back(target, root).verdict == EFFECTIVE for target in asked):
            return
        time.sleep(0.2)


def _is_stale(planned: Plan, root: str) -> bool:
    """Does irqbalance run with other variables than the file has?"""
    asked = [target for target in planned.targets if target.kind == ENVIRONMENT]
    return any(read_back(target, root).verdict == DIFFERS for target in asked)


def _variables(cpus: str, drivers: tuple[str, ...]) -> dict[str, str]:
    found = {}
    if cpus:
        found[_CPUS] = cpus
    if drivers:
        found[_ARGS] = " ".join(f"--banmod={name}" for name in drivers)
    return found


def _inert(view: View) -> Mapping[str, str]:
    """Why a variable could never act here. One that is stopped now takes them when it starts."""
    if not view.installed:
        why = "irqbalance is not installed: nothing moves interrupts here"
        return {_CPUS: why, _ARGS: why}
    if not view.takes_arguments:
        return {_ARGS: f"{_UNIT} does not pass {_ARGS} on, so it knows no drivers to leave alone"}
    return {}


def _target(name: str, value: str, kind: str, note: str) -> Target:
    words = "banned CPUs" if name == _CPUS else "banned drivers"
    path = _PROGRAM if kind == ENVIRONMENT else ""
    return Target(f"irqbalance {words}", kind, path, f"{name}={value}", note)


def _without(text: str | None) -> str | None:
    """The file without our block; None where nothing else was in it, or it is not there."""
    if text is None or _BEGIN not in text:
        return text
    return (
        re.sub(rf"^{re.escape(_BEGIN)}\n.*?(^{re.escape(_END)}\n|\Z)", "", text, flags=re.M | re.S)
        or None
    )


def _below(root: str, path: str) -> str:
    return os.path.join(root, path.lstrip("/"))
