# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whom a restart or a start of dockerd, or a runtime that goes, would cost a container, in words.

Pure, but for links on the way to the data root.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .daemon_control import EngineState
from .daemon_rules import Change
from .daemon_waiting import in_waiting, is_on, untold

SWARM_CONFLICT = (
    "this host is a Swarm node and live-restore is true. dockerd takes that on reload and then "
    "refuses its next start (--live-restore daemon configuration is incompatible with swarm "
    "mode). Take live-restore out of the configuration of Swarm nodes (engine_config of the role "
    "engine), or let the node leave the Swarm"
)


# -- restart -----------------------------------------------------------------------------


def endangered(state: EngineState, new: Mapping[str, Any], change: Change) -> tuple[str, ...]:
    """The containers that a restart into configuration ``new`` would end, of those listed.

    live-restore must hold on both sides: the old daemon must leave the containers alone
    when it stops, and the new one must adopt them instead of ending them. Even then it
    does not carry them over everything that changes.
    """
    kept = bool(state.info.get("LiveRestoreEnabled")) and has_live_restore(new, state)
    return () if kept and not unprotected(state, new, change) else state.running


def has_live_restore(config: Mapping[str, Any], state: EngineState) -> bool:
    """Does a daemon that starts with this file adopt the containers that live?"""
    return bool(config.get("live-restore")) or is_on(state.flags, "--live-restore")


def unprotected(state: EngineState, new: Mapping[str, Any], change: Change) -> tuple[str, ...]:
    """What a restart changes, by us or by others, and live-restore does not cover."""
    return tuple(dict.fromkeys((*change.unprotected, *_waiting(state, new))))


def _waiting(state: EngineState, new: Mapping[str, Any]) -> list[str]:
    return in_waiting(new, state.info, state.flags, state.flags_known)


def why_not_restart(
    told: str, victims: Sequence[str], state: EngineState, new: Mapping[str, Any], change: Change
) -> str:
    """``told`` says what needs the restart."""
    ways = "stop these containers first, {}or say restart: always"
    changes = unprotected(state, new, change)
    if changes:
        told += ", live-restore does not keep containers over a change of {}".format(
            ", ".join(changes)
        )
        others = [key for key in _waiting(state, new) if key not in change.unprotected]
        if others:
            told += (
                " ({}: not what the running daemon has, so that somebody changed it in the file or "
                "in docker.service and waits for a restart)"
            ).format(", ".join(others))
        ways = ways.format("put back what the daemon runs with, " if others else "")
    elif state.swarm_active:
        ways = "drain this Swarm node (Swarm excludes live-restore), " + ways.format("")
    else:
        ways = ways.format("set live-restore: true, ")
    return (
        f"{told}, and a restart of Docker would end {len(victims)} running container(s): "
        f"{_listed(victims)}. Ways out: {ways}; restart: never writes the file and leaves the "
        "restart to you"
    )


def why_not_with(told: str, units: Sequence[str]) -> str:
    """Why units that systemd restarts together with the daemon forbid it."""
    return (
        "{}, and with docker.service systemd would stop and start {} (Requires=, Requisite=, "
        "BindsTo= or PartOf= in them). Ways out: stop them first, say Wants= and After= instead, "
        "or restart: always; restart: never writes the file and leaves the restart to you"
    ).format(told, ", ".join(units))


def maybe_waiting(path: str, state: EngineState, new: Mapping[str, Any], change: Change) -> str:
    """A warning of keys that may be such as :func:`unprotected` names; "" for none.

    The file at ``path`` is younger than the daemon, which does not show what it has for them.
    """
    keys = [key for key in untold(new, state.version or "") if key not in change.unprotected]
    if not keys or not state.running:
        return ""
    return (
        f"{path} was written after Docker had started. live-restore does not keep containers over "
        f"a change of {', '.join(keys)}, and Docker does not show these: if they were changed "
        "since it started, its restart loses running containers"
    )


# -- start -------------------------------------------------------------------------------


def lost_at_start(state: EngineState, new: Mapping[str, Any], change: Change) -> tuple[str, ...]:
    """The containers that live without their daemon and would end, or be nobody's, with its start.

    A daemon that starts without live-restore ends what it finds alive.
    """
    if change.unprotected or not has_live_restore(new, state):
        return state.living
    return state.adrift


def why_not_start(
    state: EngineState,
    new: Mapping[str, Any],
    change: Change,
    forced: str = ", or say restart: always",
) -> str:
    """The reason; "" where nobody is lost. ``forced`` is the way out for who must have it."""
    lost = lost_at_start(state, new, change)
    if not lost:
        return ""
    told = (
        f"docker.service does not run, and {len(state.living)} container(s) live on without it: "
        f"{_listed(state.living)}. "
    )
    ways = ""
    if change.unprotected:
        told += "Its start would lose them: live-restore does not keep containers over a change of "
        told += ", ".join(change.unprotected)
    elif not has_live_restore(new, state):
        told += "Its start would end them, because live-restore is off"
        ways = "set live-restore: true, "
    else:
        told += f"It would not find the files of {_listed(lost)} in its data-root"
        ways = "put back the data-root that they were started with, "
    return f"{told}. Ways out: {ways}wait until they have ended{forced}"


# -- runtimes ----------------------------------------------------------------------------


def why_not_without(carried: Mapping[str, Sequence[str]]) -> str:
    """Why these runtimes must stay: containers by the runtime whose name they carry."""
    told = "; ".join(f"{name}: {_listed(carried[name])}" for name in sorted(carried))
    return (
        f"containers, running or stopped, carry the name of a runtime that would go ({told}), and "
        "would not start again without it. Ways out: create them anew with another runtime, remove "
        "them, or say restart: always"
    )


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - 10} more" if len(names) > 10 else ""
    return ", ".join(names[:10]) + more
