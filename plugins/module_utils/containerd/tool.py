# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The real containerd under systemd: asked, made to dump its configuration, restarted."""

from __future__ import annotations

import contextlib
import glob
import os
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Callable, Protocol

from .. import units
from ..atomic import read_text
from ..engine import daemon_json
from ..engine.containerd import parse_version
from ..engine.docker_api import DEFAULT_SOCKET, DockerClient, EngineError, EngineUnreachableError
from ..engine.json_text import JsonTextError
from ..engine.services import Service, process_start, read_services
from ..process import CommandMissingError, find_program, run
from .config import CONFIG_PATH
from .shims import Shim, shims_of

UNIT = "containerd.service"
SOCKET = "/run/containerd/containerd.sock"

_POLL_S = 0.2
_ASKED = (
    "ExecStart",
    "ExecStop",
    "ExecStopPost",
    "KillMode",
    "ControlGroup",
    "RequiredBy",
    "RequisiteOf",
    "BoundBy",
    "ConsistsOf",
)
_GO_ALONG = ("RequiredBy", "RequisiteOf", "BoundBy", "ConsistsOf")
# Distributions of Kubernetes that start a containerd of their own.
KEEPERS = {
    "k3s.service": "k3s",
    "k3s-agent.service": "k3s",
    "rke2-server.service": "RKE2",
    "rke2-agent.service": "RKE2",
    "k0scontroller.service": "k0s",
    "k0sworker.service": "k0s",
    "snap.microk8s.daemon-containerd.service": "MicroK8s",
}


_ERROR = re.compile(r"\blevel=(error|fatal)\b|^containerd: ")
_DATABASE = re.compile(r"(/.*)/io\.containerd\.metadata\.v1\.bolt/meta\.db")
_BUNDLE = re.compile(r"(/.*)/io\.containerd\.runtime\.v2\.task/[^/]+/[^/]+")


class DumpError(Exception):
    """containerd does not read a configuration; the message is what it says."""


@dataclass(frozen=True)
class ContainerdState:
    """containerd at one moment. ``status`` is ``running``, ``stopped`` or ``absent``.

    ``config_path`` is what the unit reads. ``keeper`` names who else runs a containerd here, such
    as ``k3s``. ``shims`` are those of running containers, ``stops`` the commands that a stop of the
    unit runs. ``along`` are active units that systemd would stop or restart with it. Of Docker,
    where it runs: ``docker_running`` are its containers, ``live_restore`` whether they outlive its
    stop and its start. ``live_root`` and ``live_state`` are where the running daemon has its data
    and its containers, None where that is not seen, or where a flag of the unit says it.
    """

    status: str
    release: str | None = None
    has_unit: bool = True
    config_path: str = CONFIG_PATH
    keeper: str | None = None
    kill_mode: str = "control-group"
    stops: tuple[str, ...] = ()
    started_at: float | None = None
    shims: tuple[Shim, ...] = ()
    along: tuple[str, ...] = ()
    docker_active: bool = False
    docker_running: tuple[str, ...] = ()
    live_restore: bool = False
    docker_reason: str | None = None
    live_root: str | None = None
    live_state: str | None = None


class Tool(Protocol):
    """What is asked of a containerd; :class:`Containerd` is the real one."""

    def state(self) -> ContainerdState:
        """As it is now. Never raises for one that does not answer."""

    def config_path(self) -> str:
        """The file that its unit reads, which costs less to ask than :meth:`state`."""

    def default(self) -> str:
        """Its built-in configuration. Raises DumpError."""

    def dump(self, path: str) -> str:
        """What it makes of the file at ``path`` with its imports. Raises DumpError."""

    def plugins(self) -> Mapping[str, str]:
        """The status of each plugin of the running daemon, by ``type.id``. Raises DumpError."""

    def restart(self) -> None:
        """Restart, and return when it has come up. Raises UnitError."""

    def docker_answers(self) -> bool:
        """Does the Docker daemon answer?"""

    def log(self) -> str:
        """Its last words."""


@dataclass
class Containerd:
    """``timeout_s`` bounds a restart; ``path`` is the file that was asked for, if one was."""

    timeout_s: float = 120.0
    docker_socket: str = DEFAULT_SOCKET
    root: str = "/"
    _program: str = field(default="containerd", init=False)
    _address: str = field(default=SOCKET, init=False)

    def state(self) -> ContainerdState:
        """Ask systemd, the program and, where it matters, Docker."""
        names = [UNIT, "docker.service", *KEEPERS]
        services = read_services(names)
        service, docker = services[UNIT], services["docker.service"]
        has_unit = service.load_state != "not-found"
        keeper = next((KEEPERS[name] for name in KEEPERS if services[name].active), None)
        shown = units.show(UNIT, _ASKED) if has_unit else {}
        self._program = unit_program(shown.get("ExecStart", "")) or "containerd"
        release = self._release()
        if release is None and not has_unit:
            return ContainerdState("absent", has_unit=False, keeper=keeper)
        flags = service.flags
        self._address = flags.get("--address") or flags.get("-a") or SOCKET
        along = _active(shown)
        running, live_restore, reason = self._docker(docker) if docker.active else ((), False, None)
        shims = shims_of(self._address, shown.get("ControlGroup", ""), self.root)
        live_root, live_state = self._live(service, shims)
        return ContainerdState(
            status="running" if service.active else "stopped",
            release=release,
            has_unit=has_unit,
            config_path=_config_of(service),
            keeper=keeper,
            kill_mode=shown.get("KillMode", "control-group"),
            stops=tuple(_commands(shown)),
            started_at=process_start(service.main_pid) if service.main_pid else None,
            shims=shims,
            along=along,
            docker_active=docker.active,
            docker_running=running,
            live_restore=live_restore,
            docker_reason=reason,
            live_root=live_root,
            live_state=live_state,
        )

    def config_path(self) -> str:
        """The file that its unit reads."""
        return _config_of(read_services([UNIT])[UNIT])

    def _release(self) -> str | None:
        if find_program(self._program) is None and not os.path.exists(self._program):
            return None
        return parse_version(run([self._program, "--version"]).stdout)

    def _docker(self, service: Service) -> tuple[tuple[str, ...], bool, str | None]:
        """Its running containers, whether they outlive it, and why neither is known."""
        client = DockerClient(self.docker_socket)
        try:
            listed = client.containers(include_stopped=False)
            names = tuple(
                str((one.get("Names") or [one.get("Id", "?")])[0]).lstrip("/") for one in listed
            )
            stays = bool(client.info().get("LiveRestoreEnabled"))
            return names, stays and self._starts_with_live_restore(service), None
        except (EngineError, EngineUnreachableError) as error:
            return (), False, str(error)

    def _starts_with_live_restore(self, docker: Service) -> bool:
        """Does it have live-restore at its next start too? Without, that start ends containers.

        A flag of its unit counts, else the file as it is now, whatever the daemon has read.
        """
        flag = docker.flags.get("--live-restore")
        if flag is not None:
            return flag.rpartition(",")[2].lower() in ("true", "t", "1")
        path = docker.flags.get("--config-file", daemon_json.CONFIG_PATH)
        try:
            config = daemon_json.document(read_text(os.path.join(self.root, path.lstrip("/"))))
        except (OSError, JsonTextError):
            return False
        return config.get("live-restore") is True

    def _live(self, service: Service, shims: Sequence[Shim]) -> tuple[str | None, str | None]:
        """``live_root`` by the database that the daemon has open, ``live_state`` by its shims."""
        processes = glob.escape(os.path.join(self.root, "proc"))
        opened = glob.glob(f"{processes}/{service.main_pid}/fd/*")
        bundles = [os.path.join(self.root, "proc", str(shim.pid), "cwd") for shim in shims]
        return (
            None if "--root" in service.flags else _above(_DATABASE, opened),
            None if "--state" in service.flags else _above(_BUNDLE, bundles),
        )

    def default(self) -> str:
        """Its built-in configuration. Raises DumpError."""
        return self._said("config", "default")

    def dump(self, path: str) -> str:
        """What it makes of the file at ``path`` with its imports. Raises DumpError."""
        return self._said("--config", path, "config", "dump")

    def _said(self, *arguments: str) -> str:
        try:
            done = run([self._program, *arguments])
        except CommandMissingError as error:
            raise DumpError(str(error)) from error
        if not done.ok:
            raise DumpError(done.said)
        return done.stdout

    def plugins(self) -> Mapping[str, str]:
        """The status of each plugin of the running daemon, by ``type.id``. Raises DumpError."""
        try:
            done = run(["ctr", "--address", self._address, "plugins", "ls"])
        except CommandMissingError as error:
            raise DumpError(str(error)) from error
        if not done.ok:
            raise DumpError(f"ctr plugins ls: {done.said}")
        return parse_plugins(done.stdout)

    def restart(self) -> None:
        """Restart, and return when it has come up. Raises UnitError."""
        # A unit that failed too often in a row is not started again without this.
        run(["systemctl", "reset-failed", UNIT])
        units.act("restart", UNIT, self.timeout_s)

    def docker_answers(self) -> bool:
        """Does the Docker daemon answer, and speak with containerd?"""
        client = DockerClient(self.docker_socket)
        try:
            client.ping()
            components = client.version().get("Components") or []
        except (EngineError, EngineUnreachableError):
            return False
        # It names containerd's version only when it could ask it.
        return any(one.get("Name") == "containerd" and one.get("Version") for one in components)

    def log(self) -> str:
        """Its last words: what it says of errors, if it does."""
        lines = units.last_log_lines(UNIT, 60).splitlines()
        telling = [line for line in lines if _ERROR.search(line)]
        return "\n".join((telling or lines)[-5:])


def _above(pattern: re.Pattern[str], links: Iterable[str]) -> str | None:
    """The directory that a pattern finds in what the first fitting link leads to."""
    for link in links:
        target = ""
        with contextlib.suppress(OSError):  # it may end while we look
            target = os.readlink(link)
        match = pattern.fullmatch(target)
        if match:
            return match.group(1)
    return None


def _config_of(service: Service) -> str:
    return service.flags.get("--config") or service.flags.get("-c") or CONFIG_PATH


def unit_program(exec_start: str) -> str | None:
    """The program in a unit's ``ExecStart`` property."""
    match = re.search(r"\bpath=(\S+) ;", exec_start)
    return match.group(1) if match else None


def _commands(shown: Mapping[str, str]) -> list[str]:
    """What a stop of the unit runs, as it is written."""
    found = []
    for name in ("ExecStop", "ExecStopPost"):
        found.extend(re.findall(r"argv\[\]=(.*?) ; ", shown.get(name, "")))
    return found


def _active(shown: Mapping[str, str]) -> tuple[str, ...]:
    """The active units that a restart takes along."""
    names = sorted({name for key in _GO_ALONG for name in shown.get(key, "").split()})
    if not names:
        return ()
    services = read_services(names)
    return tuple(name for name in names if services[name].active and name.endswith(".service"))


def parse_plugins(text: str) -> dict[str, str]:
    """``ctr plugins ls``: the status (``ok``, ``skip``, ``error``) by ``type.id``."""
    found = {}
    for line in text.splitlines():
        words = line.split()
        if len(words) >= 4 and words[0].startswith("io."):
            found[f"{words[0]}.{words[1]}"] = words[-1]
    return found


def await_true(ask: Callable[[], bool], deadline_s: float) -> bool:
    """Ask until it is so or the time is over."""
    deadline = time.monotonic() + deadline_s
    while not ask():
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL_S)
    return True


def listed(directory: str) -> Sequence[str]:
    """The names in a directory; () when there is none."""
    try:
        return sorted(os.listdir(directory))
    except (FileNotFoundError, NotADirectoryError):
        return ()


def text_of(path: str) -> str | None:
    """The text of a file, None for none and for what is no file."""
    try:
        return read_text(path)
    except IsADirectoryError:
        return None
