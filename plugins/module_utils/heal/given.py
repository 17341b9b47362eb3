# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which GPUs a container was given, and what systemd would let it open. Pure.

The first must not be guessed from the container's own ``/dev``: a container may make nodes there
(Docker grants CAP_MKNOD), and would be handed GPUs of others. What the engine ordered decides.
"""

from __future__ import annotations

import fnmatch
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .model import DeviceNode

NVIDIA_MAJOR = 195
# Beside the GPUs' own: what CUDA, graphics and the tools open.
_CONTROLS = {"/dev/nvidiactl": 255, "/dev/nvidia-modeset": 254}
_UVM = {"/dev/nvidia-uvm": 0, "/dev/nvidia-uvm-tools": 1}
_NO_GPU = ("", "void", "none")
_HOOKS = ("nvidia-container-runtime-hook", "nvidia-container-toolkit")
# Higher than any minor that a driver gives (the kernel has 20 bits for it).
ANY_MINOR = (1 << 20) - 1
_MIG_INDEX = re.compile(r"(\d+):(\d+)")

# What DevicePolicy=closed and auto allow on their own (systemd.resource-control, DevicePolicy=).
_STANDARD = {(1, 3), (1, 5), (1, 7), (1, 8), (1, 9), (5, 0), (5, 2)}
_PTS_MAJORS = range(136, 144)


class UnclearError(ValueError):
    """What the container was given cannot be told; says why."""


def asked(environment: Sequence[str]) -> str:
    """The value of NVIDIA_VISIBLE_DEVICES, "" without it; the last one counts."""
    start = "NVIDIA_VISIBLE_DEVICES="
    values = [str(one)[len(start) :] for one in environment if str(one).startswith(start)]
    return values[-1].strip() if values else ""


def of_request(
    value: str,
    gpu: Mapping[str, Any],
    majors: Mapping[str, int],
    capabilities: Mapping[tuple[int, int, int | None], int],
) -> frozenset[DeviceNode]:
    """The nodes of the GPUs that ``value`` names, with the control nodes.

    ``value`` is what the hook was asked: ``all``, indices, UUIDs, ``0:1``. ``gpu`` is that section
    of the facts. ``capabilities`` maps (GPU minor, GPU instance, compute instance or None) to the
    number of the capability node. Raises UnclearError for a name that is not known here.
    """
    if value in _NO_GPU:
        return frozenset()
    devices = [one for one in gpu.get("devices") or [] if one.get("minor") is not None]
    nodes: set[DeviceNode] = set()
    for name in value.split(","):
        nodes.update(_named(name.strip(), devices, majors, capabilities))
    for path, minor in _CONTROLS.items():
        nodes.add(DeviceNode(path, "c", NVIDIA_MAJOR, minor))
    if "nvidia-uvm" in majors:
        nodes.update(DeviceNode(path, "c", majors["nvidia-uvm"], n) for path, n in _UVM.items())
    return frozenset(nodes)


def _named(
    name: str,
    devices: Sequence[Mapping[str, Any]],
    majors: Mapping[str, int],
    capabilities: Mapping[tuple[int, int, int | None], int],
) -> Iterable[DeviceNode]:
    if name == "all":
        for one in devices:
            yield _node(one)
            for part in _mig_devices(one):
                yield from _mig_nodes(one, part, majors, capabilities)
        return
    for one in devices:
        if name in (str(one.get("index")), one.get("uuid"), one.get("pci_address")):
            yield _node(one)
            return
        place = _MIG_INDEX.fullmatch(name)
        for number, part in enumerate(_mig_devices(one)):
            by_index = place and place.groups() == (str(one.get("index")), str(number))
            if by_index or (part.get("uuid") and part.get("uuid") == name):
                yield _node(one)
                yield from _mig_nodes(one, part, majors, capabilities)
                return
    raise UnclearError(f"it asked for {name!r}, which is no GPU of this host now")


def _node(device: Mapping[str, Any]) -> DeviceNode:
    minor = int(device["minor"])
    return DeviceNode(f"/dev/nvidia{minor}", "c", NVIDIA_MAJOR, minor)


def _mig_devices(device: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    mig = device.get("mig") or {}
    return mig.get("devices") or []


def _mig_nodes(
    device: Mapping[str, Any],
    part: Mapping[str, Any],
    majors: Mapping[str, int],
    capabilities: Mapping[tuple[int, int, int | None], int],
) -> Iterable[DeviceNode]:
    instance, compute = part.get("gpu_instance"), part.get("compute_instance")
    major = majors.get("nvidia-caps")
    if instance is None or compute is None or major is None:
        return
    for key in ((device["minor"], instance, None), (device["minor"], instance, compute)):
        number = capabilities.get(key)
        if number is not None:
            yield DeviceNode(f"/dev/nvidia-caps/nvidia-cap{number}", "c", major, number)


def has_hook(spec: Mapping[str, Any]) -> bool:
    """Does NVIDIA's hook run for this OCI specification?"""
    hooks = spec.get("hooks") or {}
    paths = [str(one.get("path") or "") for stage in hooks.values() for one in stage or []]
    return any(os.path.basename(path) in _HOOKS for path in paths)


def host_path(node: DeviceNode) -> str:
    """Where the host has this device; a container may have it under another name."""
    if node.major == NVIDIA_MAJOR and node.minor < min(_CONTROLS.values()):
        return f"/dev/nvidia{node.minor}"
    return node.path


def ordered(spec: Mapping[str, Any]) -> frozenset[DeviceNode]:
    """The NVIDIA nodes in an OCI specification: from ``--device`` or CDI, never lost by itself.

    Those that it may not both read and write are not meant to be opened so (``--device …:r``).
    """
    linux = spec.get("linux") or {}
    opened = {(node.kind, node.major, node.minor) for node in ruled(spec)}
    every = {(node.kind, node.major) for node in ruled(spec) if node.minor == ANY_MINOR}
    found = set()
    for one in linux.get("devices") or []:
        path = str(one.get("path") or "")
        if path.startswith("/dev/nvidia") and one.get("major") is not None:
            node = DeviceNode(path, "c", int(one["major"]), int(one.get("minor") or 0))
            if (node.kind, node.major, node.minor) in opened or (node.kind, node.major) in every:
                found.add(node)
    return frozenset(found)


def ruled(spec: Mapping[str, Any]) -> frozenset[DeviceNode]:
    """What the rules of an OCI specification let it read and write, whatever is in its ``/dev``.

    The nodes are named by number, as in ``/dev/char/195:0``; one that stands for all minors of a
    major has :data:`ANY_MINOR`.
    """
    resources = (spec.get("linux") or {}).get("resources") or {}
    found = set()
    for rule in resources.get("devices") or []:
        kind, major, minor = rule.get("type"), rule.get("major"), rule.get("minor")
        both = {"r", "w"} <= set(rule.get("access") or "rwm")
        if rule.get("allow") and both and kind in ("c", "b") and major not in (None, -1):
            number = ANY_MINOR if minor in (None, -1) else int(minor)
            found.add(numbered(str(kind), int(major), number))
    return frozenset(found)


def numbered(kind: str, major: int, minor: int) -> DeviceNode:
    """A device by its number alone, by the path that systemd takes for it."""
    return DeviceNode(
        f"/dev/{'char' if kind == 'c' else 'block'}/{major}:{minor}", kind, major, minor
    )


def systemd_allows(lines: Sequence[str], node: DeviceNode, majors: Mapping[str, int]) -> bool:
    """Would systemd let a unit with these lines read and write ``node``?

    ``lines`` are ``DevicePolicy=…`` and ``DeviceAllow=PATTERN ACCESS``, as systemctl shows them;
    ``majors`` are the character devices' names of /proc/devices.
    """
    policy = "auto"
    entries = []
    for line in lines:
        key, _equals, value = line.partition("=")
        if key == "DevicePolicy" and value:
            policy = value
        elif key == "DeviceAllow" and value:
            entries.append(value.split())
    if policy == "auto" and not entries:
        return True
    standard = (node.major, node.minor) in _STANDARD or node.major in _PTS_MAJORS
    if policy in ("auto", "closed") and node.kind == "c" and standard:
        return True
    return any(_covers(entry, node, majors) for entry in entries)


def _covers(entry: Sequence[str], node: DeviceNode, majors: Mapping[str, int]) -> bool:
    pattern, access = entry[0], entry[1] if len(entry) > 1 else "rwm"
    if not {"r", "w"} <= set(access):
        return False
    group, dash, name = pattern.partition("-")
    if dash and group in ("char", "block"):
        if (group == "char") != (node.kind == "c"):
            return False
        if name == "*":
            return True
        if name.isdecimal():
            return int(name) == node.major
        names = [known for known, major in majors.items() if major == node.major]
        return any(fnmatch.fnmatchcase(known, name) for known in names)
    number = re.fullmatch(r"/dev/(char|block)/(\d+):(\d+)", pattern)
    if number:
        return (number.group(1) == "char") == (node.kind == "c") and (
            int(number.group(2)),
            int(number.group(3)),
        ) == (node.major, node.minor)
    return pattern == node.path
