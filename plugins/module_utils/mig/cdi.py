# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The CDI specification after a MIG change: every device that is there, none that is gone.

A name that outlives its device is worse than a missing one: the number of its capability
node may by then belong to somebody else's instance.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from .. import vouched
from ..atomic import read_text
from ..engine import cdi, cdi_generate
from ..engine.docker import read_docker
from ..engine.docker_api import DEFAULT_SOCKET, DockerClient
from ..engine.services import read_services
from ..process import find_program, run
from . import capabilities
from .model import GpuLayout, MigError
from .nvml_mig import Reading

DEFAULT_PATH = "/var/run/cdi/nvidia.yaml"
_STRATEGIES = ("index", "uuid")
# ``0:1`` is the second MIG device of GPU 0 (device name strategy "index").
_MIG_INDEX = re.compile(r"(\d+):(\d+)$")


@dataclass(frozen=True)
class Settings:
    """``path`` of the specification and ``ctk``, the tool that writes it.

    ``socket`` is Docker's, asked for the version of the format that it reads.
    """

    path: str = DEFAULT_PATH
    ctk: str = "nvidia-ctk"
    socket: str = DEFAULT_SOCKET
    deadline_s: float = 60.0


@dataclass
class Refreshed:
    """What was done to the file, and what a person should know."""

    actions: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def available(settings: Settings) -> bool:
    """Is the tool on this host?"""
    return cdi_generate.available(settings.ctk)


def faults(text: str | None, path: str, layouts: Sequence[GpuLayout]) -> list[str]:
    """What of the MIG devices is wrong in a specification, for a person. Pure.

    [] for one that is right and for a file that is not there.
    """
    if text is None:
        return []
    named = set(cdi.parse_spec(path, text).devices)
    devices = {
        gpu.index: [one for instance in gpu.instances for one in instance.compute]
        for gpu in layouts
    }
    there = {one.uuid for of_gpu in devices.values() for one in of_gpu if one.uuid}
    found = [f"{uuid} is missing" for uuid in sorted(there - named)]
    for name in sorted(named - there):
        match = _MIG_INDEX.match(name)
        beyond = match and int(match.group(2)) >= len(devices.get(int(match.group(1)), []))
        if beyond or name.startswith("MIG-"):
            found.append(f"{name} is named and does not exist")
    return found


def nodes_left_out(text: str, reading: Reading, root: str = "/") -> list[str]:
    """Capability nodes of the instances that a specification lacks.

    The tool leaves out, with success, those whose file is not in ``/dev``.
    """
    numbers = sorted(capabilities.read(root)[one] for one in _in_use(reading, root))
    nodes = [capabilities.node(number) for number in numbers]
    return [node for node in nodes if not re.search(re.escape(node) + r"\b", text)]


def refresh(reading: Reading, settings: Settings, check_mode: bool, root: str = "/") -> Refreshed:
    """Bring the file in line with the devices. Raises MigError and leaves no stale name.

    Where nothing of MIG is wrong in it, the tool is not run.
    """
    done = Refreshed()
    path, layouts = settings.path, reading.layouts
    before = read_text(path)
    wrong = faults(before, path, layouts)
    there = any(instance.compute for gpu in layouts for instance in gpu.instances)
    if not wrong and (before is not None or not there):
        return done
    if not available(settings):
        done.warnings.append(
            f"{path} was not refreshed: {settings.ctk} is not on this host. Containers cannot ask "
            "for MIG devices by CDI until: nvidia-ctk cdi generate"
        )
        _drop_stale(done, path, wrong, check_mode, root)
        return done
    if check_mode:
        done.actions.append(f"refresh {path} ({'; '.join(wrong) or 'it does not exist'})")
        return done
    empty = [gpu for gpu in layouts if gpu.current and not gpu.instances]
    if len(empty) == len(layouts):
        # The tool fails between the enabling of MIG and the first instance.
        done.warnings.append(
            f"{path} was not generated: MIG is on and no GPU has an instance, so there is no "
            "device to describe"
        )
        _drop_stale(done, path, wrong, check_mode, root)
        return done
    try:
        _generate(done, reading, settings, before, root)
    except (cdi_generate.SpecError, OSError) as error:
        _drop_stale(done, path, wrong, check_mode, root)
        if empty:
            names = ", ".join(f"GPU {gpu.index}" for gpu in empty)
            done.warnings.append(
                f"{path} was not generated while {names} has MIG on and no instance: {error}"
            )
            return done
        also = "; ".join(done.actions)
        raise MigError(f"{error}{f' ({also})' if also else ''}") from error
    return done


def put_back(text: str | None, reading: Reading, settings: Settings, root: str = "/") -> Refreshed:
    """The specification of before for a layout that was restored; made anew where it does not
    fit. Raises MigError, OSError.
    """
    path = settings.path
    if text is None or faults(text, path, reading.layouts):
        return refresh(reading, settings, False, root)
    if read_text(path) == text:
        return Refreshed()
    vouched.write(path, text, root=root)
    return Refreshed([f"restore {path}"])


def _generate(
    done: Refreshed, reading: Reading, settings: Settings, before: str | None, root: str
) -> None:
    """Generate and judge; the file is replaced only by one that is right."""
    done.actions += _make_nodes(reading, root)
    path = settings.path
    docker = read_docker(
        read_services(["docker.service"])["docker.service"], DockerClient(settings.socket)
    )
    plan = cdi_generate.plan_present(
        path, settings.ctk, _STRATEGIES, docker.version, settings.deadline_s
    )
    text = plan.after or ""
    problems = faults(text, path, reading.layouts)
    left_out = nodes_left_out(text, reading, root)
    if left_out:
        problems.append(
            "it lacks {}, whose files are not in {}: without them no container can use these "
            "instances".format(", ".join(left_out), capabilities.DIRECTORY)
        )
    if problems:
        raise cdi_generate.SpecError(
            f"{settings.ctk} made a specification that does not fit the GPUs: {'; '.join(problems)}"
        )
    if before != text:
        vouched.write(path, text, root=root)
        done.actions += plan.actions


def _drop_stale(
    done: Refreshed, path: str, wrong: Sequence[str], check_mode: bool, root: str
) -> None:
    """Remove a specification that names what is gone. Running containers do not need it."""
    gone = [fault for fault in wrong if fault.endswith("does not exist")]
    if gone:
        if not check_mode:
            cdi_generate.carry_out(cdi_generate.plan_absent(path), root)
        done.actions.append(f"remove {path} ({'; '.join(gone)})")


def _in_use(reading: Reading, root: str) -> list[capabilities.Capability]:
    """The capabilities of all instances there are; only those the driver lists."""
    known = capabilities.read(root)
    found = []
    for gpu in reading.gpus:
        for instance in gpu.layout.instances:
            if instance.id is not None:
                found.append(capabilities.Capability(gpu.minor, instance.id))
                found += [
                    capabilities.Capability(gpu.minor, instance.id, one.id)
                    for one in instance.compute
                ]
    return [one for one in found if one in known]


def _make_nodes(reading: Reading, root: str) -> list[str]:
    """Let the driver's own helper make the capability nodes that are not there."""
    if find_program("nvidia-modprobe") is None:
        return []
    known = capabilities.read(root)
    made = []
    for one in _in_use(reading, root):
        path = capabilities.node(known[one])
        if os.path.exists(os.path.join(root, path.lstrip("/"))):
            continue
        if run(["nvidia-modprobe", "-f", one.proc_path]).ok:
            made.append(f"create {path}")
    return made
