# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Decide how dockerd's configuration is to change; nothing here changes anything.

A plan is also all that check mode needs. :mod:`.daemon_apply` carries it out.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Callable, Protocol

from .. import vouched
from ..atomic import read_exact, read_text
from ..process import find_program
from ..secrets import by_key
from . import daemon_refusals as refusals
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
from .daemon_judge import Daemon, judge
from .daemon_record import RECORD_PATH
from .daemon_rules import Change, by_name, classify, driver_of_flags, flag_conflicts, not_taken
from .docker_api import EngineError, EngineUnreachableError
from .json_text import JsonTextError
from .pending import taken


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

    def left_behind(self, state: EngineState) -> Sequence[str]:
        """Containers that have a restart policy and that it would all the same not start again."""

    def carriers(self, state: EngineState) -> Mapping[str, Sequence[str]]:
        """The containers, running or not, by the runtime whose name they carry.

        Raises EngineError and EngineUnreachableError.
        """

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


def written_by_us(path: str, text: str) -> bool:
    """Does the ledger say that the last text we wrote to ``path`` is this one?"""
    newest = vouched.since(0).get(path, [vouched.ABSENT])[-1]
    return newest == hashlib.sha256(text.encode("utf-8")).hexdigest()


def make_plan(
    wish: Wish,
    engine: Engine,
    record_path: str = RECORD_PATH,
    is_program: Callable[[str], bool] = lambda path: find_program(path) is not None,
    is_ours: Callable[[str, str], bool] = written_by_us,
) -> Plan:
    """Decide. Raises DaemonRefusedError for a file, a key or a restart that cannot be.

    ``is_ours`` answers whether the text of the file at a path is one that this collection wrote.
    """
    before = read_exact(wish.path)
    if wish.leaves_file:
        nothing = Change(hot=(), cold=(), neutral={})
        plan = Plan(wish, before, before, Record(), Record(), nothing, "none", (), ())
        if not wish.start:
            return plan
        state = engine.state()
        return _warned(decide(plan, state, readable(before)), engine, state)
    record, merge = _merge(wish, before, record_path, is_ours)
    state = engine.state()
    old, new = document(before), document(merge.text)
    touched = classify(old, new, state.version or "")
    ours = "live-restore" in touched.keys or (wish.present and "live-restore" in wish.config)
    if ours and new.get("live-restore") and state.swarm_active:
        raise DaemonRefusedError(f"{wish.path} was left as it is: {refusals.SWARM_CONFLICT}")
    if merge.text != before:
        warnings = _check(wish, merge.text, old, touched, state, engine, is_program)
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
    _keep_carried(plan, engine, state)
    return _warned(decide(plan, state, new), engine, state)


def readable(text: str | None) -> dict[str, Any]:
    """The configuration in a file's text; {} where it is not ours and broken."""
    try:
        return document(text)
    except JsonTextError:
        return {}


def _keep_carried(plan: Plan, engine: Engine, state: EngineState) -> None:
    """Raises DaemonRefusedError when a runtime would go whose name containers carry."""
    by_flag = {word.partition("=")[0] for word in state.flags.get("--add-runtime", "").split(",")}
    gone = [name for name in plan.gone_runtimes if name not in by_flag]
    if not gone or state.status == "absent" or plan.wish.restart == "always":
        return
    left = f"{plan.wish.path} was left as it is"
    try:
        users = engine.carriers(state)
    except (EngineError, EngineUnreachableError) as error:
        raise DaemonRefusedError(
            "{}: whether containers carry the name of runtime {} could not be asked: {}".format(
                left, ", ".join(gone), error
            )
        ) from None
    carried = {name: users[name] for name in gone if users.get(name)}
    if carried:
        raise DaemonRefusedError(f"{left}: {refusals.why_not_without(carried)}")


def _warned(plan: Plan, engine: Engine, state: EngineState) -> Plan:
    """With what else is to be known of its restart or start."""
    told = [left_behind(plan, engine, state) or ""]
    younger = state.started_at is not None and not started_after(plan.wish.path, state)
    if plan.how == "restart" and plan.wish.restart != "always" and younger:
        there = readable(plan.before)
        told.append(refusals.maybe_waiting(plan.wish.path, state, there, plan.change))
    return replace(plan, warnings=(*plan.warnings, *filter(None, told)))


def left_behind(plan: Plan, engine: Engine, state: EngineState) -> str | None:
    """Whom a start or restart by this plan does not bring back, in words; None for nobody."""
    aim = readable(plan.after)
    if plan.live_restore_last:
        aim["live-restore"] = True
    if plan.how == "start":
        ending = refusals.lost_at_start(state, aim, plan.change)
        staying = [one for one in state.living if one not in ending]
        names = [one for one in engine.left_behind(state) if one not in staying]
    elif plan.how == "restart" and not (plan.live_restore_first or plan.live_restore_last):
        ending = refusals.endangered(state, aim, plan.change)
        names = [one for one in engine.left_behind(state) if one in ending]
    else:
        return None
    if not names:
        return None
    return (
        "Docker before 28.2 does not start containers with CDI devices again when it starts "
        "(moby #49989), whatever their restart policy: {}. Afterwards: docker start {}"
    ).format(", ".join(names[:10]), " ".join(names[:10]))


def _adopt(
    wish: Wish, before: str | None, record: Record, is_ours: Callable[[str, str], bool]
) -> Record:
    """Claim what a way back had to leave: a runtime's name that containers carry, led to runc.

    It stands in a file that we wrote, in the one form in which we write it, and is nobody's.
    """
    wanted = _runtimes(wish.config) if wish.present else {}
    there = _runtimes(document(before))
    plain = {"path": find_program("runc") or "runc"}
    for name in wanted:
        key = ("runtimes", name)
        left = there.get(name) == plain and wanted[name] != plain and record.owner_of(key) is None
        if left and before is not None and is_ours(wish.path, before):
            record = record.claim(key, plain, None)
    return record


def _merge(
    wish: Wish, before: str | None, record_path: str, is_ours: Callable[[str, str], bool]
) -> tuple[Record, Merge]:
    try:
        record = load_record(read_text(record_path))
        if wish.present:
            adopted = _adopt(wish, before, record, is_ours)
            return record, put(before, adopted, wish.config, wish.takeover, by_key.show)
        return record, take_back(before, record, wish.config or None, by_key.show)
    except JsonTextError as error:
        raise DaemonRefusedError(
            f"{wish.path} cannot be read: {error}. It was left as it is; repair it "
            f"(dockerd --validate --config-file {wish.path}) or move it away"
        ) from error
    except ForeignOwnerError as error:
        told = by_key.clean(str(error), by_key.secrets_of(before or "", wish.config))
        raise DaemonRefusedError(f"{wish.path}: {told}") from None
    except RecordError as error:
        raise DaemonRefusedError(
            f"{record_path}, which remembers what in {wish.path} is ours, is damaged: {error}. "
            "Nothing was changed; move it away to start without a memory"
        ) from error


def _check(
    wish: Wish,
    text: str | None,
    old: Mapping[str, Any],
    touched: Change,
    state: EngineState,
    engine: Engine,
    is_program: Callable[[str], bool],
) -> tuple[str, ...]:
    """The warnings. Raises DaemonRefusedError with everything that is wrong at once."""
    new = document(text)
    errors = []
    other_file = state.flags.get("--config-file", wish.path)
    if other_file != wish.path:
        errors.append(f"docker.service reads {other_file}, not {wish.path}")
    set_now = [key for key in touched.keys if key in new]
    if "proxies" in set_now:  # Its members are flags, and it is none.
        set_now.extend(new["proxies"] or ())
    errors.extend(
        f"{conflict}: with both dockerd would not start; take it out of the unit or out of config"
        for conflict in flag_conflicts(set_now, state.flags)
    )
    log_drivers = (state.info.get("Plugins") or {}).get("Log") or []
    driver = state.info.get("CgroupDriver") or driver_of_flags(state.flags)
    daemon = Daemon(state.version, log_drivers, driver, is_program)
    judgement = judge(old, new, touched.keys, daemon)
    secrets = by_key.secrets_of(old, new)
    warnings = tuple(by_key.clean(warning, secrets) for warning in judgement.warnings)
    if wish.validate:
        errors.extend(judgement.errors)
        said = engine.validate(text, state.version) if text is not None else None
        if said:
            errors.append("dockerd --validate: " + said)
    else:
        warnings = warnings + tuple(by_key.clean(error, secrets) for error in judgement.errors)
    if errors:
        told = by_key.clean("; ".join(errors), secrets)
        raise DaemonRefusedError(f"{wish.path} was left as it is: {told}")
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
    return taken(path, state.started_at)


def decide(plan: Plan, state: EngineState, new: Mapping[str, Any]) -> Plan:
    """How the daemon gets to know of ``plan.change``, and whether that may be done.

    ``new`` is the configuration to come. Raises DaemonRefusedError for a restart or a start that is
    not safe.
    """
    change, forced = plan.change, plan.wish.restart == "always"
    left = f"{plan.wish.path} was left as it is"
    if state.status == "unreachable" and (change.keys or plan.wish.start):
        raise DaemonRefusedError(f"{left}, because the daemon could not be asked: {state.reason}")
    if state.status == "stopped" and state.has_unit and plan.wish.start:
        why_not = "" if forced else refusals.why_not_start(state, new, change)
        if why_not:
            raise DaemonRefusedError(f"{left}: {why_not}")
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
        raise DaemonRefusedError(f"{left}: {told}, and {refusals.SWARM_CONFLICT}")
    if state.bound and not forced:
        raise DaemonRefusedError(f"{left}: {refusals.why_not_with(told, state.bound)}")
    victims = refusals.endangered(state, new, change)
    if not victims or forced:
        return replace(plan, how="restart")
    covered = not refusals.unprotected(state, new, change)
    if new.get("live-restore") and covered:
        return replace(plan, how="restart", live_restore_first=True)
    if state.info.get("LiveRestoreEnabled") and covered:
        return replace(plan, how="restart", live_restore_last=True)
    raise DaemonRefusedError(
        f"{left}: {refusals.why_not_restart(told, victims, state, new, change)}"
    )


def _runtimes(config: Mapping[str, Any]) -> Mapping[str, Any]:
    value = config.get("runtimes")
    return value if isinstance(value, dict) else {}
