# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The driver's two daemons: are they there, do they run? No service manager is asked.

systemctl costs a process and a D-Bus round trip for an answer that lies in two directories:
a unit runs when its control group has a process, and is installed when it has a file.
"""

from __future__ import annotations

import os
import re

from ..process import CommandMissingError, find_program, run
from . import files
from .host_model import FabricManager, PersistenceDaemon

_FABRIC_MANAGER = "nvidia-fabricmanager"
_PERSISTENCE_DAEMON = "nvidia-persistenced"
# The unified hierarchy, and systemd's own one of the legacy and hybrid layouts.
_GROUPS = ("sys/fs/cgroup/system.slice", "sys/fs/cgroup/systemd/system.slice")
_UNITS = (
    "etc/systemd/system",
    "run/systemd/system",
    "usr/lib/systemd/system",
    "lib/systemd/system",
)
_VERSION = re.compile(r"version is\s*:\s*(\d+(?:\.\d+)+)")


def read_fabric_manager(
    nvswitches: int | None, driver_version: str | None, root: str = "/"
) -> FabricManager:
    """The fabric manager, which only a host with NVSwitches needs.

    Its version is asked of its program, where there is one. Without a switch nothing about it
    is a fault: the unit fails on such hosts and means nothing by it.
    """
    status = _status(_FABRIC_MANAGER, root)
    version = _version() if root == "/" else None
    return FabricManager(status, version, _fault(status, version, nvswitches, driver_version))


def read_persistence_daemon(root: str = "/") -> PersistenceDaemon:
    """nvidia-persistenced, which keeps GPUs initialised, and holds them open for it."""
    return PersistenceDaemon(_status(_PERSISTENCE_DAEMON, root))


def _fault(
    status: str, version: str | None, nvswitches: int | None, driver_version: str | None
) -> str | None:
    if not nvswitches:
        return None
    if status != "running":
        return (
            f"{nvswitches} NVSwitches and the fabric manager is {status}: CUDA answers with error "
            f"802 until it runs; install and start {_FABRIC_MANAGER} of the driver's version"
        )
    if version and driver_version and version != driver_version:
        return (
            f"fabric manager {version} and driver {driver_version} differ: it refuses to work; "
            "install the one of the driver's version"
        )
    return None


def _status(service: str, root: str) -> str:
    for group in _GROUPS:
        if files.text(os.path.join(root, group, f"{service}.service", "cgroup.procs")):
            return "running"
    pid = files.number(files.text(os.path.join(root, "run", service, f"{_program(service)}.pid")))
    # The kernel keeps 15 characters of a program's name.
    name = files.text(os.path.join(root, "proc", str(pid), "comm")) if pid is not None else ""
    if name and _program(service).startswith(name):
        return "running"
    installed = any(
        os.path.exists(os.path.join(root, unit, f"{service}.service")) for unit in _UNITS
    )
    return "stopped" if installed else "absent"


def _program(service: str) -> str:
    return "nv-fabricmanager" if service == _FABRIC_MANAGER else service


def _version() -> str | None:
    if find_program("nv-fabricmanager") is None:
        return None
    try:
        found = _VERSION.search(run(["nv-fabricmanager", "--version"], deadline_s=5).stdout)
    except CommandMissingError:
        return None
    return found.group(1) if found else None
