# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Keep scheduler and iocost of disks, or put back what was there before."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from .. import boot_unit
from ..settings import record as records
from ..settings.apply import Keeper
from ..settings.live import write_live
from ..settings.model import Setting, SettingsError, Target
from ..settings.readback import live_value, read_back, same_value
from . import reader
from .model import ALL, Disk, IoError, Wish, as_plain, parse_devices
from .plan import RULES, Plan, dropped_words, make_plan, weights
from .renamed import DISKS, follow, known_disks

OWNER = "io"
_TEXT = f"""\
# Written by steadygpu.host.io_control, which also removes it.
[Unit]
Description=Share out disks by weight again (iocost)
After=local-fs.target systemd-udev-settle.service
Before={boot_unit.ENGINES}
ConditionPathExists={boot_unit.COMMAND}

[Service]
Type=oneshot
RemainAfterExit=yes
TimeoutStartSec=120
ExecStart={boot_unit.COMMAND} io apply

[Install]
WantedBy=multi-user.target
"""
UNIT = boot_unit.BootUnit("steadygpu-io.service", _TEXT)


@dataclass
class Outcome:
    """What was, or in check mode would be, done; ``weights`` as they act now, by disk."""

    actions: list[str] = field(default_factory=list)
    diff: list[dict[str, str]] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    settings: list[Setting] = field(default_factory=list)
    weights: dict[str, str] = field(default_factory=dict)


def keep(wishes: list[Wish], check_mode: bool, root: str = "/") -> Outcome:
    """Make the disks be as wished. Raises IoError, and SettingsError when the kernel refuses."""
    kernel = reader.read_kernel(root)
    disks = {wish.given: reader.resolve(wish.given, root) for wish in wishes}
    plan = make_plan(wishes, disks, kernel)
    taken = [disk for several in disks.values() for disk in several]
    extra = {"devices": as_plain(wishes), DISKS: known_disks(taken)}
    try:
        if plan.at_boot:
            boot_unit.refuse_foreign(UNIT, root)
        old = _followed(check_mode, root)
        undo: list[tuple[Target, str]] = []
        try:
            neutral = _neutralise(plan, old, undo, check_mode, root)
            kept = Keeper(OWNER, check_mode, root).keep(plan.targets, {RULES: plan.rules}, extra)
        except (SettingsError, OSError):
            for target, value in undo:
                write_live(target, value, root)
            raise
        change = boot_unit.install if plan.at_boot else boot_unit.remove
        actions = change(UNIT, check_mode, root)
    except (boot_unit.ForeignUnitError, OSError) as error:
        raise SettingsError(str(error)) from error
    return Outcome(
        actions=[*neutral, *kept.actions, *actions],
        diff=kept.diff,
        warnings=[*plan.notes, *kept.warnings],
        settings=kept.settings,
        weights=weights(reader.all_disks(root), reader.read_kernel(root)),
    )


def absent(check_mode: bool, root: str = "/") -> Outcome:
    """Put back what the disks were before. Raises SettingsError."""
    try:
        _followed(check_mode, root)
        # Before the record, without which nobody would look for the unit.
        actions = boot_unit.remove(UNIT, check_mode, root)
        try:
            kept = Keeper(OWNER, check_mode, root).absent()
        except SettingsError:
            if actions:
                boot_unit.install(UNIT, check_mode, root)
            raise
    except (boot_unit.ForeignUnitError, OSError) as error:
        raise SettingsError(str(error)) from error
    return Outcome(
        actions=[*actions, *kept.actions],
        diff=kept.diff,
        warnings=kept.warnings,
        settings=kept.settings,
        weights=weights(reader.all_disks(root), reader.read_kernel(root)),
    )


def apply_kept(root: str = "/") -> Outcome | None:
    """Set the live values once more, at boot. None: nothing is kept. Raises IoError, SettingsError.

    Only those: on a kernel that lacks something, or without a disk, all stays wanted for the next
    boot. What one disk refuses keeps no other from its own.
    """
    record = records.load(OWNER, root)
    if record is None:
        return None
    outcome = Outcome()
    devices: dict[str, Any] = record.extra.get("devices", {})
    found: list[tuple[Wish, Disk]] = []
    for wish in sorted(parse_devices(devices), key=lambda one: one.given == ALL):
        try:
            named = {disk.name for _wish, disk in found}
            disks = reader.resolve(wish.given, root)
            found += [(wish, disk) for disk in disks if disk.name not in named]
        except IoError as error:
            outcome.warnings.append(f"{wish.given}: {error}")
    followed, lost = follow(record, reader.all_disks(root))
    if followed != record and not lost:
        records.save(followed, root)
    for wish, disk in found:
        _apply(wish, disk, outcome, root)
    return outcome


def _apply(wish: Wish, disk: Disk, outcome: Outcome, root: str) -> None:
    try:
        plan = make_plan([wish], {wish.given: [disk]}, reader.read_kernel(root))
    except IoError as error:
        outcome.warnings.append(str(error))
        return
    outcome.warnings += plan.notes
    for target in plan.targets:
        if target.is_live and not same_value(target, live_value(target, root), target.wanted):
            try:
                write_live(target, target.wanted, root)
            except OSError as error:
                outcome.warnings.append(f"{target.name}: {error.strerror}")
                continue
            outcome.actions.append(f"set {target.name} to {target.wanted}")
    outcome.settings += [read_back(target, root) for target in plan.targets]


def _followed(check_mode: bool, root: str) -> records.Record | None:
    """The record with every disk under its present name. Raises OSError."""
    record = records.load(OWNER, root)
    if record is None:
        return None
    followed, _lost = follow(record, reader.all_disks(root))
    if followed != record and not check_mode:
        records.save(followed, root)
    return followed


def _neutralise(
    plan: Plan,
    old: records.Record | None,
    undo: list[tuple[Target, str]],
    check_mode: bool,
    root: str,
) -> list[str]:
    """Take words of ``qos`` back that are wanted no more; fills ``undo`` with the way back.

    The kernel keeps each word until it is told to choose all of them itself again.
    """
    actions = []
    for target, words in dropped_words(plan.targets, old.formers if old else ()):
        seen = live_value(target, root)
        still = [word for word in words if word in (seen or "").split()]
        if seen is None or not still:
            continue
        actions.append(f"take {' '.join(still)} of {target.name} back")
        if not check_mode:
            undo.append((target, seen))
            write_live(target, f"{target.wanted.split()[0]} ctrl=auto", root)
            write_live(target, target.wanted, root)
    return actions
