# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which MIG devices a request gets: of those there are, or of those that may be made. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from . import filters, reshape, score
from .model import ALL, SPREAD, Decision, Device, Gpu, Host, Request, Reshape


@dataclass(frozen=True)
class Part:
    """A MIG device and the GPU that it is of."""

    device: Device
    gpu: Gpu


def wanted(host: Host, request: Request) -> bool:
    """Does the request ask for MIG devices, by profile or by name?"""
    if request.profile is not None:
        return True
    named = [
        part
        for gpu in host.gpus
        for part in gpu.parts
        if any(filters.is_named(name, part, gpu.device) for name in request.devices)
    ]
    return bool(named) and not request.whole


def instead(host: Host, request: Request) -> bool:
    """May MIG devices stand in where no whole GPU is to be had?"""
    return not request.whole and not request.devices and any(gpu.parts for gpu in host.gpus)


def place(host: Host, request: Request) -> Decision:
    """The best MIG devices; those that exist before those that would have to be made."""
    free, excluded = _asked(host, request)
    size = len(free) if request.count == ALL else request.count
    if size > 1 and request.tier not in (None, "sys"):
        note = f"MIG devices cannot reach each other: link={request.tier} is not to be had"
        if request.strict:
            return Decision(reason=note, excluded=excluded)
        notes: tuple[str, ...] = (note,)
    else:
        notes = ()
    best: list[Part] = []
    for pool in _pools(free, request):
        chosen = _chosen(pool, size, request)
        if chosen and (not best or _aligned(chosen, request) > _aligned(best, request)):
            best = chosen
    if best:
        devices = tuple(part.device for part in best)
        return Decision(
            chosen=devices,
            score=score.terms(devices, request)["score"],
            notes=notes,
            excluded=excluded,
        )
    return _made(host, request, free, size, excluded)


def _made(
    host: Host,
    request: Request,
    free: Sequence[Part],
    size: int,
    excluded: tuple[tuple[Device, str], ...],
) -> Decision:
    """What exists, and the rest made on idle GPUs."""
    if request.profile is None or request.devices or not size or request.numa == "single":
        return Decision(reason=_refusal(host, request, free, size, excluded), excluded=excluded)
    chosen = _chosen(free, min(size, len(free)), request)
    made: list[Reshape] = []
    taken = {part.device.name for part in chosen}
    while len(chosen) + len(made) < size:
        one = reshape.best(host, request, made, taken)
        if one is None:
            reason = _refusal(host, request, free, size, excluded)
            return Decision(reason=reason, excluded=excluded)
        made = [*(former for former in made if former.gpu.index != one.gpu.index), one]
        if sum(len(reshape.new_devices(former)) for former in made) + len(chosen) >= size:
            break
    devices = tuple(part.device for part in chosen)
    notes = [
        f"{len(reshape.new_devices(one))} × {one.profile} are made on GPU{one.gpu.index}, which is"
        f" idle: {'; '.join(step.text for step in one.plan.steps)}"
        for one in made
    ]
    return Decision(
        chosen=devices,
        score=score.terms(devices, request)["score"] if devices else None,
        notes=tuple(notes),
        reshapes=tuple(made),
        excluded=excluded,
    )


def _asked(host: Host, request: Request) -> tuple[list[Part], tuple[tuple[Device, str], ...]]:
    free, excluded = [], []
    for gpu in host.gpus:
        for part in gpu.parts:
            named = not request.devices or any(
                filters.is_named(name, part, gpu.device) for name in request.devices
            )
            reason = (
                filters.reason_against(part, request)
                if named
                else "is not one of those that the claim names"
            )
            if reason:
                excluded.append((part, reason))
            else:
                free.append(Part(part, gpu))
    return free, tuple(excluded)


def _pools(free: Sequence[Part], request: Request) -> Iterator[Sequence[Part]]:
    nodes = sorted({part.device.numa_node for part in free} - {None}, key=str)
    if request.numa != "single" or not nodes:
        yield free
        return
    for node in nodes:
        yield [part for part in free if part.device.numa_node in (None, node)]


def _chosen(pool: Sequence[Part], size: int, request: Request) -> list[Part]:
    """One after the other, as each changes what its GPU has left; [] when there are too few."""
    if len(pool) < size:
        return []
    chosen: list[Part] = []
    while len(chosen) < size:
        left = [part for part in pool if part not in chosen]
        chosen.append(max(left, key=lambda part: _key(part, chosen, request)))
    return sorted(chosen, key=_place)


def _key(part: Part, chosen: Sequence[Part], request: Request) -> tuple[object, ...]:
    """Sound, of a fitting size, where fewest others would still fit, low in number."""
    device = part.device
    nodes = [one.device.numa_node for one in chosen]
    beside = sum(one.gpu.index == part.gpu.index for one in chosen)
    idle = sum(not one.tenants and not one.foreign for one in part.gpu.parts if one is not device)
    room = idle - beside
    return (
        -len(device.doubts),
        score.steps(device, request),
        device.numa_node in nodes if nodes else True,
        -(device.total_mib or 0),
        room if request.policy == SPREAD else -room,
        reshape.room_beside(part.gpu, [device.uuid, *(one.device.uuid for one in chosen)]),
        *(-number for number in _place(part)),
    )


def _place(part: Part) -> tuple[int, int]:
    return part.gpu.index, part.gpu.parts.index(part.device)


def _aligned(chosen: Sequence[Part], request: Request) -> tuple[object, ...]:
    devices = [part.device for part in chosen]
    return (
        -sum(len(device.doubts) for device in devices),
        score.terms(devices, request)["score"],
        [(-gpu, -number) for gpu, number in map(_place, chosen)],
    )


def _refusal(
    host: Host,
    request: Request,
    free: Sequence[Part],
    size: int,
    excluded: Sequence[tuple[Device, str]],
) -> str:
    kind = request.profile or "MIG device"
    total = sum(len(gpu.parts) for gpu in host.gpus)
    have = f"{len(free)} of the {total} MIG devices will do now" if total else "there is none"
    reasons = filters.together((device.name, why) for device, why in excluded)
    said = f"wanted {max(size, 1)} × {kind}, {have}" + (f": {reasons}" if reasons else "")
    if request.profile is None or request.devices:
        return said
    return f"{said}. None can be made: {reshape.obstacle(host, request)}"
