# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""ACS switched off, now and at every boot; or back on as it was.

The kernel and the firmware switch it on at each boot, so a unit of ours clears it again. A bridge
is known by its address and by what card it is: another one at the same address is left alone.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .. import boot_unit
from ..settings import record as records
from ..settings.model import ACS, Setting, SettingsError, Target
from ..settings.readback import read_back
from ..settings.record import Former, Record
from . import decide, passthrough, registers
from .decide import AcsError
from .scene import Scene, bridge, lockdown, look, virtual

OWNER = "acs"
OFF = 0x0000
_TEXT = f"""\
# Written by steadygpu.host.pcie_acs, which also removes it.
[Unit]
Description=Switch PCI Access Control Services off on chosen bridges
ConditionPathExists={records.path_of(OWNER)}
After=local-fs.target
Before={boot_unit.ENGINES} nvidia-persistenced.service nvidia-fabricmanager.service
Before=libvirtd.service virtqemud.service libvirt-guests.service

[Service]
Type=oneshot
RemainAfterExit=yes
TimeoutStartSec=60
ExecStart={boot_unit.COMMAND} acs apply

[Install]
WantedBy=multi-user.target
"""
UNIT = boot_unit.BootUnit("steadygpu-acs.service", _TEXT)


@dataclass
class Outcome:
    """What was done or, in check mode, would be."""

    actions: list[str] = field(default_factory=list)
    diff: list[dict[str, str]] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    settings: list[Setting] = field(default_factory=list)


def keep_off(
    asked: Sequence[str], check_mode: bool = False, root: str = "/", scene: Scene | None = None
) -> Outcome:
    """Switch ACS off on the bridges that ``asked`` names. Raises AcsError and SettingsError."""
    scene = scene or look(root)
    chosen = decide.choose(asked, scene)
    old = records.load(OWNER, root)
    had = known(old)
    dropped = {one: had[one] for one in had if one not in chosen}
    wanted = dict.fromkeys(chosen, OFF)
    wanted.update(former_values(dropped, scene))
    changes = {one: to for one, to in wanted.items() if scene.bridges[one].control != to}
    decide.refuse(list(changes), scene)
    same = {one: entry for one, entry in had.items() if is_same(one, entry, scene)}
    bridges = {one: {**_entry(one, scene), **_former(same.get(one))} for one in chosen}
    new = Record(
        OWNER,
        tuple(Former(_target(one), None) for one in chosen),
        (UNIT.path,),
        {"bridges": {**dropped, **bridges}},
    )
    outcome = Outcome(warnings=decide.price(scene) if changes else [])
    return _Change(old, new, scene, check_mode, root, outcome).run(changes, {"bridges": bridges})


def put_back(check_mode: bool = False, root: str = "/", scene: Scene | None = None) -> Outcome:
    """Give every bridge its former control register, and remove the unit. Raises AcsError."""
    old = records.load(OWNER, root)
    if old is None and not os.path.lexists(os.path.join(root, UNIT.path.lstrip("/"))):
        return Outcome()
    scene = scene or look(root)
    wanted = former_values(known(old), scene)
    changes = {one: to for one, to in wanted.items() if to != OFF}
    if changes:
        decide.refuse(list(changes), scene.only_work())
    return _Change(old, None, scene, check_mode, root, Outcome()).run(changes, {})


def apply_kept(root: str = "/", virtual_host: str | None = None) -> list[str]:
    """Switch off again what is kept off; for the boot unit. Returns what went wrong, in words."""
    record = records.load(OWNER, root)
    where = virtual(root) if virtual_host is None else virtual_host
    if where:
        return [f"this host runs in {where}, where ACS must stay on"]
    given = [f"vfio-pci has {one}" for one in passthrough.bound(root)]
    given += passthrough.promised(root)
    if given and known(record):
        return [f"ACS stays on, because this host has virtual machines: {'; '.join(given)}"]
    locked = lockdown(root)
    faults = []
    for address, entry in sorted(known(record).items()):
        found = bridge(address, root)
        if found is None or found.identity != entry.get("identity"):
            faults.append(f"{address} is not the bridge that it was ({entry.get('identity')})")
            continue
        if found.below != entry.get("below", ""):
            faults.append(
                f"{address} has other GPUs below it than it had: {found.below or 'none'} instead "
                f"of {entry.get('below') or 'none'}; run the role kernel again"
            )
            continue
        if locked and found.control != OFF:
            faults.append(f"{address}: the kernel is locked down ({locked}) and keeps ACS on")
            continue
        try:
            if found.control != OFF:
                registers.write_control(address, OFF, root)
        except OSError as error:
            faults.append(f"{address}: {error.strerror}")
    return faults


class _Change:
    """One run: the record first, then the unit, then the registers."""

    def __init__(
        self,
        old: Record | None,
        new: Record | None,
        scene: Scene,
        check_mode: bool,
        root: str,
        outcome: Outcome,
    ) -> None:
        self._old = old
        self._new = new
        self._scene = scene
        self._check_mode = check_mode
        self._root = root
        self._outcome = outcome

    def run(self, changes: Mapping[str, int], final: dict[str, Any]) -> Outcome:
        """Do it, or say what would be done."""
        try:
            self._write(changes, final)
        except (OSError, boot_unit.ForeignUnitError) as error:
            said = str(error)
            if isinstance(error, OSError) and error.strerror:
                said = f"{error.filename}: {error.strerror}" if error.filename else error.strerror
            raise AcsError(f"{said}\n{self._undo(changes)}") from error
        self._outcome.diff += _diff(changes, self._scene)
        targets = [former.target for former in self._new.formers] if self._new else []
        self._outcome.settings = [read_back(target, self._root) for target in targets]
        return self._outcome

    def _write(self, changes: Mapping[str, int], final: dict[str, Any]) -> None:
        actions, write = self._outcome.actions, not self._check_mode
        if self._new is not None:
            if not os.path.exists(os.path.join(self._root, boot_unit.COMMAND.lstrip("/"))):
                raise AcsError(
                    f"{boot_unit.COMMAND} is not on this host, and the unit that switches ACS off "
                    "at each boot runs it: apply the role agent first"
                )
            boot_unit.refuse_foreign(UNIT, self._root)
            if write:
                records.save(self._new, self._root)
            actions += boot_unit.install(UNIT, self._check_mode, self._root)
        else:
            actions += boot_unit.remove(UNIT, self._check_mode, self._root)
        for address, value in sorted(changes.items()):
            now = self._scene.bridges[address].control
            what = "switch ACS off" if value == OFF else "give ACS its former state back"
            actions.append(f"{what} on {address} (control {now:04x} becomes {value:04x})")
            if write:
                registers.write_control(address, value, self._root)
        if write and self._new is None:
            records.forget(OWNER, self._root)
        elif write and self._new is not None:
            last = Record(OWNER, self._new.formers, self._new.files, final)
            records.save(last, self._root)
        if not actions and self._new is None and self._old is not None:
            actions.append("forget the bridges that are no longer there")

    def _undo(self, changes: Mapping[str, int]) -> str:
        if self._check_mode:
            return "Nothing was changed."
        faults = []
        for address in changes:
            before = self._scene.bridges[address].control
            try:
                if before is not None and registers.read_control(address, self._root) != before:
                    registers.write_control(address, before, self._root)
            except OSError as error:
                faults.append(f"{address} could not be put back to {before:04x}: {error.strerror}")
        try:
            if self._old is None:
                boot_unit.remove(UNIT, False, self._root)
                records.forget(OWNER, self._root)
            else:
                records.save(self._old, self._root)
                boot_unit.install(UNIT, False, self._root)
        except (OSError, boot_unit.ForeignUnitError) as error:
            faults.append(f"the record or {UNIT.path} could not be put back: {error}")
        return "\n".join(faults) or "The bridges are as they were before."


def _target(address: str) -> Target:
    return Target(f"ACS control of {address}", ACS, address, f"{OFF:04x}")


def _entry(address: str, scene: Scene) -> dict[str, str]:
    one = scene.bridges[address]
    return {
        "identity": one.identity,
        "below": one.below,
        "former": f"{one.control or 0:04x}",
    }


def _former(entry: Mapping[str, str] | None) -> dict[str, str]:
    """What was there before the first change."""
    return {"former": entry["former"]} if entry and "former" in entry else {}


def known(record: Record | None) -> dict[str, dict[str, str]]:
    """The bridges of a record. Raises SettingsError for what we do not write."""
    found = record.extra.get("bridges", {}) if record else {}
    if not isinstance(found, dict) or not all(isinstance(one, dict) for one in found.values()):
        raise SettingsError(f"{records.path_of(OWNER)} has no bridges that can be understood")
    return found


def former_values(entries: Mapping[str, Mapping[str, str]], scene: Scene) -> dict[str, int]:
    """What each bridge is given back that is the same card as then, and as we left it."""
    return {
        address: int(entry.get("former", "0"), 16)
        for address, entry in entries.items()
        if is_same(address, entry, scene) and scene.bridges[address].control == OFF
    }


def is_same(address: str, entry: Mapping[str, str], scene: Scene) -> bool:
    """Is the bridge the card that an entry of the record speaks of?"""
    found = scene.bridges.get(address)
    return found is not None and found.identity == entry.get("identity")


def _diff(changes: Mapping[str, int], scene: Scene) -> list[dict[str, str]]:
    if not changes:
        return []
    pairs = sorted(changes.items())
    before = [f"{one}: {scene.bridges[one].control:04x}\n" for one, _to in pairs]
    after = [f"{one}: {to:04x}\n" for one, to in pairs]
    header = "ACS control registers"
    return [
        {
            "before_header": header,
            "after_header": header,
            "before": "".join(before),
            "after": "".join(after),
        }
    ]
