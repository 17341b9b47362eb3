# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How well a device, and a set, fits a request: the weighted score, from 0 to 1. Pure.

- memory: packed, the share of the device that is taken once the request is on it, so that large
  devices stay whole; spread, the share that stays free. An exclusive request without a size takes
  all there is.
- compute: the share of the multiprocessors that nobody else uses or was promised.
- numa: the share of the set that is on one NUMA node, that of the container's CPUs where these
  are given. Where the host shows no nodes, it is 1 for all.

Two scores within a twentieth of a device are equal: what an idle driver takes here and not there
must not outweigh what a set leaves to the next one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from .model import SPREAD, Device, Request

_STEPS = 20
_DIGITS = 6


def memory(device: Device, request: Request) -> float:
    """The memory term of one device."""
    usable = device.usable_mib
    if not usable:
        return 1.0
    if not request.shared and request.memory_mib is None:
        return _within((usable - device.used_mib) / usable)
    after = ((device.taken_mib if request.shared else 0) + (request.memory_mib or 0)) / usable
    return _within(1 - after if request.policy == SPREAD else after)


def compute(device: Device) -> float:
    """The compute term of one device."""
    promised = sum(one.compute_percent for one in device.tenants)
    return _within(1 - max(promised, device.compute_used) / 100)


def numa(nodes: Sequence[int | None], cpu_node: int | None) -> float:
    """The NUMA term of a set of devices on these nodes."""
    known = [node for node in nodes if node is not None]
    if not known:
        return 1.0
    hidden = len(nodes) - len(known)
    if cpu_node is not None:
        return (known.count(cpu_node) + hidden) / len(nodes)
    return (max(Counter(known).values()) + hidden) / len(nodes)


def steps(device: Device, request: Request) -> int:
    """What a device alone contributes, in twentieths; the higher the better."""
    weights = request.weights
    value = weights.memory * memory(device, request) + weights.compute * compute(device)
    return round(value * _STEPS)


def set_steps(device_steps: Sequence[int], nodes: Sequence[int | None], request: Request) -> float:
    """The score that sets are compared by: per device, in twentieths."""
    many = len(device_steps)
    aligned = request.weights.numa * numa(nodes, request.cpu_node) * _STEPS
    return round(sum(device_steps) / many + aligned, _DIGITS)


def terms(devices: Sequence[Device], request: Request) -> dict[str, float]:
    """The terms and the score as a person reads them."""
    many = len(devices)
    found = {
        "memory": sum(memory(one, request) for one in devices) / many,
        "compute": sum(compute(one) for one in devices) / many,
        "numa": numa([one.numa_node for one in devices], request.cpu_node),
    }
    weights = request.weights
    found["score"] = (
        weights.memory * found["memory"]
        + weights.compute * found["compute"]
        + weights.numa * found["numa"]
    )
    return {key: round(value, 4) for key, value in found.items()}


def _within(value: float) -> float:
    return min(1.0, max(0.0, value))
