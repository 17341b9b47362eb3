# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Everything about MIG on this host, as JSON types: what is shown, and never a decision."""

from __future__ import annotations

from typing import Any

from ..engine.docker_api import DEFAULT_SOCKET, DockerClient
from . import boot, holders_view, names, nvml_mig, render, tables, targets
from .change import check_seconds
from .journal import DIRECTORY, Store
from .model import GpuInstance, GpuLayout


def read(
    deadline_s: float,
    socket: str = DEFAULT_SOCKET,
    directory: str = DIRECTORY,
    root: str = "/",
) -> dict[str, Any]:
    """``driver_version``, ``gpus`` with ``profiles`` and ``holders``, ``previous``, ``boot``
    and ``unfinished``. Raises MigError.
    """
    check_seconds(deadline_s)
    store = Store(directory)
    reading = nvml_mig.read(deadline_s)
    blockers = holders_view.find(reading, DockerClient(socket), root)
    previous, kept = store.previous(), boot.read_config(root)
    return {
        "driver_version": reading.driver_version,
        "gpus": [
            {
                **gpu(layout),
                "profiles": _profiles(layout),
                "holders": [one.as_dict() for one in blockers if one.gpu_uuid == layout.uuid],
            }
            for layout in reading.layouts
        ],
        "previous": None if previous is None else targets.to_json(previous),
        "boot": None if kept is None else targets.to_json(kept.gpus),
        "unfinished": store.read() is not None,
    }


def gpu(layout: GpuLayout) -> dict[str, Any]:
    """One GPU's layout."""
    return {
        "index": layout.index,
        "uuid": layout.uuid,
        "pci_address": layout.pci_address,
        "name": layout.name,
        "mig": {
            "supported": layout.supported,
            "current": layout.current,
            "pending": layout.pending,
        },
        "instances": [_instance(one) for one in render.in_order(layout.instances)],
    }


def _instance(instance: GpuInstance) -> dict[str, Any]:
    full = render.full_slices(instance)
    return {
        "id": instance.id,
        "profile": instance.profile,
        "start": instance.placement.start,
        "size": instance.placement.size,
        "devices": [
            {
                "profile": names.device_name(instance.profile, full, one.slices),
                "id": one.id,
                "uuid": one.uuid,
            }
            for one in instance.compute
        ],
    }


def _profiles(layout: GpuLayout) -> list[dict[str, Any]]:
    geometry = tables.geometry_of(layout) if layout.supported else None
    return [
        {
            "name": profile.name,
            "slices": profile.slices,
            "most": profile.most,
            "placements": [render.place_text(one) for one in profile.placements],
        }
        for profile in (geometry.profiles if geometry else ())
    ]
