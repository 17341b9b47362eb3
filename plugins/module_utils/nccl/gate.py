# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Bandwidth before and after: a topology file is kept only when NCCL is not slower with it.

The figure is the bus bandwidth of nccl-tests' ``all_reduce_perf``, averaged by that program over
its message sizes (NVIDIA/nccl-tests doc/PERFORMANCE.md; the lines are those of
writeResultFooter in src/util.cu, read at a0b82b22).
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Callable

from ..process import CommandMissingError, Completed, find_program, run
from ..topology.bandwidth import bus_bandwidth
from ..topology.model import TopologyError

PROGRAM = "all_reduce_perf"
# Without, with, with, without: a clock that drifts while we measure favours neither side.
_ORDER = (False, True, True, False)
# Large messages: small ones measure latency, which a topology file hardly moves.
_SIZES = ("-b", "16M", "-e", "256M", "-f", "2")


@dataclass(frozen=True)
class Gate:
    """``status`` is ``better``, ``same``, ``worse``, ``not_measured`` or ``failed`` (NCCL does
    not run with the file). Figures are means in GB/s; ``reason`` speaks to a person.
    """

    status: str
    before_gbs: float | None = None
    after_gbs: float | None = None
    reason: str | None = None

    @property
    def refuses(self) -> bool:
        """Must the file stay out?"""
        return self.status in ("worse", "failed")


class UnmeasuredError(Exception):
    """A run gave no figure; the message says what it gave instead."""


def judge(before: Sequence[float], after: Sequence[float], tolerance_percent: float) -> Gate:
    """Compare the means. A change within the tolerance is none."""
    old, new = _mean(before), _mean(after)
    percent = (new - old) / old * 100 if old else 0.0
    status = "same"
    if abs(percent) > tolerance_percent:
        status = "better" if percent > 0 else "worse"
    reason = (
        f"{old:.2f} GB/s without the file, {new:.2f} GB/s with it ({percent:+.1f} %, "
        f"tolerance {tolerance_percent:g} %)"
    )
    return Gate(status, round(old, 2), round(new, 2), reason)


def bandwidth(done: Completed) -> float:
    """GB/s of a finished run. Raises UnmeasuredError.

    A run whose results were wrong measured nothing, even if it ended with status 0.
    """
    if not done.ok:
        raise UnmeasuredError(done.said)
    try:
        return bus_bandwidth(done.stdout)
    except TopologyError as error:
        raise UnmeasuredError(str(error)) from error


def find(path: str | None) -> str | None:
    """The program: ``path`` itself, ``path`` as a directory of nccl-tests, or on the PATH."""
    if path is None:
        return find_program(PROGRAM)
    inside = [os.path.join(path, part, PROGRAM) for part in ("", "build")]
    return next((one for one in (path, *inside) if _is_program(one)), None)


def measure(
    program: str,
    gpu_count: int,
    candidate: str,
    busy: Callable[[], str | None],
    deadline_s: float,
    tolerance_percent: float,
) -> Gate:
    """Run the program without and with the file ``candidate`` (its text), twice each.

    ``busy`` says who uses a GPU, or None; it is asked before every run, and an answer ends the
    measurement. ``deadline_s`` is for one run: a program that hangs is killed with its group.
    """
    figures: dict[bool, list[float]] = {False: [], True: []}
    with tempfile.TemporaryDirectory(prefix="steadygpu-nccl-") as directory:
        path = os.path.join(directory, "topology.xml")
        with open(path, "w", encoding="utf-8") as handle:
            handle.write(candidate)
        for with_file in _ORDER:
            user = busy()
            if user:
                return Gate("not_measured", reason=user)
            try:
                used = path if with_file else ""
                figures[with_file].append(_one_run(program, gpu_count, used, deadline_s))
            except CommandMissingError as error:
                return Gate("not_measured", reason=str(error))
            except UnmeasuredError as error:
                return _no_figure(with_file, figures, str(error))
    return judge(figures[False], figures[True], tolerance_percent)


def _one_run(program: str, gpu_count: int, path: str, deadline_s: float) -> float:
    env = {
        # Set and empty: NCCL then looks at the hardware itself, whatever /etc/nccl.conf or this
        # environment name (NCCL never overwrites a variable that is set: src/os/linux.cc).
        "NCCL_TOPO_FILE": path,
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        "CUDA_VISIBLE_DEVICES": ",".join(str(index) for index in range(gpu_count)),
    }
    argv = [program, *_SIZES, "-g", str(gpu_count), "-n", "20", "-w", "5"]
    return bandwidth(run(argv, deadline_s, env=env))


def _no_figure(with_file: bool, figures: dict[bool, list[float]], said: str) -> Gate:
    """A failure with the file is the file's when the run before it, without, went well."""
    if not with_file:
        return Gate("not_measured", reason=f"{PROGRAM} fails without the file as well: {said}")
    return Gate(
        "failed", before_gbs=round(_mean(figures[False]), 2), reason=f"with the file: {said}"
    )


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _is_program(path: str) -> bool:
    return os.path.isfile(path) and os.access(path, os.X_OK)
