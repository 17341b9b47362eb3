# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Running containers as their OCI bundles tell of them, and the devices they may open.

No engine is asked: it would wait for the lock of a container that is starting. The rules of the
kernel itself are a program (cgroup v2) that cannot be read back; so these are what the engine
ordered (``linux.resources.devices``) and what systemd will write at its next reload
(``DeviceAllow``): a GPU that is only in one of the two is one that can be lost.
"""

from __future__ import annotations

import glob
import json
import os
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...hardware import files
from ...hardware.nodes import NVIDIA_MAJOR, parse_majors
from ...process import CommandMissingError, run

# Where bundles of running containers lie, with {namespace}/{id}: containerd's own, the one that
# dockerd starts, and k3s.
_TASKS = "io.containerd.runtime.v2.task/*/*"
_CONTAINERD = (
    f"run/containerd/{_TASKS}",
    f"run/docker/containerd/daemon/{_TASKS}",
    f"run/k3s/containerd/{_TASKS}",
)
# Podman and CRI-O, which have no namespaces.
_STORAGE = "run/containers/storage/*-containers/*/userdata"
_PID_FILES = ("init.pid", "pidfile")

# What injects GPUs without rules in the specification: NVIDIA's hook, under either of its names.
_HOOKS = ("nvidia-container-runtime-hook", "nvidia-container-toolkit")
_NO_GPU = ("", "void", "none")
_SCOPE = re.compile(r"/([^/\n]+\.scope)(?:/|$)", re.MULTILINE)

# A specification has some 10 to 100 KB.
_MOST_BYTES = 8 << 20


@dataclass(frozen=True)
class Running:
    """A running container.

    ``namespace`` is containerd's (``moby``, ``k8s.io`` …) or "", ``pid`` its first process,
    ``scope`` the systemd unit it lives in or None, ``runtime`` the OCI runtime's program as the
    engine names it or "", ``spec`` the OCI ``config.json``.
    """

    id: str
    namespace: str
    pid: int
    group: str
    scope: str | None
    runtime: str
    spec: Mapping[str, Any]

    @property
    def annotations(self) -> Mapping[str, Any]:
        """The specification's annotations."""
        return _mapping(self.spec.get("annotations"))


def running(root: str = "/") -> list[Running]:
    """Every running container of containerd (also Docker's), Podman and CRI-O, by id.

    One that comes or goes meanwhile is not in the list, nor is one whose files are not readable.
    """
    found = {}
    for pattern in (*_CONTAINERD, _STORAGE):
        for bundle in glob.glob(os.path.join(root, pattern)):
            one = _read(bundle, containerd=pattern != _STORAGE, root=root)
            if one is not None:
                found[one.id] = one
    return [found[name] for name in sorted(found)]


def _read(bundle: str, containerd: bool, root: str) -> Running | None:
    parts = bundle.split(os.sep)
    name, namespace = (parts[-1], parts[-2]) if containerd else (parts[-2], "")
    texts = (files.text(os.path.join(bundle, pid_file)) for pid_file in _PID_FILES)
    pid = next((number for number in map(files.number, texts) if number is not None), None)
    if pid is None:
        return None
    # The bundle of a stopped container stays until it is deleted.
    groups = files.text(os.path.join(root, "proc", str(pid), "cgroup"))
    spec = _spec(os.path.join(bundle, "config.json"))
    if not groups or spec is None or not _is_in(groups, name, spec):
        return None
    scopes = _SCOPE.findall(groups)
    return Running(
        id=name,
        namespace=namespace,
        pid=pid,
        group=groups.splitlines()[-1].split(":", 2)[-1],
        scope=scopes[-1] if scopes else None,
        runtime=os.path.basename(files.text(os.path.join(bundle, "runtime"))),
        spec=spec,
    )


def _spec(path: str) -> Mapping[str, Any] | None:
    try:
        with open(path, "rb") as handle:
            document = json.loads(handle.read(_MOST_BYTES))
    except (OSError, ValueError):
        return None
    return document if isinstance(document, dict) else None


def _is_in(groups: str, name: str, spec: Mapping[str, Any]) -> bool:
    """Is that process the container's? Its number may have gone to another since."""
    ordered = str(_mapping(spec.get("linux")).get("cgroupsPath") or "")
    known = {name, re.split("[/:]", ordered)[-1]} - {""}
    parts = {part for part in re.split("[/\n]", groups) if part}
    return any(
        part == one or part == f"{one}.scope" or part.endswith(f"-{one}.scope")
        for part in parts
        for one in known
    )


# -- what they may open: pure ------------------------------------------------------------


def nvidia_majors(proc_devices: str) -> frozenset[int]:
    """The majors of NVIDIA's devices: its own, and those the kernel gave (uvm, caps)."""
    given = parse_majors(proc_devices)
    return frozenset({NVIDIA_MAJOR, *(given[name] for name in given if name.startswith("nvidia"))})


def has_gpu(spec: Mapping[str, Any], majors: Collection[int]) -> bool:
    """Does this container have an NVIDIA device: by rule, by node, or by NVIDIA's hook?

    A privileged container may open everything; it counts when it was given the nodes.
    """
    linux = _mapping(spec.get("linux"))
    nodes = (str(node.get("path", "")) for node in _mappings(linux.get("devices")))
    if any(path.startswith("/dev/nvidia") for path in nodes):
        return True
    rules = _mappings(_mapping(linux.get("resources")).get("devices"))
    if any(rule.get("allow") and rule.get("major") in majors for rule in rules):
        return True
    return _has_hook(spec) and _asks(spec)


def _has_hook(spec: Mapping[str, Any]) -> bool:
    return any(
        os.path.basename(str(hook.get("path", ""))) in _HOOKS
        for hooks in _mapping(spec.get("hooks")).values()
        for hook in _mappings(hooks)
    )


def _asks(spec: Mapping[str, Any]) -> bool:
    environment = _mapping(spec.get("process")).get("env") or []
    start = "NVIDIA_VISIBLE_DEVICES="
    values = [str(one)[len(start) :] for one in environment if str(one).startswith(start)]
    return bool(values) and values[-1] not in _NO_GPU


def rules(spec: Mapping[str, Any]) -> list[str]:
    """The device rules of an OCI specification as text: ``c 195:0 rw allow``, ``a *:* rwm deny``.

    A later rule outdoes an earlier one. Neighbours of one kind are sorted, which changes nothing
    of their meaning and makes two lists comparable.
    """
    found: list[list[str]] = []
    former = None
    for rule in _mappings(_mapping(_mapping(spec.get("linux")).get("resources")).get("devices")):
        allow = bool(rule.get("allow"))
        if allow != former:
            found.append([])
        former = allow
        text = "{} {}:{} {} {}".format(
            rule.get("type") or "a",
            _number(rule.get("major")),
            _number(rule.get("minor")),
            rule.get("access") or "rwm",
            "allow" if allow else "deny",
        )
        found[-1].append(text)
    return [text for run_of_one_kind in found for text in sorted(set(run_of_one_kind), key=_order)]


def _number(value: Any) -> str:
    """Absent, and -1 in old specifications, stand for all."""
    return "*" if value is None or value == -1 else str(value)


def _order(text: str) -> list[tuple[int, str]]:
    """``*`` before 2 before 10."""
    parts = re.split("([0-9]+|[*])", text)
    return [
        (-1 if part == "*" else int(part), "") if number % 2 else (-2, part)
        for number, part in enumerate(parts)
    ]


# -- what systemd keeps ------------------------------------------------------------------


def of_scopes(scopes: Sequence[str], deadline_s: float) -> dict[str, list[str]]:
    """What systemd lets the processes of each scope open, as ``systemd DeviceAllow=…``.

    {} without systemd; a scope it does not know is left out.
    """
    if not scopes:
        return {}
    properties = "--property=Id,LoadState,DevicePolicy,DeviceAllow"
    try:
        done = run(["systemctl", "show", properties, *scopes], deadline_s)
    except CommandMissingError:
        return {}
    return parse_scopes(done.stdout)


def parse_scopes(text: str) -> dict[str, list[str]]:
    """``systemctl show`` of several scopes; each device is a ``DeviceAllow=`` line of its own."""
    found = {}
    for block in re.split(r"\n\s*\n", text.strip()):
        lines = block.splitlines()
        told = dict(line.partition("=")[::2] for line in lines)
        if told.get("LoadState") != "loaded":
            continue
        allowed = {f"systemd {line}" for line in lines if re.match("DeviceAllow=.", line)}
        policy = f"systemd DevicePolicy={told.get('DevicePolicy', '')}"
        found[told.get("Id", "")] = [policy, *sorted(allowed, key=_order)]
    return found


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _mappings(value: Any) -> list[Mapping[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []
