# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Decide how dockerd's configuration is to change; nothing here changes anything.

A plan is also all that check mode needs. :mod:`.daemon_apply` carries it out.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Callable, Protocol

from ..atomic import read_text
from ..process import find_program
from .daemon_control import EngineState
from .daemon_json import (
    CONFIG_PATH,
    ForeignOwnerError,
    Merge,
    Record,
    RecordError,
    document,
    load_record,
    put,
    take_back,
)
from .daemon_rules import Change, by_name, classify, flag_conflicts, judge, not_taken
from .json_text import JsonTextError

RECORD_PATH = "/var/lib/steadygpu/owned/docker_daemon.json"


def record_path_of(path: str) -> str:
    """Where the record of a configuration file lies: each file has its own."""
    if path == CONFIG_PATH:
        return RECORD_PATH
    return RECORD_PATH.replace(".json", path.replace("/", "-") + ".json")


_SWARM_CONFLICT = (
    "this host is a Swarm node and live-restore is true. dockerd takes that on reload and then "
    "refuses its next start (--live-restore daemon configuration is incompatible with swarm "
    "mode). Take live-restore out of the configuration of Swarm nodes (engine_config of the role "
    "engine), or let the node leave the Swarm"
)


class DaemonRefusedError(Exception):
    """Nothing was changed, and the message says why and what to do."""


class Engine(Protocol):
    """What is asked of a daemon; :class:`.daemon_control.DockerDaemon` is the real one."""

    def state(self) -> EngineState:
        """The daemon now; never raises for one that does not answer."""

    def reload(self) -> None:
        """Return once the daemon has taken the file, raise UnitError when it did not."""

    def restart(self) -> None:
        """Start it anew, also when it is not running. Raises UnitError."""

    def start(self) -> None:
        """Start it. Raises UnitError."""

    def stop(self) -> None:
        """Stop it, and systemd's attempts to start it again. Raises UnitError."""

    def log(self) -> str:
        """Its last words."""

    def validate(self, text: str, version: str | None) -> str | None:
        """What dockerd has against a file with this text; None for nothing."""


@dataclass(frozen=True)
class Wish:
    """What the user asks. ``restart`` is ``when_safe``, ``never`` or ``always``.

    ``start``: a daemon that is stopped is to run afterwards.
    """

    config: Mapping[str, Any]
    present: bool = True
    takeover: bool = False
    restart: str = "when_safe"
    validate: bool = True
    path: str = CONFIG_PATH
    start: bool = False

    @property
    def leaves_file(self) -> bool:
        """Is nothing asked of the file? Then it may even be broken, it is not ours."""
        return self.present and not self.config


@dataclass(frozen=True)
class Plan:
    """What will be done; ``how``: ``none``, ``reload``, ``restart``, ``start``, ``not_running``.

    ``pending`` says why a needed restart is left to somebody else (None: none is needed).
    ``live_restore_first``: reload, see live-restore take effect, only then restart.
    ``live_restore_last``: restart with live-restore still on, then reload without it.
    """

    wish: Wish
    before: str | None
    after: str | None
    record_before: Record
    record: Record
    change: Change
    how: str
    actions: tuple[str, ...]
    warnings: tuple[str, ...]
    pending: str | None = None
    live_restore_first: bool = False
    live_restore_last: bool = False

    @property
    def changed(self) -> bool:
        """Does the file change, or the daemon learn something?"""
        return self.before != self.after or self.how in ("reload", "restart", "start")

    @property
    def gone_runtimes(self) -> list[str]:
        """Runtimes that the daemon is to forget."""
        before, after = document(self.before), document(self.after)
        return [name for name in _runtimes(before) if name not in _runtimes(after)]


def make_plan(
    wish: Wish,
    engine: Engine,
    record_path: str = RECORD_PATH,
    is_program: Callable[[str], bool] = lambda path: find_program(path) is not None,
) -> Plan:
    """Decide. Raises DaemonRefusedError for a file, a key or a restart that cannot be."""
    before = read_text(wish.path)
    if wish.leaves_file:
        nothing = Change(hot=(), cold=(), neutral={})
        plan = Plan(wish, before, before, Record(), Record(), nothing, "none", (), ())
        return decide(plan, engine.state(), {}) if wish.start else plan
    record, merge = _merge(wish, before, record_path)
    state = engine.state()
    old, new = document(before), document(merge.text)
    touched = classify(old, new, state.version or "")
    ours = "live-restore" in touched.keys or (wish.present and "live-restore" in wish.config)
    if ours and new.get("live-restore") and state.swarm_active:
        raise DaemonRefusedError(f"{wish.path} was left as it is: {_SWARM_CONFLICT}")
    if merge.text != before:
        warnings = _check(wish, merge.text, new, touched, state, engine, is_program)
        change = touched
    else:
        warnings = ()
        change = _untaken(wish, record, new, state)
    plan = Plan(
        wish=wish,
        before=before,
        after=merge.text,
        record_before=record,
        record=replace(merge.record, pending=()),
        change=change,
        how="none",
        actions=merge.actions,
        warnings=warnings,
    )
    return decide(plan, state, new)


def _merge(wish: Wish, before: str | None, record_path: str) -> tuple[Record, Merge]:
    try:
        record = load_record(read_text(record_path))
        if wish.present:
            return record, put(before, record, wish.config, wish.takeover)
        return record, take_back(before, record, wish.config or None)
    except JsonTextError as error:
        raise DaemonRefusedError(
            f"{wish.path} cannot be read: {error}. It was left as it is; repair it "
            f"(dockerd --validate --config-file {wish.path}) or move it away"
        ) from error
    except ForeignOwnerError as error:
        raise DaemonRefusedError(f"{wish.path}: {error}") from error
    except RecordError as error:
        raise DaemonRefusedError(
            f"{record_path}, which remembers what in {wish.path} is ours, is damaged: {error}. "
            "Nothing was changed; move it away to start without a memory"
        ) from error


def _check(
    wish: Wish,
    text: str | None,
    new: Mapping[str, Any],
    touched: Change,
    state: EngineState,
    engine: Engine,
    is_program: Callable[[str], bool],
) -> tuple[str, ...]:
    """The warnings. Raises DaemonRefusedError with everything that is wrong at once."""
    errors = []
    other_file = state.flags.get("--config-file", wish.path)
    if other_file != wish.path:
        errors.append(f"docker.service reads {other_file}, not {wish.path}")
    set_now = [key for key in touched.keys if key in new]
    errors.extend(
        f"{conflict}: with both dockerd would not start; take it out of the unit or out of config"
        for conflict in flag_conflicts(set_now, state.flags)
    )
    log_drivers = (state.info.get("Plugins") or {}).get("Log") or []
    judgement = judge(new, touched.keys, state.version, log_drivers, is_program)
    warnings = judgement.warnings
    if wish.validate:
        errors.extend(judgement.errors)
        said = engine.validate(text, state.version) if text is not None else None
        if said:
            errors.append("dockerd --validate: " + said)
    else:
        warnings = warnings + judgement.errors
    if errors:
        raise DaemonRefusedError("{} was left as it is: {}".format(wish.path, "; ".join(errors)))
    return warnings


def _untaken(wish: Wish, record: Record, new: Mapping[str, Any], state: EngineState) -> Change:
    """What is in the file already and the daemon does not show, or was never told.

    This is how a run that was killed between the file and the daemon, or that was not
    allowed to restart, is finished by a later one.
    """
    keys = [key for key in wish.config if wish.present and not_taken([key], new, state.info)]
    if record.pending and not started_after(wish.path, state):
        keys.extend(key for key in record.pending if key not in keys)
    if state.status != "running":
        keys = []
    return by_name(keys, new, state.version or "")


def started_after(path: str, state: EngineState) -> bool:
    """Was the daemon started since the file was put there? Then it has taken all of it."""
    try:
        return state.started_at is not None and state.started_at > os.stat(path).st_mtime
    except FileNotFoundError:
        return False


def decide(plan: Plan, state: EngineState, new: Mapping[str, Any]) -> Plan:
    """How the daemon gets to know of ``plan.change``, and whether that may be done. Pure.

    ``new`` is the configuration to come. Raises DaemonRefusedError for a restart that is not safe.
    """
    path, change = plan.wish.path, plan.change
    if state.status == "unreachable" and (change.keys or plan.wish.start):
        raise DaemonRefusedError(
            f"{path} was left as it is, because the daemon could not be asked: {state.reason}"
        )
    if state.status == "stopped" and state.has_unit and plan.wish.start:
        return replace(plan, how="start")
    if not change.keys:
        return plan
    if state.status != "running":
        return replace(plan, how="not_running")
    if not change.cold:
        return replace(plan, how="reload")
    told = "{} cannot be reloaded".format(", ".join(change.cold))
    if plan.wish.restart == "never":
        how = "reload" if change.hot else "none"
        return replace(plan, how=how, pending=told + " and restart is never")
    if state.swarm_active and new.get("live-restore"):
        raise DaemonRefusedError(f"{path} was left as it is: {told}, and {_SWARM_CONFLICT}")
    victims = endangered(state, new, change)
    if not victims or plan.wish.restart == "always":
        return replace(plan, how="restart")
    if new.get("live-restore") and not change.unprotected:
        return replace(plan, how="restart", live_restore_first=True)
    if state.info.get("LiveRestoreEnabled") and not change.unprotected:
        return replace(plan, how="restart", live_restore_last=True)
    raise DaemonRefusedError(_why_not(path, told, victims, change, state))


def endangered(state: EngineState, new: Mapping[str, Any], change: Change) -> tuple[str, ...]:
    """The containers that a restart into configuration ``new`` would end, of those listed.

    live-restore must hold on both sides: the old daemon must leave the containers alone
    when it stops, and the new one must adopt them instead of ending them. Even then it
    does not carry them over every ``change``.
    """
    kept = bool(state.info.get("LiveRestoreEnabled")) and bool(
        new.get("live-restore") or "--live-restore" in state.flags
    )
    return () if kept and not change.unprotected else state.running


def _why_not(
    path: str, told: str, victims: tuple[str, ...], change: Change, state: EngineState
) -> str:
    ways = "stop these containers first, {}or say restart: always"
    if change.unprotected:
        told += ", live-restore does not keep containers over a change of {}".format(
            ", ".join(change.unprotected)
        )
        ways = ways.format("")
    elif state.swarm_active:
        ways = "drain this Swarm node (Swarm excludes live-restore), " + ways.format("")
    else:
        ways = ways.format("set live-restore: true, ")
    return (
        "{} was left as it is: {}, and a restart of Docker would end {} running "
        "container(s): {}. Ways out: {}; restart: never writes the file and leaves the "
        "restart to you".format(path, told, len(victims), ", ".join(victims[:10]), ways)
    )


def _runtimes(config: Mapping[str, Any]) -> Mapping[str, Any]:
    value = config.get("runtimes")
    return value if isinstance(value, dict) else {}
