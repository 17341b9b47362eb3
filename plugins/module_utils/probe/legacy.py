# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Containers whose GPU came, or may have come, from the legacy NVIDIA hook.

The hook grants the device behind the back of the one who keeps the container's device
rules, so the GPU is lost when systemd or the engine writes these rules again.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

from .. import cgroups
from ..engine.docker_api import DockerClient, EngineError
from ..hardware import files
from ..heal import given
from ..process import find_program
from ..rollback.observation import device_rules

# Cgroups of containers that other engines made: Kubernetes (containerd, CRI-O), Podman.
_OTHER_ENGINES = re.compile(r"/(?:cri-containerd-|crio-|libpod-|nerdctl-|kubepods)")
# Docker's own, by the systemd and by the cgroupfs driver.
_DOCKER = re.compile(r"/docker[-/][0-9a-f]{64}")
# Of an engine without root, which has no right to write device rules.
_ROOTLESS = "/user.slice/"
_NO_GPU = ("", "void", "none")

# GPUs that are asked for by mounts (accept-nvidia-visible-devices-as-volume-mounts). What lies
# below the two directories is asked for by CDI, or is no GPU.
_VOLUMES = "/var/run/nvidia-container-devices/"
_NOT_BY_HOOK = ("cdi/", "imex/")

# NVIDIA's runtime of this name knows CDI only.
_BY_CDI = "nvidia-container-runtime.cdi"
_MOST_OF_A_SCRIPT = 1 << 16

_GPU_NODE = re.compile(r"/dev/nvidia\d+")


def uses_legacy_hook(
    inspected: Mapping[str, Any],
    default_runtime: str,
    runtimes: Mapping[str, Any] | None = None,
) -> bool:
    """May this container's GPU have come from the legacy NVIDIA hook? A doubt counts as yes.

    ``inspected`` is ``GET /containers/{id}/json``, ``runtimes`` are those of ``GET /info``. Without
    them a runtime is known by its name alone.
    """
    host = inspected.get("HostConfig") or {}
    for request in host.get("DeviceRequests") or []:
        wants_gpu = any("gpu" in group for group in request.get("Capabilities") or [])
        if request.get("Driver") in ("", "nvidia", None) and wants_gpu:
            return True
    return by_runtime(inspected, default_runtime, runtimes)


def by_runtime(
    inspected: Mapping[str, Any],
    default_runtime: str,
    runtimes: Mapping[str, Any] | None = None,
) -> bool:
    """May its GPU have come from a runtime of NVIDIA that knows the hook? As above."""
    host = inspected.get("HostConfig") or {}
    runtime = str(host.get("Runtime") or default_runtime)
    return _asks(inspected) and _runs_hook(runtime, runtimes or {})


def _asks(inspected: Mapping[str, Any]) -> bool:
    """Does it ask NVIDIA's runtime for a GPU, by its environment or by mounts?"""
    environment = (inspected.get("Config") or {}).get("Env") or []
    values = [e.split("=", 1)[1] for e in environment if e.startswith("NVIDIA_VISIBLE_DEVICES=")]
    if values and values[-1] not in _NO_GPU:
        return True
    mounted = [str(one.get("Destination") or "") for one in inspected.get("Mounts") or []]
    names = [path[len(_VOLUMES) :] for path in mounted if path.startswith(_VOLUMES)]
    return any(name and not name.startswith(_NOT_BY_HOOK) for name in names)


def _runs_hook(runtime: str, runtimes: Mapping[str, Any]) -> bool:
    """Is a runtime NVIDIA's: by its name, or by the program that Docker knows under this name?"""
    told = runtimes.get(runtime) or {}
    program = str(told.get("path") or (told.get("options") or {}).get("BinaryName") or "")
    if os.path.basename(program) == _BY_CDI:
        return False
    return "nvidia" in runtime or _is_nvidias(program)


def _is_nvidias(program: str) -> bool:
    """By its name, by what it is a link to, or by what a script starts."""
    if "nvidia" in os.path.basename(program):
        return True
    found = find_program(program) if program else None
    if found is None:
        return False
    path = os.path.realpath(found)
    return "nvidia" in os.path.basename(path) or b"nvidia-container-runtime" in _script(path)


def _script(path: str) -> bytes:
    """The text of a script; nothing of another program."""
    try:
        with open(path, "rb") as handle:
            return handle.read(_MOST_OF_A_SCRIPT) if handle.read(2) == b"#!" else b""
    except OSError:
        return b""


def legacy_gpu_containers(
    client: DockerClient,
    default_runtime: str,
    ignored_label: str | None = None,
    runtimes: Mapping[str, Any] | None = None,
) -> list[str]:
    """The running Docker containers of that kind, as ``container NAME``.

    Containers with ``ignored_label`` are passed over. ``runtimes`` are those of ``GET /info``,
    which is asked where they are None. Raises EngineError and EngineUnreachableError.
    """
    if runtimes is None:
        runtimes = client.info().get("Runtimes") or {}
    found = []
    for listed in client.containers(include_stopped=False):
        if ignored_label in (listed.get("Labels") or {}):
            continue
        name = (listed.get("Names") or ["/" + listed["Id"][:12]])[0].lstrip("/")
        try:
            inspected = client.inspect(listed["Id"])
        except EngineError as error:
            if error.status == 404:  # It ended in the meantime.
                continue
            raise
        if uses_legacy_hook(inspected, default_runtime, runtimes):
            found.append("container " + name)
    return found


def cgroups_with_gpus(docker_too: bool = False, root: str = "/") -> list[str]:
    """Cgroups of other engines' containers that hold a GPU open, or got one from the hook.

    These engines are not asked how a GPU came that is open. One that is not in use was given by
    the hook where its node is mounted: the hook mounts the host's own, while engines make nodes
    themselves (``--device``, CDI). ``docker_too`` counts Docker's containers as well, for when its
    engine cannot be asked either.
    """
    found = set()
    mounted: dict[str, frozenset[str]] = {}
    # The nodes of the host itself, which may be a container, were given to nobody in it.
    seen: dict[str | None, frozenset[str]] = {_namespace(os.path.join(root, "proc/1")): frozenset()}
    for directory in glob.glob(os.path.join(root, "proc/[0-9]*")):
        group = cgroups.of_process(int(os.path.basename(directory)), root) or ""
        counts = _OTHER_ENGINES.search(group) or (docker_too and _DOCKER.search(group))
        if not counts or group in found:
            continue
        if _holds_gpu(directory):
            found.add(group)
        elif not group.startswith(_ROOTLESS):
            mounted[group] = mounted.get(group, frozenset()) | _mounted(directory, seen)
    granted = {group: nodes for group, nodes in mounted.items() if nodes and group not in found}
    running = device_rules.running(root) if granted else []
    found |= {group for group in granted if not _is_ordered(group, granted[group], running)}
    return sorted(found)


def _holds_gpu(process_directory: str) -> bool:
    for link in glob.glob(os.path.join(process_directory, "fd", "*")):
        try:
            if os.readlink(link).startswith("/dev/nvidia"):
                return True
        except OSError:
            continue
    return False


def _mounted(process_directory: str, seen: dict[str | None, frozenset[str]]) -> frozenset[str]:
    """NVIDIA's nodes that are mounted where a process is, if a GPU is among them.

    ``seen`` are the mount namespaces that were looked into: a container has many processes.
    """
    namespace = _namespace(process_directory)
    if namespace is None or namespace in seen:
        return seen.get(namespace, frozenset())
    lines = files.text(os.path.join(process_directory, "mountinfo")).splitlines()
    points = [fields[4] for fields in map(str.split, lines) if len(fields) > 4]
    nodes = frozenset(point for point in points if point.startswith("/dev/nvidia"))
    nodes = nodes if any(_GPU_NODE.fullmatch(node) for node in nodes) else frozenset()
    if lines:  # else it has ended
        seen[namespace] = nodes
    return nodes


def _namespace(process_directory: str) -> str | None:
    try:
        return os.readlink(os.path.join(process_directory, "ns/mnt"))
    except OSError:
        return None


def _is_ordered(group: str, nodes: frozenset[str], running: Sequence[device_rules.Running]) -> bool:
    """Did the engine order all of these nodes itself, so that whoever writes the rules knows them?

    As with ``PASS_DEVICE_SPECS`` of NVIDIA's device plugin, or for a container with user ids of its
    own, in which nodes cannot be made. A privileged one may open everything at any time.
    """
    for one in running:
        if one.id in group:
            ordered = {node.path for node in given.ordered(one.spec)}
            return nodes <= ordered or _may_open_all(one.spec)
    return False


def _may_open_all(spec: Mapping[str, Any]) -> bool:
    resources = (spec.get("linux") or {}).get("resources") or {}
    return any(
        rule.get("allow")
        and rule.get("major") in (None, -1)
        and rule.get("type") in (None, "", "a")
        and {"r", "w"} <= set(rule.get("access") or "rwm")
        for rule in resources.get("devices") or []
    )
