# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Look at a host whose engine is to change. Reads only, and starts nothing."""

from __future__ import annotations

import glob
import os
import re
import time
from collections.abc import Mapping, Sequence
from typing import Any

from .. import cgroups, osinfo, packages, units
from ..atomic import read_text
from ..checks.preflight import platform_key
from ..containerd import config as containerd_config
from ..engine import cdi, daemon_json, living
from ..engine.containerd import program_version
from ..engine.daemon_control import process_start
from ..engine.docker import DockerInfo, read_docker
from ..engine.docker_api import DockerClient, EngineError, EngineUnreachableError
from ..engine.json_text import JsonTextError
from ..engine.services import Service, parse_show, read_services
from ..process import CommandMissingError, find_program, run
from ..secrets import by_key
from ..slices import reload
from ..trees.node import TreeError
from . import describe
from .model import Container, Daemon, Host, Shim

UNITS = ("docker.service", "containerd.service")
_PROGRAM = {"docker.service": "dockerd", "containerd.service": "containerd"}
# Who is stopped and started with a unit, by the property that lists them.
_BOUND = ("RequiredBy", "RequisiteOf", "BoundBy", "ConsistsOf", "PropagatesStopTo")
# Of those: the engine's own, whose restart is part of the plan.
_OWN = frozenset((*UNITS, "docker.socket"))
_HOOKS = ("nvidia-cdi-hook", "nvidia-container-runtime-hook")
_PIN = re.compile(r"^\s*(?:export\s+)?DOCKER_API_VERSION=[\"']?v?(1\.\d+)\b", re.MULTILINE)
_PIN_FILES = ("etc/environment", "etc/profile.d/*.sh", "etc/default/*")
_UNIT_PIN = re.compile(r"\bDOCKER_API_VERSION=[\"']?v?(1\.\d+)\b")


def read(
    names: Sequence[str], socket: str, deadline_s: float = 30.0, inspect_s: float = 60.0
) -> Host:
    """The host as it is. Nothing missing raises.

    ``names`` are the packages of interest. Each question waits ``deadline_s`` at most, the
    description of all containers together ``inspect_s``.
    """
    services = read_services(UNITS, deadline_s)
    client = DockerClient(socket, deadline_s)
    docker = read_docker(services["docker.service"], client)
    installed = packages.read_installed(deadline_s=deadline_s)
    config, config_fault = _config(services["docker.service"])
    started = process_start(services["docker.service"].main_pid)
    containerd, containerd_fault = _containerd()
    docker, containers = _containers(docker, client, inspect_s)
    specs = cdi.read_specs(docker.cdi_spec_dirs or cdi.DEFAULT_DIRECTORIES)
    daemons = {name: _daemon(name, services[name], docker, deadline_s) for name in UNITS}
    return Host(
        status=docker.status,
        reason=docker.reason,
        versions=_versions(docker, daemons),
        installed={
            name: installed.packages[name].version for name in names if name in installed.packages
        },
        unfinished={
            name: installed.half_done[name] for name in names if name in installed.half_done
        },
        manager=installed.manager,
        os=platform_key(vars(osinfo.read_os())),
        docker=daemons["docker.service"],
        containerd=daemons["containerd.service"],
        config=config,
        config_fault=config_fault,
        config_newer=_newer(_path(services["docker.service"]), started),
        flags=services["docker.service"].flags,
        flags_known=services["docker.service"].program == _PROGRAM["docker.service"],
        info=docker.info,
        containers=containers,
        shims=shims(),
        containerd_config=containerd,
        containerd_fault=containerd_fault,
        pins={**pins_of_files(), **_pins_of_units(deadline_s)},
        endangered=tuple(reload.endangered(socket)) if units.systemd_version() else (),
        programs={name: find_program(name) is not None for name in _HOOKS},
        cdi_devices=sum(len(spec.devices) for spec in specs if spec.status == "valid"),
        cgroup_version=cgroups.read_cgroups().version,
        systemd=units.systemd_version(),
        in_lxc=in_lxc(),
    )


def in_lxc(root: str = "/") -> bool:
    """Is this host itself an LXC container? systemd keeps what it runs in."""
    try:
        return (read_text(os.path.join(root, "run/systemd/container")) or "").startswith("lxc")
    except OSError:
        return False


def _versions(docker: DockerInfo, daemons: Mapping[str, Daemon]) -> dict[str, str]:
    found = {
        "docker": docker.version or daemons["docker.service"].program,
        "containerd": docker.components.get("containerd") or daemons["containerd.service"].program,
        "runc": docker.components.get("runc") or program_version("runc"),
    }
    return {name: version for name, version in found.items() if version}


def _path(service: Service) -> str:
    return service.flags.get("--config-file", daemon_json.CONFIG_PATH)


def _newer(path: str, started: float | None) -> bool:
    try:
        return started is not None and os.stat(path).st_mtime > started
    except OSError:
        return False


def _config(service: Service) -> tuple[Mapping[str, Any], str | None]:
    path = _path(service)
    text = None
    try:
        text = read_text(path)
        return daemon_json.document(text), None
    except (OSError, JsonTextError) as error:
        return {}, by_key.clean(f"{path}: {error}", by_key.secrets_of(text or ""))


def _containerd() -> tuple[containerd_config.Config | None, str | None]:
    path = containerd_config.CONFIG_PATH
    try:
        text = read_text(path)
        if text is None:
            return None, None
        config = containerd_config.load(text, path, read_text, glob.glob)
    except (OSError, TreeError) as error:
        return None, f"{path}: {error}"
    broken = "; ".join(f"{name}: {error}" for name, error in config.broken)
    return config, broken or None


def _containers(
    docker: DockerInfo, client: DockerClient, inspect_s: float
) -> tuple[DockerInfo, tuple[Container, ...]]:
    """All containers, the running ones described first; "unreachable" when that cannot be."""
    if docker.status != "running":
        return docker, ()
    default = str(docker.info.get("DefaultRuntime") or "")
    runtimes = docker.info.get("Runtimes")
    until = time.monotonic() + inspect_s
    found = []
    try:
        there = client.containers()
        for listed in sorted(there, key=lambda one: one.get("State") != "running"):
            container = describe.of_list(listed)
            if time.monotonic() < until:
                try:
                    inspected = client.inspect(container.id)
                    container = describe.of_inspection(container, inspected, default, runtimes)
                except EngineError as error:
                    if error.status == 404:  # It was removed in the meantime.
                        continue
                    raise
            found.append(container)
    except (EngineError, EngineUnreachableError) as error:
        return DockerInfo("unreachable", str(error), docker.version), tuple(found)
    return docker, tuple(found)


def _daemon(name: str, service: Service, docker: DockerInfo, deadline_s: float) -> Daemon:
    program = program_version(_PROGRAM[name], deadline_s)
    if service.load_state == "not-found":
        return Daemon(program=program)
    told = units.show(name, ("KillMode", *_BOUND))
    bound = {unit for key in _BOUND for unit in told.get(key, "").split()} - _OWN
    running = docker.version if name == "docker.service" else docker.components.get("containerd")
    return Daemon(
        there=True,
        active=service.active,
        coming_up=service.active_state == "activating",
        pid=service.main_pid,
        version=running,
        program=program,
        stale=service.active and is_stale(service.main_pid),
        kill_mode=told.get("KillMode", ""),
        bound=tuple(sorted(unit for unit in bound if _is_active(unit))),
    )


def _is_active(unit: str) -> bool:
    state = units.show(unit, ("ActiveState",)).get("ActiveState")
    return state in ("active", "activating", "reloading")


def is_stale(pid: int, root: str = "/") -> bool:
    """Does a process run another program than the one that now lies at its place?

    dpkg and rpm put a new file in the place of the old one; a process goes on with the old one.
    """
    link = os.path.join(root, "proc", str(pid), "exe")
    try:
        path = os.readlink(link)
        there = os.stat(link)
    except OSError:
        return False
    if path.endswith(" (deleted)"):
        return True
    try:
        now = os.stat(os.path.join(root, path.lstrip("/")))
    except OSError:
        return True
    return (there.st_dev, there.st_ino) != (now.st_dev, now.st_ino)


def shims(root: str = "/") -> tuple[Shim, ...]:
    """The containerd shims that run, each with the unit whose cgroup it is in."""
    found = []
    for shim in living.shims(root):
        parts = [part for group in shim.groups for part in group.split("/")]
        unit = next((part for part in parts if part in UNITS), "")
        container = shim.container if living.lives(shim, root) else ""
        found.append(Shim(unit, shim.program, shim.namespace, container, shim.version))
    return tuple(sorted(found, key=lambda one: (one.unit, one.program, one.container)))


def pins_of_files(root: str = "/") -> dict[str, str]:
    """DOCKER_API_VERSION in files that programs of the host get their environment from."""
    found = {}
    for pattern in _PIN_FILES:
        for path in sorted(glob.glob(os.path.join(root, pattern))):
            try:
                match = _PIN.search(read_text(path) or "")
            except OSError:
                continue
            if match:
                found["/" + os.path.relpath(path, root)] = match.group(1)
    return found


def _pins_of_units(deadline_s: float) -> dict[str, str]:
    try:
        done = run(["systemctl", "show", "--property=Id,Environment", "*.service"], deadline_s)
    except CommandMissingError:
        return {}
    return pins_of_units(done.stdout)


def pins_of_units(text: str) -> dict[str, str]:
    """DOCKER_API_VERSION in the environment of units, of ``systemctl show``. Pure."""
    found = {}
    for unit in parse_show(text):
        match = _UNIT_PIN.search(unit.get("Environment", ""))
        if match and unit.get("Id"):
            found[unit["Id"]] = match.group(1)
    return found
