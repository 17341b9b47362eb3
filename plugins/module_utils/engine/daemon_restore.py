# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Give dockerd's configuration file a former text, and the daemon what that text says.

To put the file back is not enough: on SIGHUP dockerd keeps the old value of every key that the
file no longer has, and a container whose runtime is gone does not start again. So the daemon is
told of neutral values first, as :mod:`.daemon_apply` does, and a runtime that a container carries
stays in the file until none does. No container ends for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Callable

from .. import vouched
from ..atomic import read_exact
from ..process import find_program
from . import daemon_plan, daemon_refusals
from .daemon_apply import DaemonFailedError, carry_out
from .daemon_control import EngineState
from .daemon_json import CONFIG_PATH, NEUTRAL, Record, document
from .daemon_plan import DaemonRefusedError, Engine, Plan, Wish, started_after
from .daemon_rules import SHOWN, classify, flag_conflicts, not_taken
from .json_text import JsonTextError, assign, assign_raw, raw

# Stands for a value of the daemon's of which only matters that it is not the wanted one.
_SOMETHING = "unknown"
# What the API tells of a runtime that the file knows as well (moby, api/types/system/runtime.go).
_RUNTIME_FIELDS = ("path", "runtimeArgs", "runtimeType", "options")

# Runtime name -> the containers, running or not, that carry it.
Carriers = Callable[[EngineState], Mapping[str, Sequence[str]]]


@dataclass(frozen=True)
class Restored:
    """What came of it. ``text`` is what the file holds now, None for no file.

    ``waiting`` tells, one sentence each, what is not back yet and will be by itself or by trying
    again; ``notes`` what else is worth knowing.
    """

    changed: bool
    text: str | None
    waiting: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def restore_config(
    text: str | None,
    engine: Engine,
    carriers: Carriers,
    timeout_s: float = 120.0,
    path: str = CONFIG_PATH,
    stays: Callable[[str], bool] = lambda program: find_program(program) is not None,
    start: bool = False,
    told: str | None = None,
    write: Callable[..., None] = vouched.write,
) -> Restored:
    """Bring the file at ``path`` to ``text`` (None: no file) and the daemon to what it says.

    ``stays`` says whether the program of a runtime will be on the host. A daemon that is stopped is
    started if ``start`` says so, and else finds the file at its next start. Done again it changes
    nothing more, and it finishes what was cut off; ``told`` is the text that the daemon knew when
    that began, None where it is not known. Raises DaemonFailedError with file and daemon as
    before, OSError and what ``carriers`` raises before anything was changed.
    """
    before = read_exact(path)
    state = engine.state()
    if state.status == "unreachable":
        # Were the file put back now, nobody could tell the daemon what to forget, and a later try
        # would find nothing to do.
        return Restored(
            False, before, (f"{path} was left as it is: Docker does not answer ({state.reason})",)
        )
    kept = _carried(before, text, state, carriers)
    wanted = _document(text)
    if wanted is None:
        return _put_broken(text or "", before, path, kept, write)
    after = text
    for name, (definition, _users) in kept.items():
        after = _with_runtime(after, before, name, definition, stays)
    plan, waiting = _plan(before, after, path, state, start, told)
    lost = daemon_plan.left_behind(plan, engine, state)
    try:
        carry_out(plan, engine, timeout_s, record_path=None, write=write)
    except DaemonFailedError:
        if before is not None and _document(before) is None:
            write(path, before)
        raise
    waiting = [*waiting, *(_told_kept(path, name, users) for name, (unused, users) in kept.items())]
    return Restored(plan.changed, after, tuple(waiting), (lost,) if lost else ())


# -- what the daemon is to learn ---------------------------------------------------------


def _plan(
    before: str | None,
    after: str | None,
    path: str,
    state: EngineState,
    start: bool,
    told: str | None,
) -> tuple[Plan, list[str]]:
    """The plan, and what is said of a restart that it must leave to somebody else."""
    old, new = _document(before), document(after)
    # Something that can be read and is not ``after`` stands for a file that nobody can read.
    stand_in = None if after is not None else ""
    if old is None or before == after:
        # The file does not say what the daemon has: a run before this one was cut off between the
        # two, or it is broken.
        taken = started_after(path, state) or state.status != "running"
        known = None if told is None else _document(told)
        old = new if taken and before == after else _held(new, state, known)
    # The whole file is given, so neither wishes nor the record of what is ours matter.
    plan = Plan(
        wish=Wish(config={}, present=False, path=path, start=start),
        before=stand_in if _document(before) is None else before,
        after=after,
        record_before=Record(),
        record=Record(),
        change=classify(old, new, state.version or ""),
        how="none",
        actions=(),
        warnings=(),
    )
    try:
        return daemon_plan.decide(plan, state, new), []
    except DaemonRefusedError as refusal:
        kept = {**new, "live-restore": True}
        if start and state.living and not daemon_refusals.lost_at_start(state, kept, plan.change):
            return replace(plan, how="start", live_restore_last=True), []
        careful = replace(plan, wish=replace(plan.wish, restart="never", start=False))
        waits = _told_cold(plan, state, new, str(refusal))
        return daemon_plan.decide(careful, state, new), [waits]


def _held(
    new: Mapping[str, Any], state: EngineState, told: Mapping[str, Any] | None
) -> dict[str, Any]:
    """What a running daemon may have, in the form of a file.

    ``told`` is what it was told of last, None where nobody knows. What it shows of itself counts
    more; where neither says anything, what can be reloaded is rather told once too often.
    """
    version = state.version or ""
    if told is None:
        hot = classify({}, new, version).hot
        told = {key: value for key, value in new.items() if key not in hot}
    held = dict(told)
    extra = [name for name in _shown_runtimes(state) if name not in _runtimes(new)]
    for key in SHOWN:
        # A key that the unit sets by a flag is not the file's.
        if flag_conflicts([key], state.flags) or not (key in new or key in NEUTRAL):
            continue
        if not_taken([key], new, state.info, extra):
            held[key] = None if key in new else _SOMETHING
        elif key in NEUTRAL:
            held.pop(key, None)
            held.update({key: new[key]} if key in new else {})
    return held


def _told_cold(plan: Plan, state: EngineState, new: Mapping[str, Any], refusal: str) -> str:
    lost = daemon_refusals.lost_at_start(state, new, plan.change)
    if lost:
        return (
            "Docker was not started: {} container(s) live on without it, and its start would lose "
            "{}. Once they may end: systemctl start docker"
        ).format(len(state.living), ", ".join(lost[:10]))
    if not state.running:
        return refusal
    return (
        "{} in {} takes effect at Docker's next restart, which would end {} running container(s): "
        "{}. Once they may end: systemctl restart docker"
    ).format(
        ", ".join(plan.change.cold),
        plan.wish.path,
        len(state.running),
        ", ".join(state.running[:10]),
    )


# -- runtimes that containers carry -------------------------------------------------------


def _carried(
    before: str | None, text: str | None, state: EngineState, carriers: Carriers
) -> dict[str, tuple[Mapping[str, Any], Sequence[str]]]:
    """The runtimes that would go and must not: definition and containers by name."""
    there = {**_shown_runtimes(state), **_runtimes(_document(before) or {})}
    gone = {name: there[name] for name in there if name not in _runtimes(_document(text) or {})}
    if not gone:
        return {}
    users = carriers(state)
    return {name: (gone[name], users[name]) for name in gone if users.get(name)}


def _runtimes(config: Mapping[str, Any]) -> Mapping[str, Any]:
    value = config.get("runtimes")
    return value if isinstance(value, dict) else {}


def _shown_runtimes(state: EngineState) -> dict[str, Any]:
    """The runtimes of a running daemon that only its file can have given it."""
    flags = state.flags.get("--add-runtime", "").split(",")
    by_flag = {word.partition("=")[0] for word in flags}
    return {
        name: {key: value[key] for key in _RUNTIME_FIELDS if value.get(key)}
        for name, value in (state.info.get("Runtimes") or {}).items()
        if name != "runc" and not name.startswith("io.containerd.") and name not in by_flag
    }


def _with_runtime(
    text: str | None,
    before: str | None,
    name: str,
    definition: Mapping[str, Any],
    stays: Callable[[str], bool],
) -> str:
    """The text with one more runtime: as it is now, or one that passes through to runc."""
    result = text if text is not None and text.strip() else "{}\n"
    if not _runtimes(document(result)):
        result = assign(result, ("runtimes",), {})
    program = definition.get("path") if isinstance(definition, dict) else None
    if program is not None and not stays(str(program)):
        return assign(result, ("runtimes", name), {"path": find_program("runc") or "runc"})
    literal = None
    if before is not None and _document(before) is not None:
        literal = raw(before, ("runtimes", name))
    return assign_raw(result, ("runtimes", name), literal, definition)


def _told_kept(path: str, name: str, users: Sequence[str]) -> str:
    listed = ", ".join(users[:10]) + (f" and {len(users) - 10} more" if len(users) > 10 else "")
    return (
        f"runtime {name} stays in {path}: container(s) {listed} carry its name and would not start "
        "without it. Create them anew with another runtime, or remove them, and restore again"
    )


# -- files that are no JSON ---------------------------------------------------------------


def _document(text: str | None) -> dict[str, Any] | None:
    try:
        return document(text)
    except JsonTextError:
        return None


def _put_broken(
    text: str,
    before: str | None,
    path: str,
    kept: Mapping[str, tuple[Mapping[str, Any], Sequence[str]]],
    write: Callable[..., None],
) -> Restored:
    """A text that no daemon can read is put back as it was, unless a runtime must stay in it."""
    if kept:
        names = "; ".join(_told_kept(path, name, users) for name, (unused, users) in kept.items())
        told = f"{path} was left as it is, for what it held before is no JSON object: {names}"
        return Restored(False, before, (told,))
    if before != text:
        write(path, text)
    note = (
        f"{path} is again what it was, which is no JSON object: Docker was not told, keeps what it "
        f"has, and would not start with it. Repair it: dockerd --validate --config-file {path}"
    )
    return Restored(before != text, text, notes=(note,))
