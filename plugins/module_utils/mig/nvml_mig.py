# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""MIG through NVML: read all GPUs, carry out steps. Each batch is one child with a deadline.

NVML is open in the child only, and only for one batch: an open handle blocks mode changes,
and after a mode change everything known of the GPU must be asked again (nvml.h,
``nvmlDeviceSetMigMode``).
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Callable, Optional

from ..hardware import nvml as nvml_library
from ..hardware import nvml_reader
from . import nvml_read
from .layout_json import layout_from_json
from .model import GpuInstance, GpuLayout, MigError, Step

IN_USE = 19
RESET_REQUIRED = 16

# What NVML's answers mean here, in words that say what to do.
_WORDS = {
    2: "the driver does not know this profile or placement (Invalid Argument)",
    3: "the driver says that this GPU cannot do it in its present mode (Not Supported)",
    4: "no permission: MIG may be changed by root only, and in a container only with "
    "CAP_SYS_ADMIN and the driver's mig/config capability",
    6: "the instance is gone (Not Found): somebody else changes MIG at the same time",
    9: "the NVIDIA driver is not loaded. Try: modprobe nvidia",
    12: "libnvidia-ml.so.1 is not on this host: install the driver's user space",
    15: "the GPU is lost: it fell off the bus. Look at the kernel's log for Xid 79; a reboot is "
    "needed",
    16: "the GPU must be reset first",
    18: "the driver's library and its kernel module have different versions: reboot after the "
    "driver's upgrade",
    19: "somebody still uses it (In use by another client)",
    23: "the driver has no room for it (Insufficient Resources): another instance lies there, or "
    "the compute slices are used up",
}


# (pid, GPU instance or None) as NVML lists them.
Users = tuple[tuple[int, Optional[int]], ...]
Free = Callable[[int, Users], None]


class NvmlMigError(MigError):
    """NVML said no. ``code`` is its number, None when it did not answer."""

    def __init__(self, text: str, code: int | None = None) -> None:
        super().__init__(text)
        self.code = code


@dataclass(frozen=True)
class GpuReading:
    """One GPU now. ``processes`` are (pid, GPU instance or None) as NVML lists them.

    ``ampere``: a mode change resets the GPU there; later ones need no reset.
    """

    layout: GpuLayout
    minor: int
    ampere: bool
    processes: Users = ()


@dataclass(frozen=True)
class Reading:
    """All GPUs of the host in NVML's order; ``sick`` says of each other why it is missing."""

    driver_version: str
    gpus: tuple[GpuReading, ...]
    sick: tuple[str, ...] = ()

    @property
    def layouts(self) -> tuple[GpuLayout, ...]:
        """The layouts alone, as the planner takes them."""
        return tuple(gpu.layout for gpu in self.gpus)


@dataclass(frozen=True)
class Carried:
    """How far one GPU's steps came. ``done`` counts those that NVML accepted.

    ``pending`` is NVML's activation status of a mode change that did not take effect at
    once, ``error`` what stopped it and ``code`` NVML's number for that; all None when every
    step was done.
    """

    done: int
    pending: int | None = None
    error: str | None = None
    code: int | None = None


def words(code: int, text: str) -> str:
    """What NVML's error means for a person."""
    return _WORDS.get(code, text)


def read(deadline_s: float) -> Reading:
    """Every GPU of the host. Raises NvmlMigError with the reason."""
    report = _ask(nvml_read.read_gpus, deadline_s)
    return Reading(
        report["driver_version"],
        tuple(
            GpuReading(
                layout_from_json(gpu["layout"]),
                gpu["minor"],
                gpu["ampere"],
                _pairs(gpu["processes"]),
            )
            for gpu in report["gpus"]
        ),
        tuple(
            f"GPU {one['index']} was left alone: {words(one['code'], one['text'])}"
            for one in report["sick"]
        ),
    )


def carry_out(
    batches: Sequence[Sequence[Step]], deadline_s: float, free: Free = lambda _number, _users: None
) -> list[Carried]:
    """Do the steps of several GPUs, one batch a GPU, all of them within ``deadline_s``.

    ``free`` is asked right before each batch, with its number and who NVML says uses that GPU;
    it raises MigError when somebody came since the plan was made, which is an error without a
    code before the batch's first step. A batch ends early at a mode that stays pending; at
    an error all end, and the batches after it are missing in the answer. It is one NVML session:
    without the persistence daemon each costs seconds a GPU. Raises NvmlMigError when NVML does
    not answer in time: how far it came is then unknown.
    """
    owner = os.getpid()
    report = _ask(lambda nvml: _all_batches(nvml, batches, owner, free), deadline_s)
    return [Carried(**one) for one in report["carried"]]


def _ask(question: Callable[[Any], dict[str, Any]], deadline_s: float) -> dict[str, Any]:
    """The question's answer from a child. Raises NvmlMigError."""

    def ask(nvml: Any) -> dict[str, Any]:
        try:
            nvml.nvmlInit()
            try:
                return question(nvml)
            finally:
                nvml.nvmlShutdown()
        except nvml.NVMLError as error:
            return {"refused": error.value, "text": str(error)}

    answer = nvml_reader.read(deadline_s, ask, nvml_library.load)
    if answer.report is None:
        hint = " Look at the kernel's log for Xid messages." if answer.unresponsive else ""
        raise NvmlMigError(f"NVML: {answer.reason}.{hint}")
    if "refused" in answer.report:
        code, text = answer.report["refused"], answer.report["text"]
        raise NvmlMigError(f"NVML: {words(code, text)}", code)
    return answer.report


# -- inside the child --------------------------------------------------------------------


def _pairs(listed: Sequence[Mapping[str, int | None]]) -> Users:
    return tuple((one["pid"] or 0, one["gpu_instance"]) for one in listed)


def _all_batches(
    nvml: Any, batches: Sequence[Sequence[Step]], owner: int, free: Free
) -> dict[str, Any]:
    carried: list[dict[str, Any]] = []
    for number, steps in enumerate(batches):
        carried.append(_refused(nvml, number, steps, free) or _carry_out(nvml, steps, owner))
        if "error" in carried[-1]:
            break
    return {"carried": carried}


def _refused(nvml: Any, number: int, steps: Sequence[Step], free: Free) -> dict[str, Any] | None:
    try:
        handle = nvml.nvmlDeviceGetHandleByUUID(steps[0].gpu_uuid)
        free(number, _pairs(nvml_read.processes(nvml, handle)))
    except nvml.NVMLError as error:
        text = f"{steps[0].text}: {words(error.value, str(error))}"
        return {"done": 0, "error": text, "code": error.value}
    except MigError as error:
        return {"done": 0, "error": str(error)}
    return None


def _carry_out(nvml: Any, steps: Sequence[Step], owner: int) -> dict[str, Any]:
    created: dict[GpuInstance, int] = {}
    for done, step in enumerate(steps):
        # A run that was killed does not go on behind the back of the one that follows it.
        if os.getppid() != owner:
            os._exit(1)
        try:
            pending = _do(nvml, step, created)
        except nvml.NVMLError as error:
            text = f"{step.text}: {words(error.value, str(error))}"
            return {"done": done, "error": text, "code": error.value}
        except LookupError as missing:
            return {"done": done, "error": f"{step.text}: {missing.args[0]}"}
        if pending:
            return {"done": done + 1, "pending": pending}
    return {"done": len(steps)}


def _do(nvml: Any, step: Step, created: dict[GpuInstance, int]) -> int | None:
    """One step; the activation status of a mode change that did not take effect.

    ``created`` remembers the numbers that the driver gave to instances of this batch.
    """
    handle = nvml.nvmlDeviceGetHandleByUUID(step.gpu_uuid)
    if step.verb in ("enable", "disable"):
        status: int = nvml.nvmlDeviceSetMigMode(handle, int(step.verb == "enable"))
        return status or None
    instance = step.instance
    if instance is None:
        raise LookupError("the plan names no instance")
    if step.verb == "create_gpu":
        created[_shape(instance)] = _create(nvml, handle, instance)
        return None
    number = created.get(_shape(instance), instance.id)
    if number is None:
        number = _find(nvml, handle, instance)
    target = nvml.nvmlDeviceGetGpuInstanceById(handle, number)
    if step.verb == "destroy_gpu":
        nvml.nvmlGpuInstanceDestroy(target)
    elif step.compute is None:
        raise LookupError("the plan names no compute instance")
    elif step.verb == "destroy_compute":
        nvml.nvmlComputeInstanceDestroy(
            nvml.nvmlGpuInstanceGetComputeInstanceById(target, step.compute.id)
        )
    else:
        profile = _compute_profile(nvml, target, step.compute.slices)
        nvml.nvmlGpuInstanceCreateComputeInstance(target, profile)
    return None


def _shape(instance: GpuInstance) -> GpuInstance:
    """What tells an instance of a GPU from the others before it has a number."""
    return GpuInstance(instance.profile, instance.placement)


def _create(nvml: Any, handle: Any, instance: GpuInstance) -> int:
    for name, profile in nvml_read.gpu_profiles(nvml, handle):
        if name == instance.profile:
            place = nvml.c_nvmlGpuInstancePlacement_t(
                instance.placement.start, instance.placement.size
            )
            made = nvml.nvmlDeviceCreateGpuInstanceWithPlacement(
                handle, profile.id, ctypes.byref(place)
            )
            number: int = nvml.nvmlGpuInstanceGetInfo(made).id
            return number
    raise LookupError(f"this GPU offers no profile {instance.profile}")


def _find(nvml: Any, handle: Any, instance: GpuInstance) -> int:
    """The number of the instance that lies at this placement."""
    for name, profile in nvml_read.gpu_profiles(nvml, handle):
        if name == instance.profile:
            for one in nvml_read.gpu_instances(nvml, handle, profile):
                info = nvml.nvmlGpuInstanceGetInfo(one)
                if info.placement.start == instance.placement.start:
                    number: int = info.id
                    return number
    raise LookupError(f"no instance {instance.profile} at slice {instance.placement.start}")


def _compute_profile(nvml: Any, instance: Any, slices: int) -> int:
    """The first profile of that many slices: the plain one, before those with extras."""
    for profile in nvml_read.compute_profiles(nvml, instance):
        if profile.sliceCount == slices:
            number: int = profile.id
            return number
    raise LookupError(f"this GPU instance offers no compute instance of {slices} slices")
