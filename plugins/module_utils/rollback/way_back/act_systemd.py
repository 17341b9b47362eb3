# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""systemd and containerd on the way back: told of changed files, units on or off.

Nothing is stopped in which somebody's container lives, and a daemon-reload that may take a GPU
away is left to the next one who can afford it.
"""

from __future__ import annotations

import os

from ... import units
from ...engine import daemon_start, living
from ...engine.containerd import program_version
from ...engine.daemon_control import DockerDaemon, process_start
from ...engine.docker_api import DockerClient
from ...engine.services import read_services
from ...process import CommandMissingError, run
from ...slices import reader, reload
from ..model import Done, Left, RollbackError, Step
from .actors_api import Context

# Stopping one of these stops, or blinds, the engine; docker.service requires its socket.
_ENGINE = ("docker.service", "docker.socket", "containerd.service")
# Whoever asks at the socket starts the engine.
_STARTS_DOCKER = ("docker.service", "docker.socket")
# CUDA programs end with it where fabric manager is told so (ABORT_CUDA_JOBS_ON_FM_EXIT).
_FABRIC = "nvidia-fabricmanager.service"
_ASKED = ("ActiveState", "Type")


def tell(step: Step, context: Context, socket: str) -> Done:
    """Let systemd read the files of the step again, if that takes no GPU from anybody."""
    if not reader.has_systemd(context.root):
        return Done()
    endangered = reload.endangered(socket)
    if endangered:
        told = (
            "reads {} at its next daemon-reload only: none was run, since it may take the GPU "
            "from {}"
        ).format(_listed(step.details.get("paths", ())), ", ".join(endangered))
        return Done(left=(Left(step.subject, told, pending=True),))
    try:
        units.daemon_reload(context.options.deadline_s)
    except (units.UnitError, CommandMissingError) as error:
        raise RollbackError(str(error)) from error
    return Done(True)


def unit(step: Step, context: Context, socket: str) -> Done:
    """Enable or disable, start or stop the unit ``step.subject``. Raises RollbackError."""
    name, deadline_s = step.subject, context.options.deadline_s
    if not reader.has_systemd(context.root):
        return Done(left=(Left(name, "systemd does not run here", pending=True),))
    changed = False
    left: list[Left] = []
    try:
        seen = units.show(name, _ASKED)
        enabled = step.details.get("enabled")
        # What ``show`` says of it may be older than the links.
        if enabled in ("enabled", "disabled") and _enabled(name) != enabled:
            _switch(name, enabled, socket, deadline_s)
            changed = True
        active = step.details.get("active")
        if active == "active" and seen.get("ActiveState") != "active":
            started, reason = _start(name, seen, socket, context)
        elif active == "inactive" and seen.get("ActiveState") not in ("inactive", "failed"):
            started, reason = _stop(name, deadline_s, context.root)
        else:
            started, reason = False, None
    except (units.UnitError, CommandMissingError) as error:
        raise RollbackError(str(error)) from error
    if reason:
        left.append(Left(name, reason, pending=True))
    return Done(changed or started, tuple(left))


def containerd(step: Step, context: Context) -> Done:
    """Is containerd older than its files? Then it has to be restarted, by whom it does not hurt."""
    name = step.subject
    service = read_services([name])[name]
    started = process_start(service.main_pid, context.root) if service.main_pid else None
    # Files below certs.d are read at each pull.
    paths = [path for path in step.details.get("paths", ()) if "/certs.d/" not in path]
    changed_at = max((_changed_at(path, context.root) for path in paths), default=0.0)
    if not service.active or (started is not None and started > changed_at):
        return Done()
    told = f"runs with what {_listed(paths)} held before, until its next start. "
    lost = living.lost_to(program_version("containerd"), context.root)
    if lost:
        names = _listed([shim.name for shim in lost])
        told += f"The installed containerd is an older one that ends {names} when it starts. "
        told += f"Once they may end: systemctl restart {name}"
    else:
        told += (
            "Running containers live on over a restart; while no image is being pulled: "
            f"systemctl restart {name}"
        )
    return Done(left=(Left(name, told, pending=True),))


def _start(
    name: str, seen: dict[str, str], socket: str, context: Context
) -> tuple[bool, str | None]:
    if seen.get("Type") == "oneshot":
        # To start it is to do its work once more, such as a change of the MIG layout.
        return False, "does its work once, at boot; it was not started now"
    deadline_s = context.options.deadline_s
    if name in _STARTS_DOCKER:
        docker = DockerDaemon(DockerClient(socket, deadline_s), deadline_s)
        endangered = daemon_start.why_not(docker, context.root)
        if endangered:
            return False, f"was not started. {endangered}. Then: systemctl start {name}"
    # One that failed too often in a row is not started again without this.
    run(["systemctl", "reset-failed", name])
    units.act("start", name, deadline_s)
    return True, None


def _stop(name: str, deadline_s: float, root: str) -> tuple[bool, str | None]:
    containers = living.names(root) if name in _ENGINE else []
    if containers:
        told = "was not stopped, since containers run: {}. Once they may end: systemctl stop {}"
        return False, told.format(_listed(containers), name)
    if name == _FABRIC:
        told = f"was not stopped: programs on the GPUs may end with it. systemctl stop {name}"
        return False, told
    units.act("stop", name, deadline_s)
    return True, None


def _enabled(name: str) -> str:
    return run(["systemctl", "is-enabled", name]).stdout.strip()


def _switch(name: str, enabled: str, socket: str, deadline_s: float) -> None:
    """Make or remove the unit's links; raises UnitError.

    systemctl follows it by a daemon-reload unless told not to.
    """
    verb = "enable" if enabled == "enabled" else "disable"
    quiet = ["--no-reload"] if reload.endangered(socket) else []
    done = run(["systemctl", verb, *quiet, name], deadline_s)
    if not done.ok:
        raise units.UnitError(f"systemctl {verb} {name} failed: {done.said}")


def _changed_at(path: str, root: str) -> float:
    """When a file was last put in place; that of the directory for one that is gone."""
    where = os.path.join(root, path.lstrip("/"))
    while where not in ("", "/") and not os.path.lexists(where):
        where = os.path.dirname(where)
    return os.lstat(where).st_ctime if where else 0.0


def _listed(names: object) -> str:
    words = [str(name) for name in names] if isinstance(names, (list, tuple)) else []
    more = f" and {len(words) - 10} more" if len(words) > 10 else ""
    return ", ".join(words[:10]) + more
