# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a GPU model offers under MIG, for a GPU whose driver cannot be asked.

The driver tells profiles and placements only while MIG is on. Before that a plan rests on
these tables; a model that is not in them has no geometry here, and none is made up.
"""

from __future__ import annotations

import re

from .model import Geometry, GpuLayout, Placement, Profile
from .tables_data import KINDS, MODELS, Model


def geometry_of(gpu: GpuLayout) -> Geometry | None:
    """What the driver says of this GPU, else what the tables say of its model, else None."""
    return gpu.geometry or geometry_for(gpu.name, gpu.device_id)


def geometry_for(name: str, device_id: str) -> Geometry | None:
    """The table of a model; None for one that is not known.

    ``name`` as NVML gives it, ``device_id`` as ``0x20B010DE``; either may be empty.
    """
    model = _find(name, device_id)
    if model is None:
        return None
    memory_slices, compute_slices, rows = KINDS[model.kind]
    profiles = tuple(
        Profile(
            name=stem + row.suffix,
            id=None if model.source == "c" else row.id,
            slices=row.slices,
            placements=tuple(Placement(start, row.size) for start in row.starts),
            most=row.most,
            media=row.media,
        )
        for stem, row in zip(model.names, rows)
    )
    return Geometry(model.name, memory_slices, compute_slices, profiles)


def model_of(name: str, device_id: str) -> str | None:
    """The name of the table that fits: ``A100-40GB``. None for a model that is not known."""
    model = _find(name, device_id)
    return model.name if model else None


def pci_device(device_id: str) -> int | None:
    """The device number in ``0x20B010DE``: 0x20B0. None unless the vendor is NVIDIA."""
    try:
        number = int(device_id, 16)
    except ValueError:
        return None
    return number >> 16 if number & 0xFFFF == 0x10DE else None


def _find(name: str, device_id: str) -> Model | None:
    device = pci_device(device_id)
    for model in MODELS:
        if device in model.device_ids:
            return model
    for model in MODELS:
        # The letters before are part of the name: a GB200 is no B200.
        if model.pattern and re.search(rf"(?<!\w){model.pattern}", name):
            return model
    return None
