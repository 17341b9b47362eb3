# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One slice over all GPU work and one below it for each kind, sized for a host. Pure.

What the system keeps for itself is what the slice on top may not have: no slice of systemd's own
is touched. The shares are starting points of ours, not measured on anybody's work.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .model import SliceError
from .quantities import (
    QuantityError,
    format_indices,
    format_size,
    parse_indices,
    parse_percent,
    parse_size,
)

_MIB = 1 << 20
_NAME = re.compile(r"[a-z0-9_]+")
_MEMORY = ("MemoryMin", "MemoryLow", "MemoryHigh", "MemoryMax", "MemorySwapMax")
_PROTECTIONS = ("MemoryMin", "MemoryLow")

# The percentages of Memory* and TasksMax are of what the slice on top has.
PRESETS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    # Long jobs whose data loaders make many threads.
    "training": (
        "GPU training jobs",
        {"CPUWeight": 100, "IOWeight": 100, "MemoryMax": "100%", "TasksMax": "60%"},
    ),
    # Somebody waits for the answer: first at the CPU and the disk, and memory kept for it.
    "inference": (
        "GPU inference services",
        {
            "CPUWeight": 400,
            "IOWeight": 400,
            "MemoryLow": "20%",
            "MemoryMax": "50%",
            "MemorySwapMax": 0,
            "TasksMax": "40%",
        },
    ),
    # What can wait: it gets what is left, and is throttled before it is killed.
    "batch": (
        "GPU batch jobs",
        {
            "CPUWeight": 25,
            "IOWeight": 25,
            "MemoryHigh": "40%",
            "MemoryMax": "50%",
            "TasksMax": "30%",
        },
    ),
}
_RESERVE: Mapping[str, Any] = {"memory": "10%", "cores": 0, "tasks": "10%"}


@dataclass(frozen=True)
class Host:
    """What there is to share out. ``cores`` are the CPUs of each core, with the node it is on."""

    memory_bytes: int
    tasks_max: int
    cores: tuple[tuple[int, tuple[int, ...]], ...]


def expand(tree: Mapping[str, Any], host: Host) -> dict[str, dict[str, Any]]:
    """The slices of a tree: unit name to ``description`` and ``properties``, the top first.

    ``tree`` has ``name`` (gpu), ``reserve`` (``memory``, ``cores``, ``tasks``), ``properties`` of
    the top, and ``members``: name to ``preset``, ``description`` and ``properties``, which count
    before those of the preset. Raises SliceError for what cannot be shared out like that.
    """
    _refuse_unknown("the tree", tree, ("name", "reserve", "properties", "members"))
    name = str(tree.get("name") or "gpu")
    reserve = {**_RESERVE, **(tree.get("reserve") or {})}
    _refuse_unknown("reserve", reserve, _RESERVE)
    members = tree.get("members")
    if members is None:
        members = {preset: {} for preset in PRESETS}
    for word in (name, *members):
        if not _NAME.fullmatch(str(word)):
            raise SliceError(
                f"{word!r} cannot name a slice of a tree: wanted small letters, digits and _, "
                "since a dash nests"
            )
    memory = _rest(host.memory_bytes, reserve["memory"], "reserve.memory") // _MIB * _MIB
    tasks = _rest(host.tasks_max, reserve["tasks"], "reserve.tasks")
    children = {
        f"{name}-{member}.slice": _member(str(member), said or {}, memory, tasks)
        for member, said in members.items()
    }
    top = {"MemoryMax": format_size(memory), "TasksMax": tasks}
    cpus = _cpus(host, reserve["cores"])
    if cpus:
        top["AllowedCPUs"] = cpus
    # Nothing below is protected beyond what protects the slice above it.
    for key in _PROTECTIONS:
        kept = sum(_bytes(child["properties"].get(key, 0), key) for child in children.values())
        if kept > memory:
            raise SliceError(
                f"the members of {name}.slice ask for {key} of {format_size(kept)} together: "
                f"wanted at most {format_size(memory)}, which is what the reserve leaves"
            )
        if kept:
            top[key] = format_size(kept)
    properties = {**top, **_sized(tree.get("properties") or {}, host.memory_bytes, host.tasks_max)}
    description = "All GPU work of this host"
    return {f"{name}.slice": {"description": description, "properties": properties}, **children}


def merge(
    slices: Mapping[str, Mapping[str, Any]], more: Mapping[str, Any]
) -> dict[str, dict[str, Any]]:
    """Slices, and ``more`` of them; one of the same name adds to its properties."""
    merged = {name: dict(said) for name, said in slices.items()}
    for name, said in more.items():
        _refuse_unknown(name, said or {}, ("description", "properties"))
        there = merged.setdefault(name, {})
        there.update({key: value for key, value in (said or {}).items() if key != "properties"})
        there["properties"] = {
            **there.get("properties", {}),
            **((said or {}).get("properties") or {}),
        }
    return merged


def _member(member: str, said: Mapping[str, Any], memory: int, tasks: int) -> dict[str, Any]:
    _refuse_unknown(f"the member {member}", said, ("preset", "description", "properties"))
    preset = said.get("preset") or (member if member in PRESETS else None)
    if preset is not None and preset not in PRESETS:
        raise SliceError(f"preset {preset!r} of {member}: wanted one of {', '.join(PRESETS)}")
    description, properties = PRESETS[preset] if preset else (f"GPU work: {member}", {})
    wanted = {**properties, **(said.get("properties") or {})}
    # Null takes a property of the preset away.
    kept = {key: value for key, value in wanted.items() if value is not None}
    return {
        "description": said.get("description") or description,
        "properties": _sized(kept, memory, tasks),
    }


def _sized(properties: Mapping[str, Any], memory: int, tasks: int) -> dict[str, Any]:
    """Percentages as amounts: systemd would take them of the whole host."""
    sized = dict(properties)
    for key, value in properties.items():
        if not str(value).endswith("%"):
            continue
        if key in _MEMORY and key != "MemorySwapMax":
            sized[key] = format_size(_part(memory, value, key) // _MIB * _MIB)
        elif key == "TasksMax":
            sized[key] = max(1, _part(tasks, value, key))
    return sized


def _rest(whole: int, kept: Any, name: str) -> int:
    text = str(kept)
    amount = _part(whole, text, name) if text.endswith("%") else _bytes(text, name)
    if amount >= whole:
        raise SliceError(f"{name} is {kept}, and the host has {whole}: wanted less than all of it")
    return whole - amount


def _part(whole: int, text: Any, name: str) -> int:
    try:
        percent = parse_percent(str(text))
    except QuantityError as error:
        raise SliceError(f"{name}={text}: wanted {error}") from None
    if percent > 100:
        raise SliceError(f"{name}={text}: wanted at most 100%")
    return int(whole * percent / 100)


def _bytes(text: Any, name: str) -> int:
    try:
        return parse_size(str(text))
    except QuantityError as error:
        raise SliceError(f"{name}={text}: wanted a percentage, or {error}") from None


def _cpus(host: Host, kept: Any) -> str | None:
    """The CPUs that are left when ``kept`` whole cores are taken, evenly from all nodes.

    Or the reserved CPUs by number, as ``0-1,64-65``. None: all of them.
    """
    everything = [cpu for _node, cpus in host.cores for cpu in cpus]
    if isinstance(kept, str) and not kept.isdigit():
        try:
            reserved = list(parse_indices(kept))
        except QuantityError as error:
            raise SliceError(
                f"reserve.cores={kept}: wanted a number of cores, or {error}"
            ) from None
    else:
        reserved = [cpu for cpus in _evenly(host.cores, int(kept)) for cpu in cpus]
    left = sorted(set(everything) - set(reserved))
    if not reserved:
        return None
    if not left or len(reserved) > len(everything):
        raise SliceError(
            f"reserve.cores={kept} leaves no CPU for GPU work: the host has {len(host.cores)} cores"
        )
    return format_indices(left)


def _evenly(cores: Sequence[tuple[int, tuple[int, ...]]], count: int) -> Iterable[tuple[int, ...]]:
    by_node: dict[int, list[tuple[int, ...]]] = {}
    for node, cpus in cores:
        by_node.setdefault(node, []).append(cpus)
    ranked = [
        (place, node, cpus)
        for node, members in by_node.items()
        for place, cpus in enumerate(sorted(members))
    ]
    return [cpus for _place, _node, cpus in sorted(ranked)[:count]]


def _refuse_unknown(what: str, said: Mapping[str, Any], known: Iterable[str]) -> None:
    unknown = sorted(set(said) - set(known))
    if unknown:
        raise SliceError(
            "{} has no {}: wanted {}".format(what, ", ".join(unknown), ", ".join(known))
        )
