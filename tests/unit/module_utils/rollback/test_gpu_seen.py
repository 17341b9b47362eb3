# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""MIG and memory in one session: against the simulated library, and with answers made up."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.rollback.model import RollbackError
from ansible_collections.steadygpu.host.plugins.module_utils.rollback.observation import gpu_seen
from ansible_collections.steadygpu.host.tests.unit.module_utils.mig.simulated import build

PROGRAM = """
import json, sys
from dataclasses import asdict
from ansible_collections.steadygpu.host.plugins.module_utils.rollback.observation import gpu_seen
try:
    print(json.dumps(asdict(gpu_seen.read(float(sys.argv[1])))))
except gpu_seen.RollbackError as error:
    print(json.dumps({"error": str(error)}))
"""


@pytest.fixture(scope="module")
def ask(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., dict[str, Any]]:
    """Asks eight simulated A100, with further lines in their state."""
    pytest.importorskip("pynvml", reason="nvidia-ml-py is not installed for this Python")
    if shutil.which("cc") is None and shutil.which("gcc") is None:
        pytest.skip("no C compiler to build the simulated NVML library with")
    built = build(tmp_path_factory.mktemp("dgx-a100"), "dgx-a100")

    def asked(*lines: str, deadline_s: float = 20) -> dict[str, Any]:
        state = tmp_path_factory.mktemp("state") / "state"
        state.write_text((built / "state").read_text() + "".join(f"{line}\n" for line in lines))
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(sys.path),
            "LD_LIBRARY_PATH": str(built),
            "SIMGPU_STATE": str(state),
        }
        argv = [sys.executable, "-c", PROGRAM, str(deadline_s)]
        done = subprocess.run(argv, env=environment, check=True, stdout=subprocess.PIPE)
        answer: dict[str, Any] = json.loads(done.stdout)
        return answer

    return asked


def test_every_gpu_s_layout_and_who_uses_it(ask: Callable[..., dict[str, Any]]) -> None:
    seen = ask(f"holder 0 {os.getpid()} python3")
    assert [gpu["mig"] for gpu in seen["mig"]] == [False] * 8
    assert len({gpu["uuid"] for gpu in seen["mig"]}) == 8
    assert list(seen["memory_mib"]) == [str(os.getpid())]
    assert seen["sick"] == {}


def test_one_sick_gpu_hides_only_itself(ask: Callable[..., dict[str, Any]]) -> None:
    seen = ask("gpu 3 lost 1")
    assert len(seen["mig"]) == 7
    assert list(seen["sick"]) == ["3"]
    assert "the GPU is lost" in seen["sick"]["3"]


class RefusedError(Exception):
    """An error of the library that is made up."""

    def __init__(self, value: int) -> None:
        super().__init__(f"error {value}")
        self.value = value


def library(**answers: Any) -> SimpleNamespace:
    """A library with two GPUs that cannot do MIG. Its answers are by GPU and list."""

    def listed(question: str) -> Callable[[int], list[SimpleNamespace]]:
        def answer(index: int) -> list[SimpleNamespace]:
            found = answers.get(f"{question}{index}", [])
            if isinstance(found, int):
                raise RefusedError(found)
            return [
                SimpleNamespace(pid=pid, usedGpuMemory=used, gpuInstanceId=0xFFFFFFFF)
                for pid, used in found
            ]

        return answer

    def no_mig(index: int) -> tuple[int, int]:
        raise RefusedError(3)

    def start() -> None:
        if "init" in answers:
            raise RefusedError(answers["init"])

    return SimpleNamespace(
        NVMLError=RefusedError,
        nvmlInit=start,
        nvmlShutdown=lambda: None,
        nvmlSystemGetDriverVersion=lambda: "570.172.08",
        nvmlDeviceGetCount=lambda: 2,
        nvmlDeviceGetHandleByIndex=lambda index: index,
        nvmlDeviceGetPciInfo=lambda index: SimpleNamespace(
            busId=f"00000000:{index}9:00.0", pciDeviceId=0, pciSubSystemId=0
        ),
        nvmlDeviceGetMigMode=no_mig,
        nvmlDeviceGetUUID=lambda index: f"GPU-{index}",
        nvmlDeviceGetName=lambda index: "NVIDIA L40S",
        nvmlDeviceGetMinorNumber=lambda index: index,
        nvmlDeviceGetArchitecture=lambda index: 8,
        nvmlDeviceGetComputeRunningProcesses=listed("compute"),
        nvmlDeviceGetGraphicsRunningProcesses=listed("graphics"),
    )


def read(monkeypatch: pytest.MonkeyPatch, **answers: Any) -> gpu_seen.Seen:
    monkeypatch.setattr(gpu_seen.nvml_library, "load", lambda: library(**answers))
    return gpu_seen.read(5)


def test_memory_is_summed_over_gpus_and_counted_once_a_gpu(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mib = 1 << 20
    seen = read(
        monkeypatch,
        compute0=[(10, 100 * mib), (11, 7 * mib)],
        compute1=[(10, 50 * mib), (12, None)],
        graphics0=[(10, 100 * mib)],
        graphics1=3,
    )
    assert seen.memory_mib == {10: 150, 11: 7, 12: None}
    assert [gpu["uuid"] for gpu in seen.mig] == ["GPU-0", "GPU-1"]


def test_a_driver_that_refuses_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RollbackError, match="reboot after the driver's upgrade"):
        read(monkeypatch, init=18)


def test_a_host_without_pynvml_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_seen.nvml_library, "load", lambda: None)
    with pytest.raises(RollbackError, match="no pynvml on this host"):
        gpu_seen.read(5)
