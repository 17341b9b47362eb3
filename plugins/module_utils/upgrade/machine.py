# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A real host for :mod:`.switch`."""

from __future__ import annotations

from collections.abc import Mapping

from .. import units
from ..engine import daemon_start
from ..engine.containerd import program_version
from ..engine.daemon_control import DockerDaemon
from ..engine.docker_api import DockerClient, EngineError, EngineUnreachableError
from ..hardware import inventory, model
from ..heal import containers as gpu_containers
from ..mig import containers as docker_names
from ..process import CommandMissingError, run
from . import read
from .model import Host
from .switch import DOCKER, Ended
from .wanted import NAMES


class Machine:
    """``timeout_s`` bounds a restart, ``deadline_s`` each question."""

    def __init__(self, socket: str, timeout_s: float, deadline_s: float = 30.0) -> None:
        self._socket = socket
        self._timeout_s = timeout_s
        self._deadline_s = deadline_s
        self._client = DockerClient(socket, deadline_s)
        self._docker = DockerDaemon(self._client, timeout_s)

    def look(self) -> Host:
        """The host now."""
        return read.read(NAMES, self._socket, self._deadline_s)

    def restart(self, unit: str) -> None:
        """Restart or start it. A unit that failed too often is not started without the reset."""
        if unit == DOCKER:
            self._docker.restart()
            return
        run(["systemctl", "reset-failed", unit])
        units.act("restart", unit, self._timeout_s)

    def why_not_start(self) -> str:
        """Whom the start of a Docker that is down would end; "" for nobody."""
        return daemon_start.why_not(self._docker)

    def answers(self) -> str | None:
        """None once Docker answers."""
        try:
            DockerClient(self._socket, self._deadline_s).info()
        except (EngineUnreachableError, EngineError) as error:
            return str(error)
        return None

    def refuses(self, unit: str, text: str | None) -> str | None:
        """The word of ``dockerd --validate`` or ``containerd config dump``, where there is one."""
        if unit == DOCKER:
            return self._docker.validate(text, program_version("dockerd")) if text else None
        try:
            done = run(["containerd", "config", "dump"], self._deadline_s)
        except CommandMissingError:
            return None
        return None if done.ok else done.said

    def lost_gpus(self) -> Mapping[str, str]:
        """By the kernel's own device rules; a container that nothing can be said of is left out."""
        facts = model.as_facts(inventory.collect(deadline_s=self._deadline_s))
        names = docker_names.names(DockerClient(self._socket, self._deadline_s))
        return {
            one.name: ", ".join(str(node) for node in one.lost)
            for one in gpu_containers.read(facts, names, deadline_s=self._deadline_s)
            if one.lost
        }

    def ended(self, name: str) -> Ended:
        """By Docker's own word."""
        try:
            state = self._client.inspect(name).get("State") or {}
        except (EngineUnreachableError, EngineError):
            return Ended(name, None)
        return Ended(name, int(state.get("ExitCode") or 0))

    def log(self, unit: str) -> str:
        """Its last words."""
        return units.last_log_lines(unit, 8)
