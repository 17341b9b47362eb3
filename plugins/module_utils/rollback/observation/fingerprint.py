# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the host offers its containers at run time, to be told and compared, never restored.

All values are JSON types.
"""

from __future__ import annotations

import contextlib
import glob
import hashlib
import json
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ...engine.daemon_json import CONFIG_PATH
from ...engine.runtime_users import DEFAULT_DATA_ROOT
from ...hardware import files, guarded, holders, nodes, pci
from ...process import find_program
from ..model import RollbackError
from . import device_rules
from .device_rules import Running

_PROGRAMS = (
    "nvidia-ctk",
    "nvidia-cdi-hook",
    "nvidia-container-runtime",
    "nvidia-container-runtime-hook",
    "nvidia-container-cli",
)
_LIBRARIES = (
    "usr/lib/*-linux-gnu/libnvidia-container.so.1",
    "usr/lib64/libnvidia-container.so.1",
    "usr/lib/libnvidia-container.so.1",
    "usr/local/lib/libnvidia-container.so.1",
)

# Docker's own files of a container, with its data root before them (moby, daemon/container).
_MOUNTED = re.compile(r"(/.+)/containers/[0-9a-f]{64}/(?:hostname|hosts|resolv\.conf)")

# What the kernel gives a GPU anew whenever it is opened for the first time, so that the same host
# shows others after a reboot: the interrupt and the mask for DMA. Everything else says which GPU it
# is, what firmware runs on it, and whether the driver was told to leave it out (nv-procfs.c).
_VOLATILE = ("IRQ", "DMA Size", "DMA Mask", "BAR")

# /proc is memory: what takes longer than this waits for a lock that a sick driver holds.
_PROC_DEADLINE_S = 5.0


@dataclass(frozen=True)
class Listed:
    """What an engine says of a running container: its name and its labels."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)


def devices(root: str = "/") -> dict[str, str]:
    """``/dev/nvidia0`` -> ``195:0`` of every device node of the driver, capabilities included."""
    return {
        node.path: f"{node.major}:{node.minor}"
        for node in nodes.read_nodes([], root)
        if node.exists
    }


def driver(deadline_s: float, root: str = "/") -> dict[str, Any]:
    """``version``, the NVRM line of the loaded module, and ``gpus``: PCI address -> values.

    {} without the module. Raises RollbackError when the driver does not answer.
    """
    directory = os.path.join(root, "proc/driver/nvidia")
    if not os.path.isdir(directory):
        return {}

    def question() -> dict[str, Any]:
        gpus = {
            address.lower(): files.text(os.path.join(directory, "gpus", address, "information"))
            for address in files.names(os.path.join(directory, "gpus"))
        }
        return {"version": files.text(os.path.join(directory, "version")), "gpus": gpus}

    outcome = guarded.call(question, min(deadline_s, _PROC_DEADLINE_S))
    if outcome.reason is not None:
        raise RollbackError(
            f"/proc/driver/nvidia: {outcome.reason}. Look at the kernel's log for Xid messages"
        )
    return {
        "version": version_line(outcome.value["version"]),
        "gpus": {
            address: lasting(text)
            for address, text in outcome.value["gpus"].items()
            if pci.is_address(address)
        },
    }


def version_line(text: str) -> str:
    """The ``NVRM version:`` line of /proc/driver/nvidia/version; blanks run together."""
    lines = (line for line in text.splitlines() if line.startswith("NVRM version:"))
    return " ".join(next(lines, "").partition(":")[2].split())


def lasting(text: str) -> dict[str, str]:
    """The lines of a GPU's ``information`` that stay the same while nobody changes anything.

    A driver that has not opened the GPU yet shows question marks: such a value is left out.
    """
    found = {}
    for line in text.splitlines():
        key, colon, value = line.partition(":")
        key, value = key.strip(), value.strip()
        if colon and not key.startswith(_VOLATILE) and "?" not in value:
            found[key] = value
    return found


def toolkit(root: str = "/") -> dict[str, str]:
    """Path -> SHA-256 of the container toolkit's programs and library, as far as they are there."""
    programs = [find_program(name) for name in _PROGRAMS] if root == "/" else []
    paths = [path for path in programs if path is not None]
    for pattern in _LIBRARIES:
        paths += ["/" + os.path.relpath(path, root) for path in glob.glob(_below(root, pattern))]
    digests = {path: _digest(_below(root, path)) for path in paths}
    return {path: digest for path, digest in digests.items() if digest is not None}


def _below(root: str, path: str) -> str:
    return os.path.join(root, path.lstrip("/"))


def _digest(path: str) -> str | None:
    digest = hashlib.sha256()
    try:
        with open(path, "rb", buffering=0) as handle:
            while True:
                chunk = handle.read(1 << 20)
                if not chunk:
                    return digest.hexdigest()
                digest.update(chunk)
    except OSError:
        return None  # it went just now, or is not a file


# -- containers --------------------------------------------------------------------------


def containers(
    found: Iterable[Running],
    listed: Mapping[str, Listed],
    memory_mib: Mapping[int, int | None] | None,
    deadline_s: float,
    root: str = "/",
) -> dict[str, dict[str, Any]]:
    """The running containers that have a GPU, by id.

    Each has ``name``, ``namespace``, ``runtime``, ``device_rules`` (see :mod:`.device_rules`) and
    ``gpu_memory_mib``, which is None when the driver did not tell. ``listed`` are the names that
    engines told, ``memory_mib`` is by process id, None when NVML was not asked. A container of no
    OCI engine (LXC, systemd-nspawn) is known by its processes on a GPU alone and has no rules.
    """
    everybody = {one.id: one for one in found}
    majors = device_rules.nvidia_majors(files.text(_below(root, "proc/devices")))
    used = _by_container(memory_mib or {}, everybody.values(), root)
    wanted = {
        name for name, one in everybody.items() if device_rules.has_gpu(one.spec, majors)
    } | used.keys()
    scopes = {
        one.scope for name, one in everybody.items() if name in wanted and one.scope is not None
    }
    kept = device_rules.of_scopes(sorted(scopes), deadline_s)
    return {
        name: _container(
            everybody.get(name),
            listed.get(name),
            name,
            kept,
            None if memory_mib is None else used.get(name, 0),
            root,
        )
        for name in sorted(wanted)
    }


def _container(
    one: Running | None,
    listed: Listed | None,
    name: str,
    kept: Mapping[str, list[str]],
    memory_mib: int | None,
    root: str,
) -> dict[str, Any]:
    described: dict[str, Any] = {
        "name": listed.name if listed else _name(one, name),
        "namespace": one.namespace if one else "",
        "runtime": "",
        "device_rules": [],
        "gpu_memory_mib": memory_mib,
    }
    if one is not None:
        described["runtime"] = _docker_runtime(one, root) or one.runtime
        described["device_rules"] = device_rules.rules(one.spec) + kept.get(one.scope or "", [])
    return described


def _docker_runtime(one: Running, root: str) -> str:
    """The runtime's name that Docker wrote into a container when it was made; "" if it is not its.

    Its own file is read: the engine answers only when it holds no lock on the container.
    """
    path = os.path.join(_data_root(one, root), "containers", one.id, "hostconfig.json")
    return str(_json(_below(root, path)).get("Runtime") or "")


def _data_root(one: Running, root: str) -> str:
    """Where Docker keeps this container: it mounts files from there into it.

    That holds whatever the unit's flags say, and with user ids that are remapped.
    """
    for mount in one.spec.get("mounts") or []:
        source = mount.get("source") if isinstance(mount, Mapping) else None
        found = _MOUNTED.fullmatch(str(source or ""))
        if found:
            return found.group(1)
    return str(_json(_below(root, CONFIG_PATH)).get("data-root") or DEFAULT_DATA_ROOT)


def _json(path: str) -> Mapping[str, Any]:
    with contextlib.suppress(ValueError):
        document = json.loads(files.text(path))
        if isinstance(document, dict):
            return document
    return {}


def _name(one: Running | None, name: str) -> str:
    """What Kubernetes or nerdctl call the container; else the start of its id."""
    if one is not None:
        told = one.annotations
        keys = ("sandbox-namespace", "sandbox-name", "container-name")
        parts = [
            str(told[f"io.kubernetes.cri.{key}"])
            for key in keys
            if f"io.kubernetes.cri.{key}" in told
        ]
        if parts:
            return "/".join(parts)
        for key in ("nerdctl/name", "io.kubernetes.cri-o.Name"):
            if key in told:
                return str(told[key])
    return name[:12] if len(name) == 64 else name


def _by_container(
    memory_mib: Mapping[int, int | None], everybody: Iterable[Running], root: str
) -> dict[str, int | None]:
    """The memory of each container's processes; None if it is not known of one of them."""
    groups = {one.group: one.id for one in everybody}
    found: dict[str, int | None] = {}
    for pid, used in memory_mib.items():
        text = files.text(os.path.join(root, "proc", str(pid), "cgroup"))
        name = _inside(text, groups) or holders.container_of(text)
        if name is None:
            continue
        former = found.get(name, 0)
        found[name] = None if used is None or former is None else former + used
    return found


def _inside(text: str, groups: Mapping[str, str]) -> str | None:
    """The container whose control group, or one above, a process is in."""
    for line in text.splitlines():
        group = line.split(":", 2)[-1]
        while len(group) > 1:
            if group in groups:
                return groups[group]
            group = os.path.dirname(group)
    return None
