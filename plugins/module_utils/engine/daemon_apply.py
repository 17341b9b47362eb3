# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Carry out a plan for dockerd's configuration, and undo it when the daemon does not follow.

Written, told, asked: the file, a reload or restart, and the daemon's own word that it took
the keys. Nobody's container ends for it unless the user said so.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Callable

from ..atomic import read_text, remove, write_atomic
from ..units import UnitError
from .daemon_json import Record, document, dump_record
from .daemon_plan import RECORD_PATH, Engine, Plan, endangered
from .daemon_rules import classify, not_taken
from .json_text import assign

_POLL_S = 0.2


class DaemonFailedError(Exception):
    """The daemon did not take the change; the former state was put back or the message says not."""


class _StartedMeanwhileError(DaemonFailedError):
    """A container appeared between the plan and the restart, which was not done."""


@dataclass(frozen=True)
class Outcome:
    """``applied`` as :attr:`Plan.how`; ``pending`` as in the plan."""

    applied: str
    pending: str | None


def carry_out(
    plan: Plan,
    engine: Engine,
    timeout_s: float = 120.0,
    record_path: str = RECORD_PATH,
    write: Callable[[str, str], None] = write_atomic,
) -> Outcome:
    """Write the record, the file, tell the daemon, and see that it took it.

    The record goes first and is made smaller last (see :mod:`.daemon_json`). Raises
    DaemonFailedError after putting back what was there.
    """
    if plan.wish.present and not plan.wish.config:
        return Outcome("none", None)
    files = _Files(plan.wish.path, record_path, write)
    claims = plan.record if plan.wish.present else plan.record_before
    telling = plan.change.keys if plan.how in ("reload", "restart") or plan.pending else ()
    if plan.changed or plan.record != plan.record_before:
        files.put_record(replace(claims, pending=telling))
    try:
        if plan.how == "reload" and plan.change.neutral:
            _forget_by_reload(plan, engine, files, plan.change.neutral, timeout_s)
        if plan.before != plan.after:
            files.put_config(plan.after)
        _tell(plan, engine, files, timeout_s)
    except (DaemonFailedError, UnitError) as error:
        log = engine.log()
        restarted = plan.how == "restart" and not isinstance(error, _StartedMeanwhileError)
        back = _put_back(plan, engine, files, timeout_s, restarted)
        raise DaemonFailedError(
            f"Docker did not take the new {plan.wish.path}: {error}. {back}. "
            f"The daemon's last words:\n{log}"
        ) from error
    files.put_record(replace(plan.record, pending=plan.change.cold if plan.pending else ()))
    return Outcome(plan.how, plan.pending)


@dataclass(frozen=True)
class _Files:
    config: str
    record: str
    write: Callable[[str, str], None]

    def put_config(self, text: str | None) -> None:
        if text is None:
            remove(self.config)
        else:
            self.write(self.config, text)

    def put_record(self, record: Record) -> None:
        if record == Record():
            remove(self.record)
        elif read_text(self.record) != dump_record(record):
            self.write(self.record, dump_record(record))


def _tell(plan: Plan, engine: Engine, files: _Files, timeout_s: float) -> None:
    if plan.how == "reload":
        engine.reload()
        _await_taken(plan, engine, plan.change.hot, document(plan.after), timeout_s)
    elif plan.how == "restart":
        _restart(plan, engine, files, timeout_s)


def _restart(plan: Plan, engine: Engine, files: _Files, timeout_s: float) -> None:
    """Restart with live-restore in force on both sides of it, where the plan says so."""
    aim = document(plan.after)
    if plan.live_restore_first:
        engine.reload()
        _await_taken(plan, engine, ("live-restore",), aim, timeout_s)
    if plan.live_restore_last:
        aim["live-restore"] = True
        files.put_config(_with(plan.after, {"live-restore": True}))
    victims = endangered(engine.state(), aim)
    if victims and plan.wish.restart != "always":
        raise _StartedMeanwhileError(
            f"a container started meanwhile ({victims[0]}) and would be ended"
        )
    engine.restart()
    _await_taken(plan, engine, plan.change.keys, aim, timeout_s)
    if plan.live_restore_last:
        _forget_by_reload(plan, engine, files, {"live-restore": False}, timeout_s)
        files.put_config(plan.after)


def _await_taken(
    plan: Plan, engine: Engine, keys: tuple[str, ...], new: Mapping[str, Any], timeout_s: float
) -> None:
    """Ask until the daemon shows what the file says. A reload is not done when it returns."""
    deadline = time.monotonic() + timeout_s
    while True:
        state = engine.state()
        if state.status == "running":
            wrong = not_taken(keys, new, state.info, plan.gone_runtimes)
        else:
            wrong = [f"the daemon is {state.status} ({state.reason})"]
        if not wrong:
            return
        if time.monotonic() > deadline:
            raise DaemonFailedError("; ".join(wrong))
        time.sleep(_POLL_S)


def _forget_by_reload(
    plan: Plan, engine: Engine, files: _Files, neutral: Mapping[str, Any], timeout_s: float
) -> None:
    """Make the daemon drop keys that vanish: it keeps the old value of an absent one."""
    files.put_config(_with(plan.after, neutral))
    engine.reload()
    _await_taken(plan, engine, tuple(neutral), document(plan.after), timeout_s)


def _with(text: str | None, values: Mapping[str, Any]) -> str:
    """The text with further top-level keys, for the daemon's eyes between two states."""
    result = text if text is not None and text.strip() else "{}\n"
    for key, value in values.items():
        result = assign(result, (key,), value)
    return result


def _put_back(plan: Plan, engine: Engine, files: _Files, timeout_s: float, restarted: bool) -> str:
    """Restore the former file and daemon; how that went, for the error message.

    A daemon that still runs is told by reload. One that took cold keys at a restart keeps
    them until the next, which is done now unless it would end somebody's container.
    """
    former = document(plan.before)
    left = ""
    try:
        state = engine.state()
        if state.status != "running":
            files.put_config(plan.before)
            engine.restart()
        else:
            back = classify(document(plan.after), former, state.version or "")
            files.put_config(_with(plan.before, back.neutral))
            engine.reload()
            files.put_config(plan.before)
            if restarted and endangered(state, former):
                left = "; the daemon keeps {} until its next restart".format(
                    ", ".join(plan.change.cold)
                )
            elif restarted:
                engine.restart()
        files.put_record(plan.record_before)
        _await_taken(plan, engine, (), former, timeout_s)
    except (DaemonFailedError, UnitError, OSError) as error:
        files.put_config(plan.before)
        return f"The former file was put back, but Docker is not right: {error}"
    return "The former file and daemon were put back" + left
