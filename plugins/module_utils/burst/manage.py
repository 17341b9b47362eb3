# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Keep the bursts of slices: the module's work."""

from __future__ import annotations

import contextlib
import glob
import os
from collections.abc import Mapping

from .. import boot_unit, units
from ..atomic import read_text
from ..settings.apply import Keeper, Outcome
from ..settings.files import MARK
from ..settings.model import DIFFERS, SettingsError
from ..slices import reader as slices_reader
from ..slices import reload
from . import apply as bursts
from . import model, reader, watch

_UNITS = "etc/systemd/system"


def ensure_present(raw: Mapping[str, object], check_mode: bool, root: str = "/") -> Outcome:
    """Give each slice the burst that is asked for it, now and whenever its quota changes.

    ``raw`` maps the name of a slice to a percentage of its quota or a time span. A slice that is
    not named any more gets its former burst back. Raises BurstError and SettingsError.
    """
    wishes = [model.parse(name, text) for name, text in sorted(raw.items())]
    booted = slices_reader.has_systemd(root)
    if not booted and not check_mode:
        raise model.BurstError(
            "systemd is not running on this host (no /run/systemd/system): wanted a booted host"
        )
    try:
        with _alone(check_mode, root):
            return _present(wishes, booted, check_mode, root)
    except (boot_unit.ForeignUnitError, units.UnitError) as error:
        raise model.BurstError(str(error)) from error
    except OSError as error:
        raise model.BurstError(f"{error.filename}: {error.strerror}") from error


def ensure_absent(check_mode: bool, root: str = "/") -> Outcome:
    """Put the former bursts back and take the units away. Raises BurstError and SettingsError."""
    try:
        with _alone(check_mode, root):
            # First the units, which would bring the bursts back.
            actions = _retire(set(), check_mode, root)
            actions += boot_unit.remove(watch.service(), check_mode, root)
            outcome = Keeper(bursts.OWNER, check_mode, root).absent()
    except (boot_unit.ForeignUnitError, units.UnitError) as error:
        raise model.BurstError(str(error)) from error
    except OSError as error:
        raise model.BurstError(f"{error.filename}: {error.strerror}") from error
    outcome.actions[:0] = actions
    return outcome


def _alone(check_mode: bool, root: str) -> contextlib.AbstractContextManager[None]:
    """The unit may be at work: a quota was changed a moment ago."""
    return contextlib.nullcontext() if check_mode else bursts.alone(root)


def _present(wishes: list[model.Wish], booted: bool, check_mode: bool, root: str) -> Outcome:
    seen = {wish.slice: reader.read(wish.slice, root) for wish in wishes}
    if not check_mode:
        _refuse_unknown(seen)
    faults = [model.above_quota(wish, seen[wish.slice]) for wish in wishes]
    if any(faults):
        raise model.BurstError("\n".join(fault for fault in faults if fault))
    wanted = [watch.service(), *(watch.watch(wish.slice) for wish in wishes)]
    for unit in wanted:
        boot_unit.refuse_foreign(unit, root)
    actions = []
    for one in seen.values():
        actions += bursts.repair(one, root, check_mode)
    if actions and not check_mode:
        seen = {name: reader.read(name, root) for name in seen}
    targets = [bursts.target(wish, seen[wish.slice]) for wish in wishes]
    extra = {"slices": {wish.slice: wish.text for wish in wishes}}
    outcome = Keeper(bursts.OWNER, check_mode, root).keep(targets, {}, extra)
    outcome.actions[:0] = actions
    # After the record: what the units run reads it.
    for unit in wanted:
        outcome.actions += boot_unit.install(unit, check_mode, root)
    outcome.actions += _retire({unit.name for unit in wanted}, check_mode, root)
    if booted:
        outcome.actions += _watch(wanted[1:], check_mode, outcome)
    outcome.settings = [bursts.setting(wish, seen[wish.slice], root) for wish in wishes]
    if not os.path.exists(os.path.join(root, boot_unit.COMMAND.lstrip("/"))):
        outcome.warnings.append(
            f"there is no {boot_unit.COMMAND}: a burst is set now, and not kept over a reboot or a "
            "changed quota; the role steadygpu.host.agent installs the command"
        )
    wrong = [one for one in outcome.settings if one.verdict == DIFFERS]
    if wrong and not check_mode:
        raise SettingsError(
            "\n".join(
                f"{one.name}: seen {one.effective}, wanted {one.wanted}: {one.reason}"
                for one in wrong
            )
        )
    return outcome


def _refuse_unknown(seen: Mapping[str, model.Seen]) -> None:
    unknown = [name for name, one in seen.items() if not one.known]
    if unknown:
        raise model.BurstError(
            "there is no {} on this host, neither as a unit file nor as a living slice: wanted "
            "slices that exist, such as those of the role steadygpu.host.slices".format(
                ", ".join(unknown)
            )
        )


def _watch(paths: list[boot_unit.BootUnit], check_mode: bool, outcome: Outcome) -> list[str]:
    actions = []
    for unit in paths:
        said = units.show(unit.name, ("ActiveState", "NeedDaemonReload"))
        if said.get("ActiveState") == "active":
            continue
        actions.append(f"start {unit.name}")
        if check_mode:
            continue
        # A unit that systemd has never loaded needs no daemon-reload.
        if said.get("NeedDaemonReload") == "yes":
            endangered = reload.endangered()
            if endangered:
                outcome.warnings.append(
                    f"{unit.name} starts as it was before, until the next daemon-reload: none was "
                    "run, since it may take the GPU from {}".format(", ".join(endangered))
                )
            else:
                units.daemon_reload()
        units.act("start", unit.name)
    return actions


def _retire(staying: set[str], check_mode: bool, root: str) -> list[str]:
    """Stop and remove the path units of ours that nobody wants any more."""
    actions = []
    for path in sorted(glob.glob(os.path.join(root, _UNITS, "steadygpu-burst-*.path"))):
        name = os.path.basename(path)
        text = read_text(path) if not os.path.islink(path) else None
        if name in staying or text is None or not text.startswith(MARK):
            continue
        if slices_reader.has_systemd(root):
            active = units.show(name, ("ActiveState",)).get("ActiveState") == "active"
            if active:
                actions.append(f"stop {name}")
            if active and not check_mode:
                units.act("stop", name)
        actions += boot_unit.remove(boot_unit.BootUnit(name, text), check_mode, root)
    return actions
