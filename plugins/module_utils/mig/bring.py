# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Bring GPUs from the layout they have to the one they are to have, and read it back.

Who holds a GPU is looked up again right before its first step, by the very process that makes
the step: a job that was started since the plan was made ends the change, not the other way round.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Callable

from ..atomic import read_text
from . import decide, nvml_mig, targets
from .change import Clock
from .holders_view import Blocker
from .model import GpuLayout, MigError, Plan, Step
from .nvml_mig import Reading

# Every holder of the GPUs of a reading, now.
Look = Callable[[Reading], tuple[Blocker, ...]]

# A mode, what the mode makes possible, and the proof; one more for what another hand did.
_ROUNDS = 4


class StepError(MigError):
    """NVML refused a step; ``code`` is its number."""

    def __init__(self, text: str, code: int | None) -> None:
        super().__init__(text)
        self.code = code


@dataclass(frozen=True)
class Brought:
    """All GPUs afterwards. ``waiting`` maps the UUID of a GPU whose mode did not take effect
    to NVML's activation status.
    """

    reading: Reading
    waiting: Mapping[str, int]


def bring(
    wanted: Mapping[str, targets.Target],
    reading: Reading,
    actions: list[str],
    clock: Clock,
    look: Look,
) -> Brought:
    """Plan, carry out and read again until nothing is left to do; ``actions`` grows.

    ``reading`` is how the GPUs are now. After a mode change the driver is asked anew what it
    offers, so it takes two rounds; what is read in the last one, in which nothing is left, is held
    against what is wanted. Raises MigError, InUseError, StepError.
    """
    waiting: dict[str, int] = {}
    left: list[Plan] = []
    there = {gpu.uuid for gpu in reading.layouts if gpu.uuid in wanted}
    for _round in range(_ROUNDS):
        left = _left(reading, wanted, waiting, look)
        if not left:
            _prove(reading, wanted, waiting)
            return Brought(reading, waiting)
        waiting.update(_carry_out(reading, left, actions, clock, look))
        reading = nvml_mig.read(clock.wait())
        if not there <= {gpu.uuid for gpu in reading.layouts}:
            raise MigError("a GPU was lost on the way. " + "\n".join(reading.sick))
    raise MigError(
        "the driver accepted every step, and the layout is still not as wanted: "
        + "; ".join(step.text for plan in left for step in plan.steps)
    )


def pending(brought: Brought, root: str = "/") -> list[dict[str, Any]]:
    """What each waiting mode needs: ``{gpu, uuid, needs, reason}``.

    nvml.h, nvmlDeviceSetMigMode: where a VM cannot reset the GPU, the VM's reboot is needed.
    """
    in_vm = "hypervisor" in (read_text(os.path.join(root, "proc/cpuinfo")) or "").split()
    return [
        _waits(gpu, brought.waiting[gpu.uuid], in_vm)
        for gpu in brought.reading.layouts
        if gpu.uuid in brought.waiting
    ]


def _waits(gpu: GpuLayout, status: int, in_vm: bool) -> dict[str, Any]:
    needs = "reboot" if status == nvml_mig.RESET_REQUIRED and in_vm else "reset"
    how = (
        "Reboot this machine"
        if needs == "reboot"
        else f"End all of its users and run: nvidia-smi --gpu-reset -i {gpu.index}; or reboot"
    )
    said = nvml_mig.words(status, f"NVML's activation status is {status}")
    mode = "on" if gpu.pending else "off"
    return {
        "gpu": gpu.index,
        "uuid": gpu.uuid,
        "needs": needs,
        "reason": f"GPU {gpu.index}: MIG will be {mode} after a {needs}: {said}. {how}",
    }


def _prove(
    reading: Reading, wanted: Mapping[str, targets.Target], waiting: Mapping[str, int]
) -> None:
    """Not by the planner's word that nothing is left, but by what is there. Raises MigError."""
    wrong = [
        line
        for gpu in reading.layouts
        if gpu.uuid in wanted and gpu.uuid not in waiting
        for line in targets.verify(gpu, wanted[gpu.uuid])
    ]
    if wrong:
        raise MigError("the driver does not show what was wanted: " + "\n".join(wrong))


def _left(
    reading: Reading,
    wanted: Mapping[str, targets.Target],
    waiting: Mapping[str, int],
    look: Look,
) -> list[Plan]:
    """What is still to be done, around those who hold a GPU now. Raises InUseError."""
    if not any(one.steps and one.gpu.uuid not in waiting for one in decide.plans(reading, wanted)):
        return []
    rules = decide.Rules(look(reading))
    plans = decide.plans(reading, wanted, rules)
    left = [plan for plan in plans if plan.steps and plan.gpu.uuid not in waiting]
    decide.refuse_in_use(left, rules)
    return left


def _carry_out(
    reading: Reading, plans: Sequence[Plan], actions: list[str], clock: Clock, look: Look
) -> dict[str, int]:
    """The steps of all plans, of each up to a mode change; the modes that did not take effect."""
    gpus = {gpu.layout.uuid: gpu for gpu in reading.gpus}

    def free(number: int, users: nvml_mig.Users) -> None:
        # Runs in the child that makes the steps. What only creates disturbs nobody.
        plan = replace(plans[number], steps=tuple(batches[number]))
        if any(not step.verb.startswith("create") for step in plan.steps):
            now = replace(gpus[plan.gpu.uuid], processes=users)
            alone = replace(reading, gpus=(now,))
            decide.refuse_in_use([plan], decide.Rules(look(alone)))

    waiting = {}
    batches = [list(_until_mode(plan.steps)) for plan in plans]
    deadline_s = clock.wait(len(batches))
    for plan, steps, carried in zip(plans, batches, nvml_mig.carry_out(batches, deadline_s, free)):
        done: Sequence[Step] = steps[: carried.done]
        if carried.pending is not None:
            waiting[plan.gpu.uuid] = carried.pending
            if plan.gpu.pending == plan.wanted.enabled:
                # It was pending before, so nothing has become different.
                done = done[:-1]
        actions += [step.text for step in done]
        if carried.error:
            raise StepError(carried.error, carried.code)
    return waiting


def _until_mode(steps: Sequence[Step]) -> Iterator[Step]:
    """The steps up to the first change of mode: what follows is planned again after it."""
    for step in steps:
        yield step
        if step.verb in ("enable", "disable"):
            return
