# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a change would do, and whether it may: everything that is refused is refused here,
for all GPUs at once and before the first of them is touched.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from ..atomic import read_text
from . import requirements, targets
from .holders_view import Blocker, blocking, refusal
from .model import GpuLayout, MigError, Plan
from .nvml_mig import Reading


class InUseError(MigError):
    """Somebody would be disturbed."""


@dataclass(frozen=True)
class Rules:
    """What the host says besides NVML. ``blockers`` are all holders of all GPUs, ``stopping``
    the owners that are stopped for the change and so block nothing.
    """

    blockers: tuple[Blocker, ...] = ()
    stopping: frozenset[str] = frozenset()
    driver_parameters: tuple[str, ...] = ()

    @property
    def staying(self) -> tuple[Blocker, ...]:
        """The holders that nobody stops."""
        return tuple(one for one in self.blockers if one.owner not in self.stopping)


def plans(
    reading: Reading, wanted: Mapping[str, targets.Target], rules: Rules | None = None
) -> list[Plan]:
    """One plan for each wanted GPU that is there, by index. Raises MigError.

    An instance in use stays where any layout of the wanted kind lets it stay.
    """
    staying = rules.staying if rules else ()
    return [
        _plan(gpu, wanted[gpu.uuid], [one for one in staying if one.gpu_uuid == gpu.uuid])
        for gpu in reading.layouts
        if gpu.uuid in wanted
    ]


def refuse_unfit(reading: Reading, todo: Sequence[Plan], rules: Rules) -> None:
    """Refuse what driver and host do not carry. Raises MigError with every reason."""
    reasons = []
    for plan in todo:
        reason = requirements.driver_too_old(reading.driver_version, plan.gpu)
        if reason and plan.wanted.enabled:
            reasons.append(reason)
    if any(plan.wanted.enabled for plan in todo):
        conflicts = map(requirements.memory_limits_conflict, rules.driver_parameters)
        reasons += dict.fromkeys(conflict for conflict in conflicts if conflict)
    if reasons:
        raise MigError("\n".join([*reasons, "Nothing was changed."]))


def refuse_in_use(todo: Sequence[Plan], rules: Rules) -> None:
    """Refuse to disturb anybody. Raises InUseError that names every holder on every GPU."""
    pairs = [(plan, blocking(plan, rules.staying)) for plan in todo]
    pairs = [(plan, found) for plan, found in pairs if found]
    if pairs:
        raise InUseError(refusal(pairs))


def refuse_absent(reading: Reading, wanted: Collection[str]) -> None:
    """Refuse a kept layout of a GPU that is no longer here. Raises MigError."""
    absent = sorted(set(wanted) - {gpu.uuid for gpu in reading.layouts})
    if absent:
        raise MigError(
            "not on this host any more: {}. It has: {}".format(
                ", ".join(absent), ", ".join(gpu.uuid for gpu in reading.layouts) or "no GPU"
            )
        )


def read_driver_parameters(root: str = "/") -> tuple[str, ...]:
    """What the driver was loaded with, and what it would be loaded with next time."""
    options = []
    for path in sorted(glob.glob(os.path.join(root, "etc/modprobe.d/*.conf"))):
        lines = (read_text(path) or "").splitlines()
        options += [line for line in lines if line.split()[:2] == ["options", "nvidia"]]
    return read_text(os.path.join(root, "proc/driver/nvidia/params")) or "", "\n".join(options)


def _plan(gpu: GpuLayout, target: targets.Target, holders: Sequence[Blocker]) -> Plan:
    plain = targets.plan(gpu, target)
    if plain.changes_mode or not blocking(plain, holders):
        return plain
    used = _used(gpu, holders)
    try:
        return targets.plan(gpu, target, protected=used)
    except MigError:
        # There is no way around them: the plain plan is refused, and the refusal names them.
        return plain


def _used(gpu: GpuLayout, holders: Sequence[Blocker]) -> set[int]:
    every = {one.id for one in gpu.instances if one.id is not None}
    used: set[int] = set()
    for holder in holders:
        if holder.kind not in ("module", "persistence"):
            used |= every if holder.instances is None else every & holder.instances
    return used
