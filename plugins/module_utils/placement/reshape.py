# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""MIG devices that do not exist yet: made on idle GPUs by the planner that changes layouts. Pure.

A GPU is idle when nobody holds it and no MIG device of it is promised. What is free on it may go,
as little of it as possible.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from ..mig import fitting, planner, render, tables
from ..mig.model import GpuLayout, MigError, Plan, Step, Wanted
from . import filters, slots
from .model import Gpu, Host, Request, Reshape


def best(
    host: Host, request: Request, made: Sequence[Reshape], taken: Collection[str]
) -> Reshape | None:
    """The GPU and the plan with one more device of the profile, at the least cost.

    ``made`` are plans that are part of the answer already, ``taken`` the devices that are.
    """
    found = []
    for gpu in host.gpus:
        layout = gpu.layout
        if layout is None or _obstacle(gpu, request, taken):
            continue
        former = next((one for one in made if one.gpu.index == gpu.index), None)
        many = 1 + (len(new_devices(former)) if former else 0)
        plan = _plan(layout, str(request.profile), many)
        if plan is not None:
            found.append((_cost(plan), gpu.index, Reshape(gpu, str(request.profile), plan)))
    return min(found, key=lambda one: one[:2])[2] if found else None


def new_devices(one: Reshape) -> list[Step]:
    """The MIG devices of the wanted profile that a plan makes."""
    return [
        step
        for step in one.plan.steps
        if step.verb == "create_compute"
        and step.instance is not None
        and step.instance.profile == one.profile
    ]


def room_beside(gpu: Gpu, kept: Sequence[str | None]) -> float:
    """What could still be made on a GPU if only those devices and the busy ones stayed."""
    if gpu.layout is None:
        return 0.0
    geometry = tables.geometry_of(gpu.layout)
    if geometry is None:
        return 0.0
    busy = {part.uuid for part in gpu.parts if part.tenants or part.foreign} | set(kept)
    stays = [
        (one.profile, one.placement)
        for one in gpu.layout.instances
        if any(inside.uuid in busy for inside in one.compute)
    ]
    return slots.Room(geometry).value(slots.layout_of(stays))


def obstacle(host: Host, request: Request) -> str:
    """Why no GPU can be given another layout for this."""
    return filters.together(
        (f"GPU{gpu.index}", _obstacle(gpu, request, ()) or "has no room for it")
        for gpu in host.gpus
    )


def _obstacle(gpu: Gpu, request: Request, taken: Collection[str]) -> str | None:
    layout = gpu.layout
    if layout is None:
        return "has no MIG that is known"
    if not gpu.mig:
        return "has MIG off: switching it on is for its owner (steadygpu mig plan)"
    whole = replace(gpu.device, foreign=None, tenants=())
    plain = replace(request, profile=None, memory_mib=None)
    against = filters.reason_against(whole, plain)
    if against:
        return against
    if gpu.device.foreign:
        return gpu.device.foreign
    busy = [part.name for part in gpu.parts if part.tenants or part.name in taken]
    if busy:
        return f"is not idle: {', '.join(busy)} in use"
    geometry = tables.geometry_of(layout)
    if geometry is None or geometry.profile(str(request.profile)) is None:
        return f"has no profile {request.profile}"
    return None


def _plan(layout: GpuLayout, profile: str, more: int) -> Plan | None:
    """The plan that keeps the most of what is there; None where the profile does not fit."""
    geometry = tables.geometry_of(layout)
    if geometry is None:
        return None
    present = dict(render.device_counts(layout.instances))
    for kept in _fewer(present):
        wanted = dict(kept)
        wanted[profile] = wanted.get(profile, 0) + more
        try:
            return planner.plan(layout, Wanted(enabled=True, devices=wanted), geometry)
        except MigError:
            continue
    return None


def _fewer(counts: dict[str, int]) -> list[dict[str, int]]:
    """Every part of a layout, the whole first, then with as few devices less as possible."""
    parts: list[dict[str, int]] = [{}]
    for name, many in counts.items():
        parts = [{**part, name: keep} for part in parts for keep in range(many, -1, -1)]
    return sorted(parts, key=lambda part: -sum(part.values()))


def _cost(plan: Plan) -> tuple[int, tuple[int, ...]]:
    """Devices that go, then the room that is left, the most first."""
    gone = sum(step.verb == "destroy_compute" for step in plan.steps)
    geometry = tables.geometry_of(plan.gpu)
    after = [
        (step.instance.profile, step.instance.placement)
        for step in plan.steps
        if step.verb == "create_gpu" and step.instance is not None
    ]
    stays = [(one.profile, one.placement) for one in plan.kept]
    left = fitting.capacity(geometry, slots.layout_of([*stays, *after])) if geometry else ()
    # What is left of a GPU that was empty is no gain: the fuller GPU is taken first.
    return gone, left
