# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A GPU's MIG layout as text: canonical, so that two equal layouts have equal texts.

Numbers and UUIDs of instances are left out: they change when an instance is made anew.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from . import names
from .model import GpuInstance, GpuLayout, Placement


def place_text(place: Placement) -> str:
    """``0:4``: first slice and number of slices, as nvidia-smi writes a placement."""
    return f"{place.start}:{place.size}"


def instance_text(instance: GpuInstance) -> str:
    """``3g.20gb@0:4``; with the compute instances behind it unless it is one over all slices."""
    text = f"{instance.profile}@{place_text(instance.placement)}"
    sizes = sorted((one.slices for one in instance.compute), reverse=True)
    if sizes == [full_slices(instance)]:
        return text
    inside = ", ".join(f"{size}c" for size in sizes) or "no compute instance"
    return f"{text} ({inside})"


def layout_text(gpu: GpuLayout) -> str:
    """The layout with one line per GPU instance, for a diff. Ends with a newline."""
    lines = [
        f"{title(gpu)} MIG {_mode(gpu)}",
        *(f"  {instance_text(one)}" for one in in_order(gpu.instances)),
    ]
    return "\n".join(lines) + "\n"


def title(gpu: GpuLayout) -> str:
    """``GPU 0 (GPU-…)``."""
    return f"GPU {gpu.index} ({gpu.uuid})"


def numbered(instances: Iterable[GpuInstance]) -> str:
    """``GPU instance 7 (1g.5gb@0:1) is`` or ``GPU instances 2 (…), 7 (…) are``, for errors."""
    listed = [f"{one.id} ({instance_text(one)})" for one in in_order(instances)]
    if len(listed) == 1:
        return f"GPU instance {listed[0]} is"
    return f"GPU instances {', '.join(listed)} are"


def in_order(instances: Iterable[GpuInstance]) -> list[GpuInstance]:
    """The GPU instances by where they lie."""
    return sorted(instances, key=lambda one: (one.placement, one.profile))


def device_counts(instances: Iterable[GpuInstance]) -> dict[str, int]:
    """MIG devices by profile, which is what mig-parted's ``mig-devices`` counts.

    A GPU instance without a compute instance is no device.
    """
    counts: Counter[str] = Counter()
    for instance in instances:
        for one in instance.compute:
            counts[names.device_name(instance.profile, full_slices(instance), one.slices)] += 1
    return dict(sorted(counts.items()))


def full_slices(instance: GpuInstance) -> int:
    """The compute slices of a GPU instance, from the name of its profile."""
    try:
        return names.slices_of(instance.profile)
    except ValueError:  # A name that we do not know: what lies inside is all there is to go by.
        return max((one.slices for one in instance.compute), default=0)


def _mode(gpu: GpuLayout) -> str:
    if not gpu.supported:
        return "not supported"
    mode = "on" if gpu.current else "off"
    if gpu.pending != gpu.current:
        mode += f" ({'on' if gpu.pending else 'off'} after a reset)"
    return mode
