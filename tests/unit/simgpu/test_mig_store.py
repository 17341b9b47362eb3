# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The file MIG calls write: killed or raced writers lose nothing, garbage harms nobody."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from .conftest import PRELUDE

CHURN = """
h = gpu()
n.nvmlDeviceSetMigMode(h, 1)
print("started", flush=True)
while True:
    gi = create(h, 9)
    n.nvmlComputeInstanceDestroy(n.nvmlGpuInstanceCreateComputeInstance(gi, 2))
    n.nvmlGpuInstanceDestroy(gi)
"""


def start(simulated: Any, code: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", f"{PRELUDE}\n{code}"],
        env=simulated.environment,
        stdout=subprocess.PIPE,
        text=True,
    )


def test_a_killed_writer_leaves_a_whole_file_and_no_lock(driver: Callable[[str], Any]) -> None:
    simulated = driver("dgx-a100")
    layouts = set()
    for attempt in range(12):
        with start(simulated, CHURN) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "started\n"
            time.sleep(attempt * 0.0007)
            process.kill()
        code = "h = gpu(); out = [n.nvmlDeviceGetMigMode(h), instances(h), len(mig_devices(h))]"
        mode, instances, devices = simulated.ask(code)
        assert mode == [1, 1]
        assert instances in ([], [[1, 9, 4, 4]])
        assert devices <= len(instances)
        layouts.add((len(instances), devices))
        simulated.ask(
            "h = gpu()\n"
            "for mig in mig_devices(h):\n"
            "    gi = n.nvmlDeviceGetGpuInstanceById(h, n.nvmlDeviceGetGpuInstanceId(mig))\n"
            "    n.nvmlComputeInstanceDestroy(n.nvmlGpuInstanceGetComputeInstanceById(gi, 0))\n"
            "for id_, *_ in instances(h):\n"
            "    n.nvmlGpuInstanceDestroy(n.nvmlDeviceGetGpuInstanceById(h, id_))\n"
            "out = 0",
        )
    files = {path.name for path in simulated.path.parent.iterdir()}
    assert files <= {"state", "state.mig", "state.mig.lock", "state.mig.new"}
    assert layouts <= {(0, 0), (1, 0), (1, 1)}


def test_writers_at_the_same_time_fill_the_gpu_exactly(driver: Callable[[str], Any]) -> None:
    simulated = driver("dgx-a100")
    simulated.ask("n.nvmlDeviceSetMigMode(gpu(), 1); out = 0")
    fill = """
h, made = gpu(), 0
while answer(create, h, 19) == "object":
    made += 1
print(made)
"""
    processes = [start(simulated, fill) for unused in range(3)]
    made = [int(process.communicate(timeout=20)[0]) for process in processes]
    assert sum(made) == 7
    seen = simulated.ask("out = instances(gpu())")
    assert sorted(start for _id, _profile, start, _size in seen) == list(range(7))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\0\0\0\0",
        "format 1\nboot x\nmode 9 1 1\nmode 0\ngi 0 99 2 0\ngi 0 1 99 0\nci 0 1 99 0 0\n",
        "gi 0 1\n" * 1000,
    ],
)
def test_a_file_that_makes_no_sense_is_a_gpu_without_mig(
    driver: Callable[[str], Any], text: str
) -> None:
    simulated = driver("dgx-a100")
    Path(f"{simulated.path}.mig").write_text(text)
    assert simulated.ask("out = n.nvmlDeviceGetMigMode(gpu())") == [0, 0]
    switched = "h = gpu(); n.nvmlDeviceSetMigMode(h, 1); create(h, 0); out = instances(h)"
    assert simulated.ask(switched) == [[0, 0, 0, 8]]


def test_who_may_not_write_may_not_change(driver: Callable[[str], Any]) -> None:
    simulated = driver("dgx-a100")
    Path(f"{simulated.path}.mig.lock").mkdir()  # nobody can open it for writing, root neither
    change = "h = gpu(); out = [answer(n.nvmlDeviceSetMigMode, h, 1), n.nvmlDeviceGetMigMode(h)]"
    assert simulated.ask(change) == ["NVMLError_NoPermission", [0, 0]]


def test_a_change_that_cannot_be_written_did_not_happen(driver: Callable[[str], Any]) -> None:
    simulated = driver("dgx-a100")
    Path(f"{simulated.path}.mig.new").mkdir()
    change = "h = gpu(); out = [answer(n.nvmlDeviceSetMigMode, h, 1), n.nvmlDeviceGetMigMode(h)]"
    assert simulated.ask(change) == ["NVMLError_Unknown", [0, 0]]
