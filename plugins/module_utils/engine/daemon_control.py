# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The real Docker daemon under systemd: asked, reloaded, restarted."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .. import units
from ..process import CommandMissingError, find_program, run
from ..versions import at_least
from . import container_files, living, runtime_users
from .containerd import program_version
from .docker import read_docker
from .docker_api import DockerClient, EngineError, EngineUnreachableError
from .services import process_start, read_services

__all__ = ["UNIT", "DockerDaemon", "EngineState", "process_start"]

UNIT = "docker.service"

# The first release whose dockerd knows ``--validate``.
_VALIDATES_SINCE = "23.0.0"

# moby #49989: earlier ones start containers before they know CDI.
_STARTS_CDI_SINCE = "28.2.0"

_POLL_S = 0.2
_STDIN = "/dev/stdin"


@dataclass(frozen=True)
class EngineState:
    """The daemon at one moment; ``status`` as in :class:`.docker.DockerInfo`.

    ``running`` names the containers that a stop would end. ``started_at`` is the start of
    the daemon's process in seconds since the epoch. ``flags`` are those of its unit, all of them
    if ``flags_known``, and ``has_unit`` says that there is one which could be started. ``bound``
    are active units that a restart would stop and start with it. ``living`` names the containers
    that live on though the daemon is stopped, ``adrift`` those of them that it would not find
    where it will look for its containers.
    """

    status: str
    reason: str | None = None
    version: str | None = None
    info: Mapping[str, Any] = field(default_factory=dict)
    running: tuple[str, ...] = ()
    swarm_active: bool = False
    started_at: float | None = None
    flags: Mapping[str, str] = field(default_factory=dict)
    has_unit: bool = True
    bound: tuple[str, ...] = ()
    flags_known: bool = True
    living: tuple[str, ...] = ()
    adrift: tuple[str, ...] = ()


class DockerDaemon:
    """``deadline_s`` bounds each question, ``restart_timeout_s`` a reload or restart."""

    def __init__(self, client: DockerClient, restart_timeout_s: float) -> None:
        self._client = client
        self._restart_timeout_s = restart_timeout_s

    def state(self) -> EngineState:
        """Ask systemd and the daemon. Never raises for a daemon that does not answer."""
        service = read_services([UNIT])[UNIT]
        docker = read_docker(service, self._client)
        version = docker.version
        running: tuple[str, ...] = ()
        status, reason = docker.status, docker.reason
        if status == "running":
            try:
                running = tuple(_alive(self._client.containers(include_stopped=False)))
            except (EngineUnreachableError, EngineError) as error:
                status, reason = "unreachable", str(error)
        elif version is None:
            version = program_version("dockerd")
        names = _living(service.flags) if status == "stopped" else {}
        flags_known = service.program == "dockerd"
        return EngineState(
            status=status,
            reason=reason,
            version=version,
            info=docker.info,
            running=running,
            swarm_active=docker.swarm_active,
            started_at=process_start(service.main_pid) if service.main_pid else None,
            flags=service.flags,
            has_unit=service.load_state != "not-found",
            bound=_active(service.bound),
            flags_known=flags_known,
            living=tuple(names),
            adrift=tuple(name for name, found in names.items() if flags_known and not found),
        )

    def wait_until_settled(self) -> None:
        """Let a daemon that is just starting come up, for as long as a restart may take.

        Its first start, which makes its storage and its networks, takes longer than a question.
        """
        deadline = time.monotonic() + self._restart_timeout_s
        while time.monotonic() < deadline:
            service = read_services([UNIT])[UNIT]
            if service.active_state != "activating" and not self._is_young(service.main_pid):
                return
            if read_docker(service, self._client).status == "running":
                return
            time.sleep(_POLL_S)

    def _is_young(self, pid: int) -> bool:
        started = process_start(pid) if pid else None
        return started is not None and time.time() - started < self._restart_timeout_s

    def left_behind(self, state: EngineState) -> list[str]:
        """See :class:`.daemon_plan.Engine`."""
        if state.version is None or at_least(state.version, _STARTS_CDI_SINCE):
            return []
        found = container_files.read(runtime_users.data_root(state.info, state.flags))
        return sorted(one.name for one in found if one.cdi and one.restarts)

    def carriers(self, state: EngineState) -> Mapping[str, Sequence[str]]:
        """See :class:`.daemon_plan.Engine`."""
        asked = self._client if state.status == "running" else None
        return runtime_users.find(asked, runtime_users.data_root(state.info, state.flags))

    def reload(self) -> None:
        """SIGHUP through systemd, then wait for the daemon's own word that it has reloaded.

        The signal returns at once and always with success, and dockerd reports a file it
        does not like only in its log; a finished reload is an event of the engine. A daemon
        that is too busy to answer has not reloaded yet. Raises units.UnitError.
        """
        began = time.time()
        units.act("reload", UNIT, self._restart_timeout_s)
        deadline = time.monotonic() + self._restart_timeout_s
        while not self._has_reloaded(began):
            if time.monotonic() > deadline:
                raise units.UnitError(
                    f"dockerd did not report a reload within {self._restart_timeout_s:g} s. "
                    f"See: journalctl -b -u {UNIT}"
                )
            time.sleep(_POLL_S)

    def _has_reloaded(self, since: float) -> bool:
        try:
            return bool(self._client.daemon_events("reload", since))
        except (EngineUnreachableError, EngineError):
            return False

    def restart(self) -> None:
        """Restart and wait until systemd calls it started. Raises units.UnitError."""
        self._launch("restart")

    def start(self) -> None:
        """Start and wait until systemd calls it started. Raises units.UnitError."""
        self._launch("start")

    def _launch(self, verb: str) -> None:
        # A unit that failed too often in a row is not started again without this.
        run(["systemctl", "reset-failed", UNIT])
        units.act(verb, UNIT, self._restart_timeout_s)

    def stop(self) -> None:
        """Stop it, and systemd's attempts to start it again. Raises units.UnitError."""
        units.act("stop", UNIT, self._restart_timeout_s)

    def log(self) -> str:
        """The daemon's last words."""
        return units.last_log_lines(UNIT, 8)

    def validate(self, text: str, version: str | None) -> str | None:
        """What ``dockerd --validate`` has against ``text``; None when nothing, or no way to ask."""
        if find_program("dockerd") is None or not at_least(version, _VALIDATES_SINCE):
            return None
        try:
            # No file of it: it may hold secrets, and one would stay behind if we were killed.
            done = run(["dockerd", "--validate", "--config-file", _STDIN], stdin=text)
        except CommandMissingError:
            return None
        return None if done.ok else done.said.replace(_STDIN, "daemon.json")


def _living(flags: Mapping[str, str]) -> dict[str, bool]:
    """The containers that live without the daemon, and whether it has files of them."""
    found = living.identities(flags)
    if not found:
        return {}
    known = {
        one.identity: one.name for one in container_files.read(runtime_users.data_root({}, flags))
    }
    return {known.get(one, one[:12]): one in known for one in found}


def _active(names: Sequence[str]) -> tuple[str, ...]:
    """Those that run; a socket or target has no job to lose."""
    jobs = [name for name in names if not name.endswith((".socket", ".target"))]
    services = read_services(jobs) if jobs else {}
    return tuple(name for name in jobs if services[name].active)


def _alive(containers: Sequence[Mapping[str, Any]]) -> list[str]:
    return [
        str((container.get("Names") or [container.get("Id", "?")])[0]).lstrip("/")
        for container in containers
    ]
