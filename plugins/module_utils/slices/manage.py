# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Bring a slice to the wanted state, or leave the host as it was."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from .. import units, vouched
from ..atomic import read_text
from ..burst import guard
from ..process import run
from . import reader, refusals, reload
from .effective import Machine, Reading, compare, inert, inert_in_part
from .model import Outcome, SliceError, Wish
from .properties import PARSERS, Percent, advice
from .unit_text import assignments, render
from .verdicts import judge

RELOAD = "run systemctl daemon-reload"

_ASKED = ("ActiveState", "ControlGroup", "FragmentPath", "NeedDaemonReload")


def ensure_present(wish: Wish, check_mode: bool, verified: bool = False) -> Outcome:
    """Write, load, start and read back one slice. Raises SliceError.

    ``verified``: systemd has read this very unit before, and is not asked again.
    """
    outcome = Outcome(warnings=advice(wish.settings))
    before = read_text(wish.unit_path)
    after = render(wish.description, wish.settings.values())
    booted = reader.has_systemd()
    state = units.show(wish.name, _ASKED) if booted else {}
    outcome.control_group = state.get("ControlGroup") or None
    refusals.refuse_foreign(wish, before, state)
    outcome.outvoted = refusals.judge_drop_ins(wish)
    outcome.warnings += [
        f"{said}, which wins over {wish.unit_path}" for said in outcome.outvoted.values()
    ]
    rewrite, active = before != after, state.get("ActiveState") == "active"
    dropped = _dropped(wish, before) if active else []
    if rewrite:
        if not verified:
            refusals.refuse_misread(wish.name, after)
        outcome.actions.append(f"write {wish.unit_path}")
        outcome.diff.append(_file_diff(wish.unit_path, before or "", after))
    if not booted and not check_mode:
        raise SliceError(
            "systemd is not running on this host (no /run/systemd/system): wanted a booted "
            "host, since a slice is a unit of systemd"
        )
    if not booted:
        outcome.actions.append(f"start {wish.name}")
        return outcome
    refusals.refuse_old_cgroup()
    machine = _machine(wish)
    for idle_weight in (inert(wish.settings, machine), inert_in_part(wish.settings, machine)):
        outcome.warnings += [idle_weight] if idle_weight else []
    if outcome.control_group:
        outcome.warnings += refusals.refuse_squeeze(wish, outcome.control_group, machine)
    reload_foreseen = _will_reload(wish, state, rewrite)
    if reload_foreseen:
        outcome.warnings += refusals.refuse_reload(wish)
    if check_mode:
        _foresee(wish, outcome, machine, dropped, active, reload_foreseen)
        return outcome
    snapshot = _Snapshot(wish, before, active)
    try:
        if rewrite:
            vouched.write(wish.unit_path, after, mode=0o644)
            state = units.show(wish.name, _ASKED)
        if _is_stale(wish, state):
            if not reload_foreseen:
                outcome.warnings += refusals.refuse_reload(wish)
            units.daemon_reload()
            outcome.actions.append(RELOAD)
        if not active:
            units.act("start", wish.name)
            outcome.actions.append(f"start {wish.name}")
        for key in dropped:
            _set_property(wish, key, ("",))
        _note_resets(wish, outcome, dropped)
        _settle(wish, outcome, machine, snapshot)
    except (SliceError, units.UnitError, OSError) as error:
        raise SliceError(f"{error}\n{snapshot.restore()}") from error
    return outcome


def ensure_absent(wish: Wish, check_mode: bool) -> Outcome:
    """Stop an empty slice and delete its file. Raises SliceError while somebody is inside."""
    outcome = Outcome()
    before = read_text(wish.unit_path)
    booted = reader.has_systemd()
    state = units.show(wish.name, _ASKED) if booted else {}
    if before is None:
        # Without a file of ours there is nothing to undo: a slice of this name may still
        # live as the implicit parent of somebody's units.
        return outcome
    refusals.refuse_foreign(wish, before, state)
    active = state.get("ActiveState") == "active"
    if active:
        refusals.refuse_occupied(wish.name, state.get("ControlGroup", ""))
        outcome.actions.append(f"stop {wish.name}")
    outcome.actions.append(f"delete {wish.unit_path}")
    outcome.diff.append(_file_diff(wish.unit_path, before, ""))
    ours = {f"50-{key}.conf" for key, _value in assignments(before)}
    leftovers = [p for p in reader.control_drop_ins(wish.name) if os.path.basename(p) in ours]
    outcome.actions.extend(f"delete {path}" for path in leftovers)
    if check_mode:
        return outcome
    try:
        # Before the slice is stopped, since it must not go if it cannot come back.
        vouched.vouch_digests(dict.fromkeys([wish.unit_path, *leftovers]))
        if active:
            units.act("stop", wish.name)
        for path in [wish.unit_path, *leftovers]:
            vouched.remove(path)
        if booted and units.show(wish.name, ("FragmentPath",)).get("FragmentPath"):
            _forget(wish, outcome)
    except (units.UnitError, OSError) as error:
        raise SliceError(str(error)) from error
    return outcome


# -- applying ---------------------------------------------------------------------------


def _machine(wish: Wish) -> Machine:
    try:
        return reader.machine(wish.settings)
    except OSError as error:
        raise SliceError(
            f"{error.filename}: {error.strerror}. Wanted a block device or a file on one"
        ) from error


def _will_reload(wish: Wish, state: Mapping[str, str], rewrite: bool) -> bool:
    """Will systemd have to be told of the file? A unit not in use is read fresh at its start."""
    if state.get("ActiveState") == "active":
        return rewrite or _is_stale(wish, state)
    return state.get("NeedDaemonReload") == "yes"


def _is_stale(wish: Wish, state: Mapping[str, str]) -> bool:
    """Does systemd hold something else than the file? A unit not loaded yet is read fresh."""
    loaded = state.get("FragmentPath") == wish.unit_path
    return not loaded or state.get("NeedDaemonReload") == "yes"


def _dropped(wish: Wish, before: str | None) -> list[str]:
    """The properties that the former unit file of ours set and the wish does not."""
    former = dict(assignments(before or ""))
    return [key for key in PARSERS if key in former and key not in wish.settings]


def _note_resets(wish: Wish, outcome: Outcome, dropped: list[str]) -> None:
    outcome.actions.extend(f"reset {key} on {wish.name}" for key in dropped)


def _foresee(
    wish: Wish,
    outcome: Outcome,
    machine: Machine,
    dropped: list[str],
    active: bool,
    will_reload: bool,
) -> None:
    """What a real run would do after the file is written, told without doing it."""
    if will_reload:
        outcome.actions.append(RELOAD)
    if not active:
        outcome.actions.append(f"start {wish.name}")
        return
    _note_resets(wish, outcome, dropped)
    # A reload alone changes no cgroup of an active slice, so what differs now differs then.
    _note_repairs(wish, outcome, _drifted(wish, outcome, machine))


def _forget(wish: Wish, outcome: Outcome) -> None:
    """Let systemd forget a deleted unit; it can wait while that would cost a GPU."""
    endangered = [] if wish.daemon_reload_anyway else reload.endangered()
    if endangered:
        outcome.warnings.append(
            f"{wish.name} is gone, and systemd forgets it at its next daemon-reload: none was "
            "run, since it may take the GPU from {}".format(", ".join(endangered))
        )
    else:
        units.daemon_reload()
        outcome.actions.append(RELOAD)


def _drifted(wish: Wish, outcome: Outcome, machine: Machine) -> list[Reading]:
    """Read the cgroup back; fills ``control_group`` and ``effective``, returns what differs."""
    # The cgroup's path nests by the dashes of the name, so systemd is asked for it.
    control_group = units.show(wish.name, ("ControlGroup",)).get("ControlGroup", "")
    if not control_group:
        raise SliceError(f"{wish.name} is active but has no cgroup")
    readings = compare(wish.settings, reader.slice_files(control_group), machine)
    outcome.control_group = control_group
    outcome.effective = {reading.key: reading.seen for reading in readings}
    above = reader.protection_above(control_group)
    outcome.verdicts = judge(
        wish.name, control_group, wish.settings, readings, machine, outcome.outvoted, above
    )
    return [one for one in readings if not one.ok and one.key not in outcome.outvoted]


def _note_repairs(wish: Wish, outcome: Outcome, drifted: list[Reading]) -> None:
    for reading in drifted:
        outcome.actions.append(
            f"set {reading.key}={reading.wanted} on {wish.name} (it was {reading.seen})"
        )
    if drifted:
        outcome.diff.append(
            {
                "before_header": f"{wish.name} (effective)",
                "after_header": f"{wish.name} (effective)",
                "before": "".join(f"{r.key}={r.seen}\n" for r in drifted),
                "after": "".join(f"{r.key}={r.wanted}\n" for r in drifted),
            }
        )


def _settle(wish: Wish, outcome: Outcome, machine: Machine, snapshot: _Snapshot) -> None:
    """Compare, repair what drifted, compare again. Raises SliceError when it stays wrong."""
    drifted = _drifted(wish, outcome, machine)
    if not drifted:
        return
    _note_repairs(wish, outcome, drifted)
    if any(reading.key.startswith("CPUQuota") for reading in drifted):
        snapshot.burst = _make_way(wish, outcome)
    for reading in drifted:
        _set_property(wish, reading.key, wish.settings[reading.key].lines)
    wrong = _drifted(wish, outcome, machine)
    if wrong:
        raise SliceError(
            "{}: the kernel does not hold what was asked for:\n  {}".format(
                wish.name,
                "\n  ".join(
                    f"{reading.key}: seen {reading.seen}, wanted {reading.wanted}"
                    + (f" ({reading.hint})" if reading.hint else "")
                    for reading in wrong
                ),
            )
        )


def _make_way(wish: Wish, outcome: Outcome) -> int | None:
    """Lower a burst that is above the quota to come, since the kernel would refuse the quota.

    Returns the burst that was there, None when it was not in the way.
    """
    quota = wish.settings.get("CPUQuota")
    if quota is None or not isinstance(quota.value, Percent) or not outcome.control_group:
        return None
    period = wish.settings.get("CPUQuotaPeriodSec")
    period_us = period.value if period and isinstance(period.value, int) else 100000
    quota_us = int(quota.value.value * period_us / 100)
    former = guard.clear_if_above(outcome.control_group, quota_us)
    if former is not None:
        outcome.actions.append(
            f"lower cpu.max.burst of {wish.name} to {quota_us} us (it was {former}), so that "
            "the kernel takes the lower quota"
        )
    return former


def _set_property(wish: Wish, key: str, lines: Sequence[str]) -> None:
    """Apply a value to the running slice; an empty line resets it.

    systemd 257 changes no cgroup of an active slice at daemon-reload (seen), so this is
    also how a new unit file takes effect. What a former ``set-property`` left is
    overwritten in the layer, persistent or not, that it is in.
    """
    drop_in = f"50-{key}.conf"
    persistent = [
        path
        for path in reader.control_drop_ins(wish.name)
        if path.startswith("/etc/") and os.path.basename(path) == drop_in
    ]
    layer = [] if persistent else ["--runtime"]
    pairs = [f"{key}={line}" for line in lines]
    done = run(["systemctl", "set-property", *layer, wish.name, *pairs])
    if not done.ok:
        raise SliceError(
            "systemctl set-property {} {}: {}".format(wish.name, " ".join(pairs), done.said)
        )
    for path in persistent:
        # What systemd writes there is its own business, so only now it is known.
        vouched.vouch(path, read_text(path))


class _Snapshot:
    """What this run may change of a host, as it was; ``restore`` puts it back."""

    def __init__(self, wish: Wish, unit_text: str | None, active: bool) -> None:
        self._wish = wish
        self._unit_text = unit_text
        self._active = active
        self._control = reader.control_drop_ins(wish.name)
        self.burst: int | None = None

    def restore(self) -> str:
        """Undo, and say how it went: an error of the way back must not hide the first one."""
        try:
            touched = self._put_back()
            endangered: list[str] = []
            if touched:
                endangered = [] if self._wish.daemon_reload_anyway else reload.endangered()
            if touched and not endangered:
                units.daemon_reload()
        except (SliceError, units.UnitError, OSError) as error:
            return f"Going back failed as well: {error}"
        if endangered:
            return (
                "The host is as it was before, except that systemd reads the files again at its "
                "next daemon-reload only: none was run, since it may take the GPU from {}".format(
                    ", ".join(endangered)
                )
            )
        return "The host is as it was before."

    def _former_lines(self, key: str) -> Sequence[str]:
        texts = [self._unit_text or "", *self._control.values()]
        lines = [value for text in texts for k, value in assignments(text) if k == key]
        return lines or [""]

    def _put_back(self) -> bool:
        """True when files were touched, so that systemd should read them again."""
        wish, name = self._wish, self._wish.name
        control_group = units.show(name, ("ControlGroup",)).get("ControlGroup", "")
        if not self._active and not reader.processes(control_group or "/nowhere"):
            units.act("stop", name)
        if self._active:
            # What was reset as well: a reload alone gives an active slice no limit back.
            for key in [*wish.settings, *_dropped(wish, self._unit_text)]:
                _set_property(wish, key, self._former_lines(key))
            if control_group:
                # Only below the former quota does the kernel take the former burst.
                guard.put_back(control_group, self.burst)
        touched = False
        for path in reader.control_drop_ins(name):
            if path not in self._control:
                touched = vouched.remove(path) or touched
        for path, text in self._control.items():
            if read_text(path) != text:
                vouched.write(path, text)
                touched = True
        if read_text(wish.unit_path) != self._unit_text:
            touched = True
            if self._unit_text is None:
                vouched.remove(wish.unit_path)
            else:
                vouched.write(wish.unit_path, self._unit_text)
        return touched


def _file_diff(path: str, before: str, after: str) -> dict[str, str]:
    return {"before_header": path, "after_header": path, "before": before, "after": after}
