# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""CDI specifications: what an engine would find in its spec directories.

The format is the CNCF Container Device Interface (SPEC.md); the directories' order is
their priority, the last one wins.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ..atomic import read_text
from . import cdi_versions, yaml_leaf

DEFAULT_DIRECTORIES = ("/etc/cdi", "/var/run/cdi")

# More than a host with a file for each of its devices has.
_MOST_SPECS = 1000

_VERSION = re.compile(r"\d+\.\d+\.\d+$")
_KIND = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*/[A-Za-z0-9][A-Za-z0-9._-]*$")


@dataclass(frozen=True)
class Spec:
    """One spec file. ``status`` is ``valid`` or ``invalid``; ``reason`` speaks to a person.

    ``devices`` are the names inside the kind: ``0``, ``GPU-…``, ``all``.
    """

    path: str
    status: str
    reason: str | None = None
    cdi_version: str | None = None
    kind: str | None = None
    devices: list[str] = field(default_factory=list)


def read_specs(directories: Sequence[str] = DEFAULT_DIRECTORIES, root: str = "/") -> list[Spec]:
    """Every ``*.json`` and ``*.yaml`` file of the directories, in their order, then by name."""
    specs: list[Spec] = []
    seen = set()
    for directory in directories:
        below = os.path.join(root, directory.lstrip("/"))
        # /var/run is a link to /run on most hosts: the same directory is read once.
        if not os.path.isdir(below) or os.path.realpath(below) in seen:
            continue
        seen.add(os.path.realpath(below))
        for name in sorted(os.listdir(below)):
            if name.endswith((".json", ".yaml", ".yml")) and len(specs) < _MOST_SPECS:
                specs.append(_read(os.path.join(directory, name), os.path.join(below, name)))
    return mark_conflicts(specs)


def _read(path: str, place: str) -> Spec:
    try:
        return parse_spec(path, read_text(place) or "")
    except OSError as error:
        return Spec(path, "invalid", f"cannot be read: {error.strerror or error}")


def parse_spec(path: str, text: str) -> Spec:
    """Judge the text of one spec file; never raises.

    YAML on a host without PyYAML is read by lines: version, kind and device names, and
    ``reason`` then says that the rest was not looked at.
    """
    if path.endswith(".json"):
        try:
            return _judge(path, json.loads(text))
        except ValueError as error:
            return Spec(path, "invalid", f"not JSON: {error}")
    if path.endswith(".yml"):
        return Spec(path, "invalid", "engines read only *.json and *.yaml: rename it")
    if not yaml_leaf.available():
        partial = _judge(path, skim(text))
        note = "read by lines (no PyYAML here): only version, kind and device names"
        return partial if partial.reason else replace(partial, reason=note)
    try:
        return _judge(path, yaml_leaf.load(text))
    except yaml_leaf.YamlError as error:
        return Spec(path, "invalid", f"not YAML: {error}")


def skim(text: str) -> dict[str, Any]:
    """``cdiVersion``, ``kind`` and the device names of block-style YAML, by lines.

    It knows the layout that ``nvidia-ctk`` and the other generators write: keys at the
    margin, one list item a device, ``name`` anywhere among the item's own keys.
    """
    document: dict[str, Any] = {"devices": []}
    section, dash = "", -1
    for line in text.splitlines():
        bare = line.strip()
        if not bare or bare.startswith(("#", "---")):
            continue
        indent = len(line) - len(line.lstrip())
        if indent == 0 and not bare.startswith("- "):
            section, _colon, value = bare.partition(":")
            dash = -1
            if section in ("cdiVersion", "kind"):
                document[section] = _scalar(value)
        elif section == "devices":
            if bare.startswith("- ") and dash in (-1, indent):
                dash, indent, bare = indent, indent + 2, bare[2:].strip()
            if indent == dash + 2 and bare.startswith("name:"):
                document["devices"].append({"name": _scalar(bare[len("name:") :])})
    return document


def _scalar(text: str) -> str:
    value = text.strip()
    if value[:1] in ("'", '"'):
        return value[1:].partition(value[0])[0]
    return value.partition(" #")[0].strip()


def _judge(path: str, document: Any) -> Spec:
    if not isinstance(document, dict):
        return Spec(path, "invalid", "empty, or not an object of keys")
    version, kind = document.get("cdiVersion"), document.get("kind")
    devices = document.get("devices")
    entries = devices if isinstance(devices, list) else []
    names = [str(entry["name"]) for entry in entries if isinstance(entry, dict) and "name" in entry]
    problem = None
    if not isinstance(version, str) or not _VERSION.match(version):
        problem = f"cdiVersion is {version!r}, wanted like 0.7.0"
    elif not isinstance(kind, str) or not _KIND.match(kind):
        problem = f"kind is {kind!r}, wanted like nvidia.com/gpu"
    elif not names:
        problem = "it names no device"
    elif len(set(names)) < len(names):
        twice = sorted({name for name in names if names.count(name) > 1})
        problem = "device names appear twice: {}".format(", ".join(twice))
    return Spec(
        path,
        "invalid" if problem else "valid",
        problem,
        version if isinstance(version, str) else None,
        kind if isinstance(kind, str) else None,
        names,
    )


def mark_conflicts(specs: Sequence[Spec]) -> list[Spec]:
    """Say in ``reason`` which devices another spec of the same directory names as well.

    Engines resolve neither of two such devices, and ``nvidia-ctk cdi list`` shows none of
    them with exit status 0.
    """
    owners: dict[tuple[str, str], list[str]] = {}
    for spec in specs:
        for device in spec.devices:
            key = (os.path.dirname(spec.path), f"{spec.kind}={device}")
            owners.setdefault(key, []).append(spec.path)
    return [_with_conflicts(spec, owners) for spec in specs]


def _with_conflicts(spec: Spec, owners: Mapping[tuple[str, str], list[str]]) -> Spec:
    for (_directory, device), paths in owners.items():
        others = [path for path in paths if path != spec.path]
        if spec.path in paths and others:
            text = "{0} is also in {1}: an engine injects neither; remove one of the two files"
            return replace(spec, reason=text.format(device, ", ".join(others)))
    return spec


def docker_reads(docker_version: str, cdi_version: str) -> bool:
    """Does this Docker read specs of this CDI version? Before 25.0 it reads none."""
    return cdi_versions.reads("docker", docker_version, cdi_version)
