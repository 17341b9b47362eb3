# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Every setting that is kept on a host, read back now. Changes nothing and fails for nothing."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import Any

from . import engine_keys, record, sysctl_files
from .model import (
    DIFFERS,
    EFFECTIVE,
    PENDING,
    SYSCTL,
    UNSUPPORTED,
    Setting,
    SettingsError,
)
from .readback import read_back

SLICES = "slices"
DRIVER = "driver"
_UNITS = "/etc/systemd/system"


@dataclass(frozen=True)
class Found:
    """One setting and who keeps it: a role, by its short name."""

    owner: str
    setting: Setting

    @property
    def said(self) -> str:
        """It as one sentence, for a setting that is not effective."""
        one = self.setting
        seen = "unknown" if one.effective is None else one.effective
        return f"{one.name} (role {self.owner}) is {seen}, wanted {one.wanted}; {one.reason}"

    def as_dict(self) -> dict[str, Any]:
        """What ``host_settings_info`` returns in ``settings``."""
        return {"owner": self.owner, **self.setting.as_dict()}


def owners(root: str = "/") -> list[str]:
    """Who keeps a setting on this host, sorted: records, and slices by their unit files."""
    return sorted({*record.owners(root), *([SLICES] if _our_slices(root) else [])})


def survey(root: str = "/") -> list[Found]:
    """Everything that is kept, as the machine has it now."""
    found: list[Found] = []
    for owner in record.owners(root):
        try:
            kept = record.load(owner, root)
        except SettingsError as error:
            fault = Setting(f"record of {owner}", "readable", None, DIFFERS, str(error))
            found.append(Found(owner, fault))
            continue
        if kept is not None:
            found += [Found(owner, one) for one in _read(kept, root)]
            found += [Found(owner, one) for one in engine_keys.read(kept.extra, root)]
            found += [Found(owner, _lost(path)) for path in kept.files if not _there(path, root)]
    if _our_slices(root):
        found += [Found(SLICES, setting) for setting in _slices(root)]
    return found


def _read(kept: record.Record, root: str) -> list[Setting]:
    """What one owner keeps. A value that the next boot will not have is not as wanted."""
    if kept.owner == DRIVER:
        return _driver(kept, root)
    keys = {one.target.path: one.target.wanted for one in kept.formers if one.target.kind == SYSCTL}
    lost: dict[str, str] = {}
    for path in kept.files if keys else ():
        for said in sysctl_files.outvoted(keys, path, root):
            lost[f"/proc/sys/{said.key}"] = (
                f"{said.path} is read after {path} and sets it to {said.value} at the next boot; "
                "remove that line"
            )
    settings = [_judged(one, root) for one in kept.formers]
    returning = [_returning(one, root) for one in kept.returning]
    return [
        replace(one, verdict=DIFFERS, reason=lost[one.source])
        if one.verdict == EFFECTIVE and one.source in lost
        else one
        for one in (*settings, *returning)
    ]


def _judged(one: record.Former, root: str) -> Setting:
    """What could be written when it was kept must still be there."""
    setting = read_back(one.target, root)
    if setting.verdict == UNSUPPORTED and one.value is not None and one.left != record.NO_FILE:
        why = f"{setting.source} is gone, and the setting with it; run the role again"
        return replace(setting, verdict=DIFFERS, reason=why)
    return setting


def _returning(one: record.Former, root: str) -> Setting:
    back = one.value if one.value is not None else one.target.neutral
    setting = read_back(replace(one.target, wanted=back, note=""), root)
    if setting.verdict != DIFFERS:
        return setting
    why = f"nobody wants {one.target.wanted} any more, and the kernel has not taken {back} yet"
    return replace(setting, verdict=PENDING, reason=why)


def _there(path: str, root: str) -> bool:
    return os.path.exists(os.path.join(root, path.lstrip("/")))


def _lost(path: str) -> Setting:
    why = f"{path} was removed by somebody, so the next boot begins without it; run the role again"
    return Setting(path, "present", "absent", DIFFERS, why, path)


def _our_slices(root: str) -> list[str]:
    """The names of the unit files that this collection wrote."""
    if not _has_slices(root):
        return []
    # Needed on a host with slices alone, and Ansible compiles what is imported at each run.
    from ..slices import proof

    try:
        return list(proof.units_of_ours(root))
    except OSError:
        return []


def _driver(kept: record.Record, root: str) -> list[Setting]:
    """Holds, daemons and releases are no values of a file: the driver's room reads them."""
    from ..driver_set import proof

    try:
        return proof.prove(kept, root)
    except (OSError, TypeError) as error:
        why = f"it cannot be read: {error}"
        return [Setting(DRIVER, "readable", None, DIFFERS, why, record.path_of(DRIVER))]


def _has_slices(root: str) -> bool:
    try:
        names = os.listdir(os.path.join(root, _UNITS.lstrip("/")))
    except OSError:
        return False
    return any(name.endswith(".slice") for name in names)


def _slices(root: str) -> list[Setting]:
    from ..slices import proof

    try:
        return proof.prove(root)
    except OSError as error:
        why = f"{error.filename}: {error.strerror}"
        return [Setting(SLICES, "readable", None, DIFFERS, why, _UNITS)]
