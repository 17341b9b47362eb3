# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A layout kept in a file: what one GPU is to have again, at the same places.

The UUID of a MIG device follows from where it was made, and users write these UUIDs into
their Compose files. So what is undone or brought back at boot is not only as many devices
as before but the same ones. A driver that no longer offers a place gets the counts.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from . import config, planner, render
from .model import (
    ComputeInstance,
    ConfigError,
    GpuInstance,
    GpuLayout,
    MigError,
    Placement,
    Plan,
    Wanted,
)


@dataclass(frozen=True)
class Target:
    """What one GPU is to have: ``wanted``, and the very ``instances`` where they are known."""

    uuid: str
    wanted: Wanted
    instances: tuple[GpuInstance, ...] | None = None


def of_layout(gpu: GpuLayout) -> Target:
    """The layout a GPU has, or will have after a reset, as something to come back to."""
    if not gpu.pending:
        return Target(gpu.uuid, Wanted(False))
    counts = render.device_counts(gpu.instances)
    # The driver numbers instances as they are made, and the UUIDs follow from the numbers.
    in_order = tuple(sorted(gpu.instances, key=lambda one: one.id or 0))
    return Target(gpu.uuid, Wanted(True, counts), in_order if gpu.current else None)


def plan(gpu: GpuLayout, target: Target, protected: Collection[int] = ()) -> Plan:
    """The steps from ``gpu`` to ``target``. Raises MigError when there is no way."""
    ready = gpu.current and gpu.pending
    if target.instances is None or not ready or not _offered(gpu, target.instances):
        return planner.plan(gpu, target.wanted, protected=protected)
    return planner.restore(gpu, target.instances, protected)


def verify(gpu: GpuLayout, target: Target) -> list[str]:
    """What is not as wanted, one line each; [] when all is well. For reading back a change."""
    exactly = target.instances
    if exactly is None or not gpu.current or not _offered(gpu, exactly):
        return planner.verify(gpu, target.wanted)
    have, want = (render.layout_text(one) for one in (gpu, replace(gpu, instances=exactly)))
    return [] if have == want else [f"{have.strip()}\nwanted: {want.strip()}"]


def to_json(targets: Sequence[Target]) -> list[dict[str, Any]]:
    """For the files of ours."""
    return [
        {
            "uuid": target.uuid,
            "mig": target.wanted.enabled,
            "devices": None if target.wanted.devices is None else dict(target.wanted.devices),
            "instances": None
            if target.instances is None
            else [
                {
                    "profile": one.profile,
                    "start": one.placement.start,
                    "size": one.placement.size,
                    "compute_slices": list(_sizes(one)),
                }
                for one in target.instances
            ],
        }
        for target in targets
    ]


def from_json(path: str, document: object) -> tuple[Target, ...]:
    """What :func:`to_json` wrote. Raises MigError for anything else."""
    try:
        return tuple(_target(one) for one in document)  # type: ignore[attr-defined]
    except (KeyError, TypeError, AttributeError, ValueError, ConfigError) as error:
        raise MigError(
            f"{path} is not what this program writes ({type(error).__name__}: {error}); "
            "look at it, and delete it to go on without it"
        ) from error


def _target(value: Mapping[str, Any]) -> Target:
    devices, instances = value["devices"], value["instances"]
    return Target(
        str(value["uuid"]),
        Wanted(bool(value["mig"]), None if devices is None else config.counts(devices, "devices")),
        None
        if instances is None
        else tuple(
            GpuInstance(
                str(one["profile"]),
                Placement(int(one["start"]), int(one["size"])),
                tuple(ComputeInstance(int(slices)) for slices in one["compute_slices"]),
            )
            for one in instances
        ),
    )


def _offered(gpu: GpuLayout, instances: Sequence[GpuInstance]) -> bool:
    """Does this driver still offer every one of these places?"""
    if gpu.geometry is None:
        return False
    for one in instances:
        profile = gpu.geometry.profile(one.profile)
        if profile is None or one.placement not in profile.placements:
            return False
    return True


def _sizes(instance: GpuInstance) -> tuple[int, ...]:
    return tuple(one.slices for one in instance.compute)
