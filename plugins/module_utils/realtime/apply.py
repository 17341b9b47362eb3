# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the unit does at boot: the live settings of the record, set and read back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ..settings import record as records
from ..settings.live import write_live
from ..settings.model import Setting, Target
from ..settings.readback import live_value, read_back, same
from .model import OWNER

# A pair of runtime and period may have to be written in the other order.
_PASSES = 3


@dataclass
class Applied:
    """What was set, in words, what the kernel refused, and how everything is now."""

    actions: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    settings: list[Setting] = field(default_factory=list)


def apply(root: str = "/") -> Applied:
    """Set what the record names and the kernel does not hold. Raises SettingsError."""
    done = Applied()
    record = records.load(OWNER, root)
    if record is None:
        return done
    kept = [former.target for former in record.formers]
    for _pass in range(_PASSES):
        done.faults = []
        for target in kept:
            _set(target, done, root)
        if not done.faults:
            break
    done.settings = fold([read_back(target, root) for target in kept])
    return done


def fold(settings: Sequence[Setting]) -> list[Setting]:
    """What all CPUs say alike, once."""
    seen: dict[tuple[object, ...], Setting] = {}
    for one in settings:
        seen.setdefault((one.name, one.wanted, one.effective, one.verdict, one.reason), one)
    return list(seen.values())


def _set(target: Target, done: Applied, root: str) -> None:
    try:
        seen = live_value(target, root) if target.is_live else None
        if seen is None or same(target, seen):
            return
        write_live(target, target.wanted, root)
    except OSError as error:
        done.faults.append(
            f"{target.name}: the kernel refused {target.wanted} for {target.path}: {error.strerror}"
        )
        return
    done.actions.append(f"set {target.name} to {target.wanted} (was {seen})")
