# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Classes of memory bandwidth that containers choose by CDI, where the CPU can throttle.

Docker has no flag for it; a CDI device carries the class (``intelRdt``) to the OCI runtime, which
makes the group in resctrl when a container starts in it:
``docker run --device steadygpu.dev/membw=half``. Sources: the kernel's filesystems/resctrl.rst,
CDI's SPEC.md (intelRdt since 0.7.0), the OCI runtime specification (linux.intelRdt).
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ..engine import cdi_versions
from ..engine.docker_api import DockerClient, EngineError, EngineUnreachableError
from ..hardware import files
from ..settings.files import header
from ..settings.model import EFFECTIVE, INERT, UNSUPPORTED, Setting, Target
from .model import NumaError

# YAML for the sake of the comment that says whose it is; what follows is JSON, which is YAML.
SPEC_PATH = "/etc/cdi/steadygpu-membw.yaml"
KIND = "steadygpu.dev/membw"
_CDI_VERSION = "0.7.0"
_MOUNT = "/sys/fs/resctrl"
_DOMAINS = re.compile(r"^\s*MB:(.*)$", re.MULTILINE)
_PREFIX = "steadygpu-mb"


@dataclass(frozen=True)
class Ability:
    """What this CPU can do. ``fault`` says why classes cannot act, with the ``verdict`` for it.

    ``domains`` are the memory controllers, ``step`` and ``least`` are percentages, ``classes`` is
    how many classes of service there are, the default one included.
    """

    fault: str = ""
    verdict: str = ""
    domains: tuple[str, ...] = ()
    step: int = 10
    least: int = 10
    classes: int = 0


def look(docker_version: str, root: str = "/") -> Ability:
    """Can this host throttle memory bandwidth by class? ``docker_version`` may be unknown, ""."""
    info = _below(root, f"{_MOUNT}/info/MB")
    cpu = files.text(os.path.join(root, "proc/cpuinfo"))
    flags = re.search(r"^flags\s*:(.*)$", cpu, re.MULTILINE)
    able = flags is not None and "mba" in flags.group(1).split()
    if not os.path.isdir(info):
        if not able:
            return Ability(
                "not supported by this CPU: it has no memory bandwidth allocation (flag mba)",
                UNSUPPORTED,
            )
        if not files.names(_below(root, _MOUNT)):
            return Ability(
                "the CPU can, and resctrl is not mounted: mount -t resctrl resctrl "
                "/sys/fs/resctrl, with a line in /etc/fstab",
                INERT,
            )
        return Ability("not supported by this kernel: resctrl offers no MB here", UNSUPPORTED)
    if "AuthenticAMD" in cpu:
        return Ability(
            "this CPU limits bandwidth in eighths of GB/s, not in percent, which means "
            "another share on each machine",
            UNSUPPORTED,
        )
    if "mba_MBps" in files.text(os.path.join(root, "proc/mounts")):
        return Ability("resctrl is mounted with mba_MBps: it counts in MB/s, not percent", INERT)
    if docker_version and not cdi_versions.reads("docker", docker_version, _CDI_VERSION):
        return Ability(
            f"Docker {docker_version} does not read CDI {_CDI_VERSION}, which carries the class; "
            f"wanted is {cdi_versions.since('docker', _CDI_VERSION)} or newer",
            UNSUPPORTED,
        )
    return Ability(
        domains=_domains(files.text(_below(root, f"{_MOUNT}/schemata"))),
        step=files.number(files.text(os.path.join(info, "bandwidth_gran"))) or 10,
        least=files.number(files.text(os.path.join(info, "min_bandwidth"))) or 10,
        classes=files.number(files.text(os.path.join(info, "num_closids"))) or 0,
    )


def refusals(bandwidth: Mapping[str, int], ability: Ability) -> list[str]:
    """What this CPU cannot hold although it can throttle. Pure."""
    if ability.fault:
        return []
    said = [
        f"memory_bandwidth.{name} is {percent} %: this CPU has {ability.least} % at least and "
        f"steps of {ability.step} %"
        for name, percent in bandwidth.items()
        if percent < ability.least or (percent - ability.least) % ability.step
    ]
    different = len(set(bandwidth.values()))
    if ability.classes and different > ability.classes - 1:
        said.append(
            f"memory_bandwidth has {different} different percentages: this CPU has "
            f"{ability.classes} classes of service, one of which is the default"
        )
    return said


def spec_text(bandwidth: Mapping[str, int], ability: Ability) -> str | None:
    """The CDI specification; None where nothing may be offered. Pure."""
    if ability.fault or not bandwidth:
        return None
    devices = [
        {
            "name": name,
            "containerEdits": {
                "intelRdt": {"closID": group_of(percent), "memBwSchema": schema(percent, ability)}
            },
        }
        for name, percent in sorted(bandwidth.items())
    ]
    document = {"cdiVersion": _CDI_VERSION, "kind": KIND, "devices": devices}
    return header("numa") + json.dumps(document, indent=2) + "\n"


def schema(percent: int, ability: Ability) -> str:
    """``MB:0=50;1=50``: the line of the group's schemata."""
    return "MB:" + ";".join(f"{domain}={percent}" for domain in ability.domains)


def group_of(percent: int) -> str:
    """The group in resctrl. Named by what it holds: a runtime refuses one that holds another."""
    return f"{_PREFIX}{percent}"


def targets(bandwidth: Mapping[str, int], ability: Ability) -> tuple[Target, ...]:
    """What cannot act here, with its reason, so that it is remembered and reported."""
    if not ability.fault:
        return ()
    return tuple(
        Target(_name(name), ability.verdict, "", f"{percent} %", ability.fault)
        for name, percent in sorted(bandwidth.items())
    )


def prove(bandwidth: Mapping[str, int], ability: Ability, root: str = "/") -> list[Setting]:
    """Have the kernel hold each class once, in a group that nobody is in. Raises NumaError."""
    if ability.fault:
        return []
    found = []
    for name, percent in sorted(bandwidth.items()):
        wanted = schema(percent, ability)
        seen = _held(group_of(percent), wanted, root)
        if seen != wanted:
            raise NumaError(
                f"{_name(name)}: {wanted} was written to resctrl, and the kernel holds {seen}"
            )
        path = f"{_MOUNT}/{group_of(percent)}/schemata"
        found.append(Setting(_name(name), wanted, seen, EFFECTIVE, "", path))
    return found


def carriers(client: DockerClient, names: Iterable[str]) -> list[str]:
    """Containers, also stopped ones, that carry one of these devices: ``NAME (class half)``.

    They would not start again without it. Raises NumaError where the engine does not answer.
    """
    wanted = {f"{KIND}={name}" for name in names}
    if not wanted:
        return []
    found: list[str] = []
    try:
        for listed in client.containers(include_stopped=True):
            inspected = client.inspect(str(listed["Id"]))
            requests = (inspected.get("HostConfig") or {}).get("DeviceRequests") or []
            ids = {one for request in requests for one in request.get("DeviceIDs") or []}
            for one in sorted(ids & wanted):
                name = str(inspected.get("Name") or listed["Id"]).lstrip("/")
                found.append(f"{name} ({one})")
    except (EngineUnreachableError, EngineError) as error:
        raise NumaError(
            f"Docker did not say which containers carry {', '.join(sorted(wanted))} ({error}), so "
            "the classes cannot be removed now"
        ) from error
    return found


def _held(group: str, wanted: str, root: str) -> str | None:
    """What the kernel makes of ``wanted`` in ``group``. A group made for it goes again."""
    directory = _below(root, f"{_MOUNT}/{group}")
    made = False
    try:
        if not os.path.isdir(directory):
            os.mkdir(directory)
            made = True
            with open(os.path.join(directory, "schemata"), "w", encoding="ascii") as handle:
                handle.write(wanted + "\n")
        text = files.text(os.path.join(directory, "schemata"))
    except OSError as error:
        status = files.text(_below(root, f"{_MOUNT}/info/last_cmd_status"))
        raise NumaError(
            f"resctrl refused {wanted} in {group}: {error.strerror} ({status or 'no reason'}). "
            "Every class of service may be taken: look at the directories in /sys/fs/resctrl"
        ) from error
    finally:
        if made:
            _drop(directory)
    line = _DOMAINS.search(text)
    pairs = [part.replace(" ", "") for part in line.group(1).split(";")] if line else []
    return "MB:" + ";".join(pairs) if pairs else None


def _drop(directory: str) -> None:
    # In a tree of plain files a group has a file; in resctrl it is removed whole.
    try:
        os.rmdir(directory)
    except OSError:
        os.unlink(os.path.join(directory, "schemata"))
        os.rmdir(directory)


def _domains(schemata: str) -> tuple[str, ...]:
    line = _DOMAINS.search(schemata)
    return (
        tuple(part.partition("=")[0].strip() for part in line.group(1).split(";")) if line else ()
    )


def _name(name: str) -> str:
    return f"memory bandwidth {name}"


def _below(root: str, path: str) -> str:
    return os.path.join(root, path.lstrip("/"))
