# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The engine side of ``ansible_facts['gpu_host']``: everything in few questions.

On a slow host each started program costs 50 to 300 ms, so what one answer holds is not
asked twice: systemd tells of all units in one call, the package database is read once,
and the Docker daemon names containerd's and runc's versions with its own.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from .. import cgroups, osinfo, packages, units, upgrade_guard
from ..atomic import read_text
from ..process import run
from ..settings.survey import owners as settings_owners
from . import cdi, pending, toolkit
from .containerd import ContainerdInfo, program_version, read_containerd
from .daemon_json import CONFIG_PATH, Record, RecordError, document, load_record
from .daemon_record import record_path_of
from .docker import DockerInfo, read_docker
from .docker_api import DEFAULT_SOCKET, DockerClient
from .json_text import JsonTextError
from .services import Service, is_stale, process_start, read_services

# Flags that hold no secret, as distributions set them.
_OPEN_FLAGS = frozenset(("--host", "--containerd", "--config-file", "--debug", "--live-restore"))
_UNITS = ("docker.service", "containerd.service")

# The packages whose versions decide what a GPU container host can do.
PACKAGES = (*packages.ENGINE_PACKAGES, *packages.TOOLKIT_PACKAGES)


def collect(
    root: str = "/",
    extra_packages: Sequence[str] = (),
    deadline_s: float = 30.0,
    socket_path: str = DEFAULT_SOCKET,
) -> dict[str, Any]:
    """The sections ``os`` … ``settings`` of the facts. Nothing missing or broken raises.

    With a ``root`` other than ``/`` (a recorded tree) only files are read: no program is
    run and no daemon asked, since they would answer for this host.
    """
    live = os.path.abspath(root) == "/"
    services = read_services(_UNITS, deadline_s) if live else {name: Service() for name in _UNITS}
    docker = _docker(services["docker.service"], socket_path, deadline_s, root, live)
    installed = packages.read_installed(root, deadline_s)
    return {
        "os": asdict(osinfo.read_os(root)),
        "kernel": asdict(osinfo.read_kernel(root)),
        "systemd": {"version": units.systemd_version() if live else None},
        "cgroup": asdict(cgroups.read_cgroups(root)),
        "docker": _docker_section(docker, services["docker.service"], root),
        "containerd": asdict(_containerd(services["containerd.service"], docker, deadline_s, live)),
        "runc": {"version": _runc(docker, deadline_s, live)},
        "toolkit": asdict(
            toolkit.read_toolkit(installed.packages, root, live=live, deadline_s=deadline_s)
        ),
        "cdi": {"specs": [asdict(spec) for spec in cdi.read_specs(_spec_dirs(docker), root)]},
        "packages": _packages_section(installed, extra_packages, root),
        "settings": {"owners": settings_owners(root)},
    }


def _docker(
    service: Service, socket_path: str, deadline_s: float, root: str, live: bool
) -> DockerInfo:
    if not live:
        return DockerInfo("absent", "a recorded tree has no daemon")
    docker = read_docker(service, DockerClient(socket_path, deadline_s), root)
    if docker.version is not None:
        return docker
    # What is installed decides what can be configured, also before its first start.
    return replace(docker, version=program_version("dockerd", deadline_s))


def _docker_section(docker: DockerInfo, service: Service, root: str) -> dict[str, Any]:
    info = docker.info
    return {
        "status": docker.status,
        "reason": docker.reason,
        "version": docker.version,
        "api_version": docker.api_version,
        "min_api_version": docker.min_api_version,
        "cgroup_driver": info.get("CgroupDriver"),
        "cgroup_version": int(info["CgroupVersion"]) if info.get("CgroupVersion") else None,
        "storage_driver": info.get("Driver"),
        "live_restore": info.get("LiveRestoreEnabled"),
        "default_runtime": info.get("DefaultRuntime"),
        "runtimes": docker.runtimes,
        "cdi": {
            "enabled": bool(docker.cdi_spec_dirs),
            "spec_dirs": docker.cdi_spec_dirs,
            "devices": docker.cdi_devices,
        },
        "swarm": {"active": docker.swarm_active, "state": docker.swarm_state},
        "containers": {
            "running": info.get("ContainersRunning"),
            "total": info.get("Containers"),
        },
        "service": {
            "active": service.active,
            "enabled": _enabled(service),
            "load_state": service.load_state,
        },
        "daemon_json": read_daemon_json(service.flags.get("--config-file", CONFIG_PATH), root),
        "flags": _shown_flags(service.flags),
        **_pending(docker, service, root),
    }


def _enabled(service: Service) -> bool:
    """Does it start at boot?

    What ``show`` says is as old as systemd's last daemon-reload; ``is-enabled`` reads the links.
    """
    if service.enabled or service.load_state != "loaded":
        return service.enabled
    return run(["systemctl", "is-enabled", "docker.service"]).stdout.startswith("enabled")


def _shown_flags(flags: Mapping[str, str]) -> dict[str, str]:
    """The flags without passwords, as of a proxy."""
    if set(flags) <= _OPEN_FLAGS and not any("@" in value for value in flags.values()):
        return dict(flags)
    # Seldom needed, and Ansible compiles what is imported at each run.
    from ..secrets import by_key

    return {name: str(json.loads(by_key.show((name,), value))) for name, value in flags.items()}


def _pending(docker: DockerInfo, service: Service, root: str) -> dict[str, list[str]]:
    """What the daemon has not taken yet, in words; nothing for one that does not run."""
    path = service.flags.get("--config-file", CONFIG_PATH)
    if docker.status != "running":
        return {"restart_pending": [], "reload_pending": []}
    try:
        config = document(read_text(os.path.join(root, path.lstrip("/"))))
        record = load_record(read_text(os.path.join(root, record_path_of(path).lstrip("/"))))
    except (JsonTextError, RecordError, OSError):
        config, record = {}, Record()
    started_at = process_start(service.main_pid, root) if service.main_pid else None
    version = docker.version or ""
    found = pending.judge(
        config,
        docker.info,
        pending.Daemon(version, service.flags, started_at, is_stale(service.main_pid, root)),
        record,
        pending.taken(path, started_at, root),
        pending.hook(version, started_at),
    )
    return {"restart_pending": list(found.restart), "reload_pending": list(found.reload)}


def read_daemon_json(path: str = CONFIG_PATH, root: str = "/") -> dict[str, Any]:
    """``status`` is ``absent``, ``valid`` or ``invalid``; an empty file is a valid one."""
    text = read_text(os.path.join(root, path.lstrip("/")))
    facts: dict[str, Any] = {"path": path, "status": "absent", "reason": None, "keys": []}
    if text is None:
        return facts
    try:
        keys = list(document(text))
    except JsonTextError as error:
        return {**facts, "status": "invalid", "reason": str(error)}
    return {**facts, "status": "valid", "keys": keys}


def _containerd(
    service: Service, docker: DockerInfo, deadline_s: float, live: bool
) -> ContainerdInfo:
    if not live:
        return ContainerdInfo(None, "absent")
    return read_containerd(service, docker.components.get("containerd"), deadline_s)


def _runc(docker: DockerInfo, deadline_s: float, live: bool) -> str | None:
    if not live:
        return None
    return docker.components.get("runc") or program_version("runc", deadline_s)


def _spec_dirs(docker: DockerInfo) -> Sequence[str]:
    return docker.cdi_spec_dirs or cdi.DEFAULT_DIRECTORIES


def _packages_section(
    installed: packages.Installed, extra_packages: Sequence[str], root: str
) -> Mapping[str, Any]:
    names = sorted({*PACKAGES, *extra_packages} & set(installed.packages))
    return {
        "manager": installed.manager,
        "installed": {name: asdict(installed.packages[name]) for name in names},
        "unfinished": sorted(installed.unfinished),
        "pins": packages.pins(root),
        "guarded": not upgrade_guard.missing(installed.manager, root),
    }
