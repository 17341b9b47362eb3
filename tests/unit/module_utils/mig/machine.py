# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""GPUs for planning, and a GPU that carries plans out and refuses what hardware refuses."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ansible_collections.steadygpu.host.plugins.module_utils.mig.model import (
    ComputeInstance,
    Geometry,
    GpuInstance,
    GpuLayout,
    Placement,
    Step,
)
from ansible_collections.steadygpu.host.plugins.module_utils.mig.tables import geometry_for

MODELS = {
    "A100": ("NVIDIA A100-SXM4-40GB", "0x20B010DE"),
    "A100-80": ("NVIDIA A100-SXM4-80GB", "0x20B210DE"),
    "A30": ("NVIDIA A30", "0x20B710DE"),
    "H100": ("NVIDIA H100 80GB HBM3", "0x233010DE"),
    "RTX": ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "0x2BB510DE"),
    "T4": ("Tesla T4", "0x1EB810DE"),
    "future": ("NVIDIA X900", "0x3FFF10DE"),
}


def table(model: str) -> Geometry:
    """What our tables say of a model; there must be one."""
    geometry = geometry_for(*MODELS[model])
    assert geometry is not None
    return geometry


def gpu(
    model: str = "A100",
    index: int = 0,
    instances: Iterable[GpuInstance] = (),
    on: bool = True,
    **more: bool,
) -> GpuLayout:
    """A GPU; ``supported`` and ``pending`` may be given as well."""
    name, device_id = MODELS[model]
    return GpuLayout(
        index=index,
        uuid=f"GPU-{index:08d}-0000-0000-0000-000000000000",
        pci_address=f"0000:{7 + index:02x}:00.0",
        name=name,
        device_id=device_id,
        supported=more.get("supported", model != "T4"),
        current=on,
        pending=more.get("pending", on),
        instances=tuple(instances),
        geometry=geometry_for(name, device_id) if on else None,
    )


def instance(text: str, number: int, *sizes: int) -> GpuInstance:
    """``3g.20gb@4:4`` with one compute instance over all slices, or with ``sizes``."""
    profile, _at, place = text.partition("@")
    start, _colon, size = place.partition(":")
    inside = sizes or (int(profile.partition("g")[0]),)
    return GpuInstance(
        profile,
        Placement(int(start), int(size)),
        tuple(
            ComputeInstance(slices, place, f"MIG-{number}-{place}")
            for place, slices in enumerate(inside)
        ),
        number,
    )


class Hardware:
    """One GPU in memory. Every step is checked as a driver would check it."""

    def __init__(self, start: GpuLayout, geometry: Geometry) -> None:
        self.gpu = start
        self.geometry = geometry
        self.next = 1 + max((one.id or 0 for one in start.instances), default=0)

    def run(self, steps: Iterable[Step]) -> GpuLayout:
        """Carry all steps out; the GPU as it is then."""
        for step in steps:
            assert step.gpu_uuid == self.gpu.uuid
            getattr(self, step.verb)(step)
        return self.gpu

    def enable(self, _step: Step) -> None:
        """Switch MIG on."""
        self.gpu = replace(self.gpu, current=True, pending=True)

    def disable(self, _step: Step) -> None:
        """Switch MIG off; nothing may be left."""
        assert not self.gpu.instances, "MIG is switched off around instances"
        self.gpu = replace(self.gpu, current=False, pending=False)

    def destroy_compute(self, step: Step) -> None:
        """Take a compute instance that is there away."""
        assert step.compute is not None
        owner = self._owner(step)
        assert step.compute in owner.compute, f"there is no {step.compute}"
        left = tuple(one for one in owner.compute if one != step.compute)
        self._replace(owner, replace(owner, compute=left))

    def destroy_gpu(self, step: Step) -> None:
        """Take an empty GPU instance away."""
        owner = self._owner(step)
        assert not owner.compute, "a GPU instance goes before its compute instances"
        self._replace(owner, None)

    def create_gpu(self, step: Step) -> None:
        """Make a GPU instance where there is room."""
        assert step.instance is not None
        assert self.gpu.current, "an instance is made while MIG is off"
        new = replace(step.instance, compute=(), id=self.next)
        self.next += 1
        problem = cannot_hold(self.geometry, (*self.gpu.instances, new))
        assert problem is None, problem
        self.gpu = replace(self.gpu, instances=(*self.gpu.instances, new))

    def create_compute(self, step: Step) -> None:
        """Make a compute instance where there is room."""
        assert step.compute is not None
        owner = self._owner(step)
        profile = self.geometry.profile(owner.profile)
        assert profile is not None
        used = sum(one.slices for one in owner.compute)
        assert used + step.compute.slices <= profile.slices, "too many compute slices"
        number = next(n for n in range(8) if n not in [one.id for one in owner.compute])
        new = replace(step.compute, id=number, uuid=f"MIG-{owner.id}-{number}-new")
        self._replace(owner, replace(owner, compute=(*owner.compute, new)))

    def _owner(self, step: Step) -> GpuInstance:
        wanted = step.instance
        assert wanted is not None
        return next(
            one
            for one in self.gpu.instances
            if (one.id == wanted.id if wanted.id is not None else one.placement == wanted.placement)
        )

    def _replace(self, old: GpuInstance, new: GpuInstance | None) -> None:
        left = tuple(one for one in self.gpu.instances if one != old)
        self.gpu = replace(self.gpu, instances=(*left, new) if new else left)


def cannot_hold(geometry: Geometry, instances: Iterable[GpuInstance]) -> str | None:
    """Why a GPU cannot have these GPU instances at once, slice by slice; None when it can."""
    listed = list(instances)
    owners: dict[int, GpuInstance] = {}
    for one in listed:
        profile = geometry.profile(one.profile)
        if profile is None or one.placement not in profile.placements:
            return f"no place for {one}"
        if sum(other.profile == one.profile for other in listed) > profile.most:
            return f"too many {one.profile}"
        for number in range(one.placement.start, one.placement.start + one.placement.size):
            if number in owners:
                return f"slice {number}: {owners[number]} and {one}"
            owners[number] = one
    profiles = [profile for one in listed for profile in [geometry.profile(one.profile)] if profile]
    if sum(profile.slices for profile in profiles) > geometry.compute_slices:
        return "too many compute slices"
    whole = geometry.profiles[-1].media
    for kind, total in enumerate(whole):
        if sum(profile.media[kind] for profile in profiles) > total:
            return "too few media engines"
    return None
