# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Carry out a plan for dockerd's configuration, and undo it when the daemon does not follow.

Written, told, asked: the file, a reload, restart or start, and the daemon's own word that it
took the keys. Nobody's container ends for it unless the user said so, neither on the way
forward nor on the way back.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Callable

from .. import vouched
from ..atomic import read_exact, read_text
from ..process import CommandMissingError
from ..secrets import by_key, redact
from ..units import UnitError
from . import daemon_refusals as refusals
from .daemon_control import EngineState
from .daemon_json import Record, document, dump_record
from .daemon_plan import Engine, Plan, readable
from .daemon_record import RECORD_PATH
from .daemon_rules import classify, not_taken
from .docker_api import EngineError, EngineUnreachableError
from .json_text import assign

_POLL_S = 0.2
_PRIVATE = 0o600


class DaemonFailedError(Exception):
    """The daemon did not take the change; the former state was put back or the message says not."""


# All that a disk, systemd and a daemon can do to us on the way.
_FORESEEN = (
    DaemonFailedError,
    UnitError,
    CommandMissingError,
    EngineError,
    EngineUnreachableError,
    OSError,
)


@dataclass(frozen=True)
class Outcome:
    """``applied`` as :attr:`Plan.how`; ``pending`` as in the plan."""

    applied: str
    pending: str | None


def carry_out(
    plan: Plan,
    engine: Engine,
    timeout_s: float = 120.0,
    record_path: str | None = RECORD_PATH,
    write: Callable[..., None] = vouched.write,
) -> Outcome:
    """Write the record, the file, tell the daemon, and see that it took it.

    The record goes first and is made smaller last (see :mod:`.daemon_json`); with
    ``record_path`` None it is somebody else's business. Raises DaemonFailedError after putting
    back what was there, OSError when only the record of a finished change could not be made
    smaller: the next run does that.
    """
    if plan.wish.leaves_file and plan.how == "none":
        return Outcome("none", None)
    files = _Files(plan.wish.path, None if plan.wish.leaves_file else record_path, write)
    run = _Run(plan, engine, files, timeout_s)
    try:
        run.forward()
    except _FORESEEN as error:
        told = run.undo(error)
        # No chain: the cause quotes what the daemon quoted.
        raise DaemonFailedError(by_key.clean(told, by_key.secrets_of(*_texts(plan)))) from None
    files.put_record(replace(plan.record, pending=plan.change.cold if plan.pending else ()))
    return Outcome(plan.how, plan.pending)


def _texts(plan: Plan) -> list[Any]:
    """All that the daemon may quote: what was there, what was to be, what was replaced."""
    formers = [owned.former for owned in plan.record_before.owned if owned.former is not None]
    return [*(text for text in (plan.before, plan.after) if text), plan.wish.config, *formers]


@dataclass(frozen=True)
class _Files:
    """The two files; ``record`` is None when neither is ours to touch."""

    config: str
    record: str | None
    write: Callable[..., None]  # (path, text), and the mode of a file with secrets

    def put_config(self, text: str | None) -> None:
        former = read_exact(self.config)
        if text is None:
            vouched.remove(self.config)
        elif former is None and by_key.secrets_of(text):
            self.write(self.config, text, _PRIVATE)
        elif former != text:
            self.write(self.config, text)

    def put_record(self, record: Record) -> None:
        if self.record is None:
            return
        if record == Record():
            vouched.remove(self.record)
        elif read_text(self.record) != dump_record(record):
            # It remembers values as they are, secrets too.
            self.write(self.record, dump_record(record), _PRIVATE)


class _Run:
    """One plan on its way forward, which remembers what a way back has to undo."""

    def __init__(self, plan: Plan, engine: Engine, files: _Files, timeout_s: float) -> None:
        self._plan = plan
        self._engine = engine
        self._files = files
        self._timeout_s = timeout_s
        self._told = False
        self._restarted = False
        self._came_up = False  # after our start or restart, so that containers may run in it
        self._living = False  # did containers live on without the daemon that we were to start?

    # -- forward ------------------------------------------------------------------------

    def forward(self) -> None:
        """Raises any of ``_FORESEEN`` wherever it stands then."""
        plan = self._plan
        claims = plan.record if plan.wish.present else plan.record_before
        acts = plan.how in ("reload", "restart", "start")
        telling = plan.change.keys if acts or plan.pending else ()
        if plan.changed or plan.record != plan.record_before:
            self._files.put_record(replace(claims, pending=telling))
        if plan.how == "reload" and plan.change.neutral:
            self._forget(plan.after, plan.change.neutral)
        if plan.before != plan.after or plan.change.neutral:
            self._files.put_config(plan.after)
        if plan.how == "reload":
            self._reload()
            self._await_taken(plan.change.hot, document(plan.after))
        elif plan.how == "restart":
            self._restart()
        elif plan.how == "start":
            self._start()

    def _start(self) -> None:
        """Start it, with live-restore in force meanwhile where the plan says so."""
        plan = self._plan
        aim = readable(plan.after)
        if plan.live_restore_last:
            aim["live-restore"] = True
        state = self._engine.state()
        why_not = refusals.why_not_start(state, aim, plan.change)
        if why_not and plan.wish.restart != "always":
            raise DaemonFailedError(why_not)
        self._living = bool(state.living)
        if plan.live_restore_last:
            self._files.put_config(_with(plan.after, {"live-restore": True}))
        self._launch(self._engine.start)
        self._await_taken(plan.change.keys, aim)
        if plan.live_restore_last:
            self._give_up_live_restore()

    def _give_up_live_restore(self) -> None:
        self._forget(self._plan.after, {"live-restore": False})
        self._files.put_config(self._plan.after)

    def _restart(self) -> None:
        """Restart with live-restore in force on both sides of it, where the plan says so."""
        plan = self._plan
        aim = document(plan.after)
        if plan.live_restore_first:
            self._reload()
            self._await_taken(("live-restore",), aim)
        if plan.live_restore_last:
            aim["live-restore"] = True
            self._files.put_config(_with(plan.after, {"live-restore": True}))
        victims = self._victims(aim)
        if victims:
            raise DaemonFailedError(f"a restart would end {victims}, which the plan did not see")
        self._restarted = True
        self._launch(self._engine.restart)
        self._await_taken(plan.change.keys, aim)
        if plan.live_restore_last:
            self._give_up_live_restore()

    def _victims(self, aim: Mapping[str, Any]) -> str | None:
        """Whom a restart into ``aim`` would end, in words; None when it may be done."""
        if self._plan.wish.restart == "always":
            return None
        state = self._engine.state()
        if state.status == "unreachable":
            return f"containers that cannot be listed ({state.reason})"
        names = refusals.endangered(state, aim, self._plan.change)
        return "the container(s) {}".format(", ".join(names[:10])) if names else None

    # -- back ---------------------------------------------------------------------------

    def undo(self, error: Exception) -> str:
        """Restore the former file and daemon; the whole story for the error message."""
        path = self._plan.wish.path
        if not self._told:
            back = self._restore(lambda: ("Docker was not told of anything", ()))
            return f"{path} could not be changed: {error}. {back}"
        log = redact.phrase(self._engine.log())
        if self._living and not self._came_up:
            # systemd's next attempt would be one with the former file, which may end them.
            with contextlib.suppress(*_FORESEEN):
                self._engine.stop()
        started = "start with" if self._plan.how == "start" else "take the new"
        back = self._restore(self._tell_back)
        return f"Docker did not {started} {path}: {error}. {back}. The daemon's last words:\n{log}"

    def _restore(self, tell: Callable[[], tuple[str, Sequence[str]]]) -> str:
        """Put the files back around ``tell``, which says what the daemon still has of us."""
        plan, files = self._plan, self._files
        kept: Sequence[str]
        try:
            files.put_config(plan.before)
        except OSError as error:
            held = None if plan.before is None else redact.redact(plan.wish.path, plan.before)
            return f"The former file could not be put back: {error}; it held: {held!r}"
        try:
            told, kept = tell()
        except _FORESEEN as error:
            told, kept = f"Docker is not right: {error}", plan.change.keys
            with contextlib.suppress(OSError):
                files.put_config(plan.before)
        pending = tuple(dict.fromkeys((*plan.record_before.pending, *kept)))
        # A record that claims too much does no harm, see daemon_json.
        with contextlib.suppress(OSError):
            files.put_record(replace(plan.record_before, pending=pending))
        done = "The former file was put back" if plan.before != plan.after else "It was not changed"
        return f"{done}; {told}"

    def _tell_back(self) -> tuple[str, Sequence[str]]:
        """How the daemon is now, in words, and the keys that it keeps until a restart.

        A daemon that runs is told by reload. One that is down, of itself or because our
        restart failed, has no container to lose, or live-restore keeps those that live on:
        it is restarted. One that merely does not answer may have, and is left alone.
        """
        plan = self._plan
        state = self._engine.state()
        if plan.how == "start":
            return self._stop_again(state)
        if state.status == "running":
            return self._reload_back(state.version)
        down = state.status == "stopped" or (self._restarted and not self._came_up)
        kept = self._restarted and plan.live_restore_first
        if down or kept or plan.wish.restart == "always":
            self._restart_back(state)
            return "Docker runs with it again", ()
        told = (
            "Docker was not restarted, because it does not answer ({}) and containers that "
            "cannot be listed might end. Until its next restart it may hold {}; once it "
            "answers and its containers may end: systemctl restart docker"
        )
        return told.format(state.reason, ", ".join(plan.change.keys)), plan.change.keys

    def _reload_back(self, version: str | None) -> tuple[str, Sequence[str]]:
        plan = self._plan
        former = document(plan.before)
        back = classify(document(plan.after), former, version or "")
        self._files.put_config(_with(plan.before, back.neutral))
        self._reload()
        self._files.put_config(plan.before)
        if self._restarted:
            victims = self._victims(former)
            if victims:
                kept = ", ".join(plan.change.cold)
                told = f"Docker keeps {kept} until its next restart, which would end {victims}"
                return told, plan.change.cold
            self._launch(self._engine.restart)
        self._await_taken((), former)
        return "Docker runs with it again", ()

    def _restart_back(self, state: EngineState) -> None:
        """Restart into the former file; containers that lived on so far live on.

        Where live-restore came with the change, or the daemon died without it, the former file
        alone would end them.
        """
        former = self._plan.before
        dying = bool(state.living) and not refusals.has_live_restore(readable(former), state)
        kept = self._plan.live_restore_first or dying
        if kept:
            self._files.put_config(_with(former, {"live-restore": True}))
        self._launch(self._engine.restart)
        self._await_taken((), {})
        if kept:
            self._forget(former, {"live-restore": False})
            self._files.put_config(former)

    def _stop_again(self, state: EngineState) -> tuple[str, Sequence[str]]:
        """What was stopped before is stopped again, unless containers came up with it.

        After a start that failed, systemd would else try again and again.
        """
        names = ", ".join(state.running[:10])
        if self._came_up and state.status == "unreachable":
            names = f"that cannot be listed ({state.reason})"
        if names:
            told = f"Docker was not stopped again, because of container(s) {names}"
            return told, self._plan.change.keys
        self._engine.stop()
        return "Docker is stopped, as it was", ()

    # -- the daemon ---------------------------------------------------------------------

    def _reload(self) -> None:
        self._told = True
        self._engine.reload()

    def _launch(self, act: Callable[[], None]) -> None:
        self._told = True
        act()
        self._came_up = True

    def _await_taken(self, keys: Sequence[str], new: Mapping[str, Any]) -> None:
        """Ask until the daemon shows what the file says. A reload is not done when it returns."""
        gone = self._plan.gone_runtimes if "runtimes" in keys else ()
        deadline = time.monotonic() + self._timeout_s
        while True:
            state = self._engine.state()
            if state.status == "running":
                wrong = not_taken(keys, new, state.info, gone)
            else:
                wrong = [f"the daemon is {state.status} ({state.reason})"]
            if not wrong:
                return
            if time.monotonic() > deadline:
                raise DaemonFailedError("; ".join(wrong))
            time.sleep(_POLL_S)

    def _forget(self, text: str | None, neutral: Mapping[str, Any]) -> None:
        """Make the daemon drop keys that ``text`` lacks: it keeps the old value of those."""
        self._files.put_config(_with(text, neutral))
        self._reload()
        self._await_taken(tuple(neutral), document(text))


def _with(text: str | None, values: Mapping[str, Any]) -> str:
    """The text with further top-level keys, for the daemon's eyes between two states."""
    result = text if text is not None and text.strip() else "{}\n"
    for key, value in values.items():
        result = assign(result, (key,), value)
    return result
