# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The plan for one GPU: the steps from the layout it has to the one it is to have. No I/O.

Steps come in an order in which no two instances ever want the same slice: what goes is
destroyed first, then the mode is switched, then what is missing is made. What may stay is not
touched; ``choice`` says what that is.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from . import choice, names, render, tables
from .choice import Slot
from .model import (
    ComputeInstance,
    Geometry,
    GpuInstance,
    GpuLayout,
    MigError,
    Plan,
    Step,
    Wanted,
)

_EMPTY = "MIG is on without an instance: no program can use this GPU"


def plan(
    gpu: GpuLayout,
    wanted: Wanted,
    geometry: Geometry | None = None,
    protected: Collection[int] = (),
) -> Plan:
    """The steps that give ``gpu`` the layout ``wanted``.

    ``geometry`` is what the GPU offers, by default what the driver or our tables say.
    ``protected`` are the numbers of GPU instances in use: they and their compute instances stay,
    and MIG stays on. The driver places compute instances inside a GPU instance by itself.

    Raises MigError, naming the GPU and the reason, when the layout cannot be had.
    """
    geometry = geometry or tables.geometry_of(gpu)
    try:
        if not wanted.enabled:
            return _off(gpu, wanted, protected)
        return _on(gpu, wanted, geometry, protected)
    except MigError as error:
        raise MigError(f"GPU {gpu.index} ({gpu.name}): {error}") from error


def restore(
    gpu: GpuLayout, instances: Collection[GpuInstance], protected: Collection[int] = ()
) -> Plan:
    """The steps that give ``gpu`` exactly ``instances`` again, each at the place it had.

    For undoing a change and for the boot: the UUID of a MIG device follows from its place. MIG
    must be on. Raises MigError when the driver does not offer a place any more, or when a
    protected instance would have to go.
    """
    wanted = Wanted(enabled=True, devices=render.device_counts(instances))
    try:
        if not gpu.current:
            raise MigError("MIG is off; switch it on first, instances are lost with the mode")
        for one in instances:
            profile = gpu.geometry.profile(one.profile) if gpu.geometry else None
            if profile is None or one.placement not in profile.placements:
                raise MigError(f"{render.instance_text(one)} is no place that the driver offers")
        slots = choice.aim(instances, _present(gpu), protected)
    except MigError as error:
        raise MigError(f"GPU {gpu.index} ({gpu.name}): {error}") from error
    enable = [] if gpu.pending else [_mode_step(gpu, "enable")]
    return _with_slots(gpu, wanted, enable, slots)


def verify(gpu: GpuLayout, wanted: Wanted) -> list[str]:
    """What is not as wanted, one line each; [] when all is well. For reading back a change."""
    wrong = []
    mode = "on" if wanted.enabled else "off"
    if wanted.enabled and not gpu.supported:
        return [f"GPU {gpu.index} ({gpu.name}) has no MIG"]
    if gpu.current != wanted.enabled and gpu.pending == wanted.enabled:
        wrong.append(f"GPU {gpu.index}: MIG will be {mode} only after a reset of the GPU")
    elif wanted.enabled not in (gpu.current, gpu.pending):
        wrong.append(f"GPU {gpu.index}: MIG is {'on' if gpu.current else 'off'}, wanted {mode}")
    elif gpu.pending != wanted.enabled:
        wrong.append(f"GPU {gpu.index}: MIG will not be {mode} any more after the next reset")
    if not wanted.enabled or wanted.devices is None:
        return wrong
    have, want = render.device_counts(gpu.instances), _canonical(wanted)
    for name in sorted({*have, *want}):
        if have.get(name, 0) != want.get(name, 0):
            wrong.append(
                f"GPU {gpu.index}: {have.get(name, 0)} × {name}, wanted {want.get(name, 0)}"
            )
    wrong += [
        f"GPU {gpu.index}: {render.instance_text(one)} holds slices and is no MIG device"
        for one in render.in_order(gpu.instances)
        if not one.compute
    ]
    return wrong


def _off(gpu: GpuLayout, wanted: Wanted, protected: Collection[int]) -> Plan:
    present = _present(gpu)
    held = [one for one in present if one.id in protected]
    if held:
        raise MigError(f"MIG cannot be switched off: {render.numbered(held)} in use")
    steps = [step for one in present for step in _destroy(gpu, one)]
    if gpu.current or gpu.pending:
        steps.append(_mode_step(gpu, "disable"))
    return _result(gpu, wanted, steps, (), ())


def _on(
    gpu: GpuLayout, wanted: Wanted, geometry: Geometry | None, protected: Collection[int]
) -> Plan:
    if not gpu.supported:
        raise MigError("this GPU has no MIG")
    present = _present(gpu)
    enable = [] if gpu.current and gpu.pending else [_mode_step(gpu, "enable")]
    if wanted.devices is None or _is_there(present, wanted):
        return _result(gpu, wanted, enable, present, present)
    if geometry is None and not gpu.current:
        note = f"there is no table for {gpu.name}: instances are placed once MIG is on"
        return replace(_result(gpu, wanted, enable, (), ()), provisional=True, notes=(note,))
    if geometry is None:
        raise MigError("what it offers is unknown: the driver did not say and no table has it")

    slots = choice.choose(geometry, wanted.devices, present, protected)
    done = _with_slots(gpu, wanted, enable, slots)
    if gpu.current:
        return done
    note = f"places are those of our table for {geometry.model}, until the driver can be asked"
    return replace(
        done, provisional=gpu.geometry is None and bool(slots), notes=(*done.notes, note)
    )


def _with_slots(gpu: GpuLayout, wanted: Wanted, enable: list[Step], slots: list[Slot]) -> Plan:
    steps = [*_clear(gpu, _present(gpu), slots), *enable, *_build(gpu, slots)]
    kept = tuple(slot.kept for slot in slots if slot.kept)
    return _result(gpu, wanted, steps, kept, tuple(slot.target for slot in slots))


def _present(gpu: GpuLayout) -> tuple[GpuInstance, ...]:
    """The instances there are, by place. While MIG is off there are none."""
    return tuple(render.in_order(gpu.instances)) if gpu.current else ()


def _canonical(wanted: Wanted) -> dict[str, int]:
    """Wanted counts under the plain names, without zeros."""
    counts: dict[str, int] = {}
    for name, count in (wanted.devices or {}).items():
        try:
            compute, profile = names.split(name)
        except ValueError as error:
            raise MigError(str(error)) from error
        plain = profile if compute is None else f"{compute}c.{profile}"
        if count > 0:
            counts[plain] = counts.get(plain, 0) + count
    return counts


def _is_there(present: tuple[GpuInstance, ...], wanted: Wanted) -> bool:
    """Is the layout as wanted? Then it stays, even where we think that it cannot be."""
    return all(one.compute for one in present) and render.device_counts(present) == _canonical(
        wanted
    )


def _clear(gpu: GpuLayout, present: Collection[GpuInstance], slots: list[Slot]) -> list[Step]:
    """Everything that does not stay, compute instances before the GPU instance around them."""
    stays = {slot.former.id: slot.stays for slot in slots if slot.former}
    compute, around = [], []
    for instance in present:
        keep = stays.get(instance.id, ())
        gone = [one for one in instance.compute if one not in keep]
        compute += [_destroy_compute(gpu, instance, one) for one in gone]
        if instance.id not in stays:
            around.append(_destroy_gpu(gpu, instance))
    return compute + around


def _build(gpu: GpuLayout, slots: list[Slot]) -> list[Step]:
    """Everything that is missing, each GPU instance followed by what goes into it."""
    steps = []
    for slot in slots:
        target = slot.target
        where = f"{target.profile} at {render.place_text(target.placement)}"
        if slot.former is None:
            text = f"GPU {gpu.index}: create GPU instance {where}"
            steps.append(Step("create_gpu", gpu.uuid, text, target))
        for size in slot.missing:
            name = names.device_name(target.profile, render.full_slices(target), size)
            text = f"GPU {gpu.index}: create compute instance {name} in {where}"
            steps.append(Step("create_compute", gpu.uuid, text, target, ComputeInstance(size)))
    return steps


def _destroy(gpu: GpuLayout, instance: GpuInstance) -> list[Step]:
    inside = [_destroy_compute(gpu, instance, one) for one in instance.compute]
    return [*inside, _destroy_gpu(gpu, instance)]


def _destroy_compute(gpu: GpuLayout, instance: GpuInstance, one: ComputeInstance) -> Step:
    name = names.device_name(instance.profile, render.full_slices(instance), one.slices)
    text = f"GPU {gpu.index}: destroy compute instance {one.id} ({name}) in {_named(instance)}"
    return Step("destroy_compute", gpu.uuid, text, instance, one)


def _destroy_gpu(gpu: GpuLayout, instance: GpuInstance) -> Step:
    text = f"GPU {gpu.index}: destroy {_named(instance)}"
    return Step("destroy_gpu", gpu.uuid, text, instance)


def _named(instance: GpuInstance) -> str:
    place = render.place_text(instance.placement)
    return f"GPU instance {instance.id} ({instance.profile} at {place})"


def _mode_step(gpu: GpuLayout, verb: str) -> Step:
    return Step(verb, gpu.uuid, f"GPU {gpu.index}: {verb} MIG mode")


def _result(
    gpu: GpuLayout,
    wanted: Wanted,
    steps: list[Step],
    kept: Collection[GpuInstance],
    target: Collection[GpuInstance],
) -> Plan:
    after = replace(
        gpu,
        current=wanted.enabled and gpu.supported,
        pending=wanted.enabled and gpu.supported,
        instances=tuple(target),
    )
    nothing = wanted.enabled and wanted.devices is not None and not _canonical(wanted)
    return Plan(
        gpu=gpu,
        wanted=wanted,
        steps=tuple(steps),
        kept=tuple(kept),
        before=render.layout_text(gpu),
        after=render.layout_text(after),
        notes=(_EMPTY,) if nothing else (),
    )
