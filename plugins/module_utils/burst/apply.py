# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Bring the bursts of slices to what their quota allows; repair a quota that one kept away.

For the module, and for the unit that runs at boot and after each change of a quota.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from .. import file_lock
from ..settings import record as records
from ..settings.model import INERT, NUMBER, PENDING, UNSUPPORTED, Setting, Target
from ..settings.readback import read_back
from ..settings.record import Former, Record
from ..slices.quantities import format_span_us
from . import guard, model, reader

OWNER = "cpu_burst"
_ATTEMPTS = 3
_LOCK = "run/steadygpu-burst.lock"
_WAIT_S = 90


@dataclass
class Applied:
    """What was repaired or set, in words, and how the slices are now."""

    actions: list[str] = field(default_factory=list)
    settings: list[Setting] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)


def wishes_of(record: Record) -> list[model.Wish]:
    """What the record says each slice is to have. Raises BurstError."""
    said = record.extra.get("slices", {})
    pairs = said.items() if isinstance(said, Mapping) else ()
    return [model.parse(str(name), text) for name, text in sorted(pairs)]


@contextlib.contextmanager
def alone(root: str = "/") -> Iterator[None]:
    """One at a time, module or unit: each reads the record, acts on it and writes it.

    Raises BurstError when another one takes too long, and OSError.
    """
    path = os.path.join(root, _LOCK)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    try:
        lock = file_lock.acquire(path, _WAIT_S)
    except file_lock.HeldError as error:
        raise model.BurstError(
            f"process {error.owner} has been at the bursts of this host for {_WAIT_S} seconds "
            f"(/{_LOCK}): run again when it has ended"
        ) from error
    try:
        yield
    finally:
        file_lock.release(lock)


def apply(root: str = "/") -> Applied:
    """Set the bursts that the record names. Raises BurstError, SettingsError and OSError."""
    with alone(root):
        return _apply(root)


def _apply(root: str) -> Applied:
    done = Applied()
    record = records.load(OWNER, root)
    if record is None:
        return done
    wishes = wishes_of(record)
    targets = []
    for wish in wishes:
        seen = reader.read(wish.slice, root)
        for _attempt in range(_ATTEMPTS):
            before = seen
            done.actions += repair(seen, root)
            fault = _set(wish, reader.read(wish.slice, root), done, root)
            seen = reader.read(wish.slice, root)
            if not fault and seen == before:
                break
        if fault:
            done.faults.append(fault)
        targets.append(target(wish, seen))
        done.settings.append(setting(wish, seen, root))
    _remember(record, targets, root)
    return done


def repair(seen: model.Seen, root: str = "/", check_mode: bool = False) -> list[str]:
    """Give a quota that the burst kept away to the kernel, as systemd was told. Raises OSError."""
    if not seen.control_group:
        return []
    actions = []
    if model.blocked(seen) and seen.asked_us is not None:
        now = "no limit" if seen.quota_us is None else format_span_us(seen.quota_us)
        actions.append(
            f"set the quota of {seen.slice} to {format_span_us(seen.asked_us)} in "
            f"{format_span_us(seen.asked_period_us)}, as systemd was told (it was {now}: the "
            "kernel refuses a quota below the burst)"
        )
        if not check_mode:
            guard.clear_if_above(seen.control_group, seen.asked_us, root)
            text = f"{seen.asked_us} {seen.asked_period_us}"
            guard.write_file(seen.control_group, "cpu.max", text, root)
    elif seen.quota_us is None and seen.asked_us is None and seen.burst_us:
        actions.append(
            f"take the burst of {seen.slice} away: it has no quota now, and a burst would keep the "
            "next one away"
        )
        if not check_mode:
            guard.write(seen.control_group, 0, root)
    return actions


def target(wish: model.Wish, seen: model.Seen) -> Target:
    """How the burst of a slice is read back."""
    name = f"{wish.slice} cpu.max.burst"
    reason = model.why_not(wish, seen)
    if reason is not None and reason[0] == UNSUPPORTED:
        return Target(name, UNSUPPORTED, "", wish.text, reason[1])
    if reason is not None or seen.quota_us is None:
        why = reason[1] if reason else "systemd has not given the slice its quota yet"
        return Target(name, INERT, "", wish.text, why)
    wanted = str(wish.wanted_us(seen.quota_us))
    note = (
        "steadygpu-burst.service sets it: systemctl start steadygpu-burst.service, and look at its "
        "journal"
    )
    return Target(name, NUMBER, reader.path_of(seen.control_group), wanted, note, "0")


def setting(wish: model.Wish, seen: model.Seen, root: str = "/") -> Setting:
    """The burst as it is now; pending for a slice that is not active."""
    how = target(wish, seen)
    reason = model.why_not(wish, seen)
    if reason is not None and reason[0] == PENDING:
        return Setting(how.name, wish.text, None, PENDING, reason[1])
    found = read_back(how, root)
    if wish.span_us is not None and seen.quota_us is not None and wish.span_us > seen.quota_us:
        why = f"the quota is only {format_span_us(seen.quota_us)}, and no burst is above its quota"
        return Setting(how.name, str(wish.span_us), found.effective, "differs", why, how.path)
    return found


def _set(wish: model.Wish, seen: model.Seen, done: Applied, root: str) -> str | None:
    if model.why_not(wish, seen) is not None or seen.quota_us is None:
        return None
    wanted = wish.wanted_us(seen.quota_us)
    if seen.burst_us == wanted:
        return None
    try:
        guard.write(seen.control_group, wanted, root)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENODEV):
            # The slice ended meanwhile.
            return None
        return (
            f"{wish.slice}: the kernel refused a burst of {wanted} us at a quota of "
            f"{seen.quota_us} us: {error.strerror}"
        )
    done.actions.append(
        f"set the burst of {wish.slice} to {format_span_us(wanted)} (it was "
        f"{format_span_us(seen.burst_us or 0)})"
    )
    return None


def _remember(record: Record, targets: Sequence[Target], root: str) -> None:
    """A burst that follows its quota is wanted anew with each quota."""
    known = {former.target.name: former for former in record.formers}
    formers = []
    for one in targets:
        former = known.get(one.name)
        formers.append(Former(one, former.value if former else None))
    gone = [former for name, former in known.items() if name not in {one.name for one in targets}]
    records.save(replace(record, formers=(*formers, *gone)), root)
