# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Look at the host: everything that a plan is made from. Reads only."""

from __future__ import annotations

import glob
import os

from ..engine import collect
from ..engine.docker_api import DEFAULT_SOCKET, DockerClient
from ..evidence.files import text as text_of
from ..hardware import files, inventory, model
from ..hardware.nodes import parse_majors
from ..mig import containers as docker_names
from ..process import find_program
from . import containers, plan, unit_states
from .model import Sight, UnitState

_PROGRAMS = ("nvidia-modprobe", "modprobe", "nvidia-ctk")
_DIRECTORIES = ("etc/systemd/system", "run/systemd/system", "usr/lib/systemd/system")


def read(deadline_s: float = 20.0, socket: str = DEFAULT_SOCKET) -> Sight:
    """The host as it is. Nothing missing raises; each question waits ``deadline_s`` at most."""
    gpu = model.as_facts(inventory.collect(deadline_s=deadline_s))
    runtime = collect.collect(deadline_s=deadline_s, socket_path=socket)
    names = docker_names.names(DockerClient(socket, deadline_s))
    specs = (runtime.get("cdi") or {}).get("specs") or []
    return Sight(
        facts={"schema": model.SCHEMA, "gpu": gpu, **runtime},
        containers=containers.read(gpu, names, deadline_s=deadline_s),
        units=read_units(deadline_s),
        spec_texts={str(one["path"]): text_of(str(one["path"])) for one in specs},
        drop_ins=read_drop_ins(),
        majors=parse_majors(files.text("/proc/devices")),
        programs={name: find_program(name) for name in _PROGRAMS},
    )


def read_units(deadline_s: float = 20.0) -> dict[str, UnitState]:
    """The units that matter here, by name; {} without systemd."""
    return unit_states.read(plan.UNITS, deadline_s)


def read_drop_ins(root: str = "/") -> dict[str, str]:
    """The drop-ins of the refresh and of Docker, by path."""
    found = {}
    for directory in _DIRECTORIES:
        for unit in (plan.REFRESH_SERVICE, plan.ENGINE):
            for path in glob.glob(os.path.join(root, directory, f"{unit}.d", "*.conf")):
                found["/" + os.path.relpath(path, root)] = text_of(path)
    return found
