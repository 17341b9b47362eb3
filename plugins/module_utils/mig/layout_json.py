# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Layouts as JSON types and back: for the NVML child's answer and for the files we keep."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from .model import ComputeInstance, Geometry, GpuInstance, GpuLayout, Placement, Profile


def layout_to_json(layout: GpuLayout) -> dict[str, Any]:
    """One GPU with everything, its geometry included."""
    return asdict(layout)


def layout_from_json(value: Mapping[str, Any]) -> GpuLayout:
    """The GPU that :func:`layout_to_json` wrote. Raises KeyError and TypeError for others."""
    plain = dict(value)
    geometry = plain.pop("geometry")
    instances = plain.pop("instances")
    return GpuLayout(
        **plain,
        instances=tuple(_instance(one) for one in instances),
        geometry=_geometry(geometry) if geometry else None,
    )


def _instance(value: Mapping[str, Any]) -> GpuInstance:
    return GpuInstance(
        profile=value["profile"],
        placement=Placement(**value["placement"]),
        compute=tuple(ComputeInstance(**one) for one in value["compute"]),
        id=value["id"],
    )


def _geometry(value: Mapping[str, Any]) -> Geometry:
    return Geometry(
        model=value["model"],
        memory_slices=value["memory_slices"],
        compute_slices=value["compute_slices"],
        profiles=tuple(
            Profile(
                name=one["name"],
                id=one["id"],
                slices=one["slices"],
                placements=tuple(Placement(**place) for place in one["placements"]),
                most=one["most"],
                media=tuple(one["media"]),
            )
            for one in value["profiles"]
        ),
    )
