# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Who uses the GPUs that a measurement would need: one look at the host, one answer.

A benchmark beside somebody's job costs that job memory and time, so what cannot be known counts
as used.
"""

from __future__ import annotations

from ..hardware import holders, inventory
from ..hardware.model import Device, Holder

# They keep a GPU open and compute nothing on it.
_IDLE_KINDS = ("persistence", "dcgm")


class UnusableError(Exception):
    """These GPUs cannot be measured at all; the message says why."""


def gpus(root: str = "/", deadline_s: float = inventory.DEFAULT_DEADLINE_S) -> list[Device]:
    """The GPUs a run would use. Raises UnusableError."""
    found = inventory.collect(root, deadline_s)
    reason = unusable(found.devices)
    if found.driver.status != "loaded":
        reason = f"the driver is {found.driver.status}: {found.driver.reason or 'no GPU answers'}"
    if reason:
        raise UnusableError(reason)
    return found.devices


def unusable(devices: list[Device]) -> str | None:
    """Why no bandwidth between these GPUs can be measured; None when it can."""
    if len(devices) < 2:
        return f"the host has {len(devices)} GPU: nothing is sent between GPUs"
    for device in devices:
        if device.error:
            return f"GPU {device.index} is sick: {device.error}"
        if device.minor is None:
            return f"GPU {device.index} has no known device node, so its holders are unknown"
        if device.mig and (device.mig.current or device.mig.pending):
            return f"GPU {device.index} is in MIG mode, where NCCL sees only slices"
    return None


def busy(devices: list[Device], root: str = "/") -> str | None:
    """``GPU 3 is held by …``, or None when nobody uses one."""
    minors = {device.minor: device.index for device in devices if device.minor is not None}
    sight = holders.look(minors, root)
    user = first_user(sight.holders)
    if user is None and not sight.complete:
        return "not every process could be looked at, so who holds a GPU is unknown: use become"
    return user


def first_user(found: dict[int, list[Holder]]) -> str | None:
    """The first GPU that somebody uses, with who it is."""
    for index, users in sorted(found.items()):
        working = [one for one in users if one.kind not in _IDLE_KINDS]
        if working:
            named = ", ".join(_name(one) for one in working)
            return f"GPU {index} is held by {named}"
    return None


def _name(holder: Holder) -> str:
    of = f" of container {holder.container}" if holder.container else ""
    return f"{holder.name} (pid {holder.pid}){of}"
