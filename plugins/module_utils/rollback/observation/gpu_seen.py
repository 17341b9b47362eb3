# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The MIG layout of the GPUs and who uses their memory, in one NVML session.

Without the persistence daemon each session costs seconds a GPU, so both are asked at once. It
runs in a child with a deadline, as everything that asks the driver does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ...hardware import nvml as nvml_library
from ...hardware import nvml_reader
from ...mig import nvml_mig, nvml_read, targets
from ...mig.layout_json import layout_from_json
from ..model import RollbackError

_MIB = 1 << 20


@dataclass(frozen=True)
class Seen:
    """What NVML told.

    ``mig`` is :func:`...mig.targets.to_json` of every healthy GPU. ``memory_mib`` is by process id
    (as the host numbers them), None where the driver does not tell how much. ``sick`` says by
    index why a GPU is missing.
    """

    mig: list[dict[str, Any]]
    memory_mib: Mapping[int, int | None] = field(default_factory=dict)
    sick: Mapping[int, str] = field(default_factory=dict)


def read(deadline_s: float) -> Seen:
    """Ask the driver. Raises RollbackError with the reason when it does not answer."""
    answer = nvml_reader.read(deadline_s, _session, nvml_library.load)
    if answer.report is None:
        raise RollbackError(f"NVML: {answer.reason}")
    if "refused" in answer.report:
        code, text = answer.report["refused"], answer.report["text"]
        raise RollbackError(f"NVML: {nvml_mig.words(code, text)}")
    layouts = [layout_from_json(gpu["layout"]) for gpu in answer.report["gpus"]]
    return Seen(
        mig=targets.to_json([targets.of_layout(layout) for layout in layouts]),
        memory_mib={int(pid): used for pid, used in answer.report["memory_mib"].items()},
        sick={
            one["index"]: nvml_mig.words(one["code"], one["text"]) for one in answer.report["sick"]
        },
    )


# -- inside the child --------------------------------------------------------------------


def _session(nvml: Any) -> dict[str, Any]:
    try:
        nvml.nvmlInit()
        try:
            report = nvml_read.read_gpus(nvml)
            indices = [gpu["layout"]["index"] for gpu in report["gpus"]]
            return {**report, "memory_mib": _memory(nvml, indices)}
        finally:
            nvml.nvmlShutdown()
    except nvml.NVMLError as error:
        return {"refused": error.value, "text": str(error)}


def _memory(nvml: Any, indices: list[int]) -> dict[int, int | None]:
    """Process id -> MiB on all GPUs; None if one of them did not tell."""
    found: dict[int, int | None] = {}
    for index in indices:
        handle = nvml.nvmlDeviceGetHandleByIndex(index)
        for pid, used in _of_gpu(nvml, handle).items():
            former = found.get(pid, 0)
            found[pid] = None if used is None or former is None else former + used // _MIB
    return found


def _of_gpu(nvml: Any, handle: Any) -> dict[int, int | None]:
    """Process id -> bytes; who computes and draws is on both lists with the same memory."""
    found: dict[int, int | None] = {}
    for question in ("Compute", "Graphics"):
        try:
            listed = getattr(nvml, f"nvmlDeviceGet{question}RunningProcesses")(handle)
        except nvml.NVMLError:
            continue  # no graphics on this GPU, or none that the driver tells of
        for one in listed:
            found[one.pid] = one.usedGpuMemory
    return found
