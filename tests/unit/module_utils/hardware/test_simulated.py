# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The inventory through the real pynvml, against the lab's simulated NVML library.

The library is chosen by LD_LIBRARY_PATH, which the loader reads when a process starts, so
every inventory is taken in a process of its own.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

CHECKOUT = Path(__file__).resolve().parents[4]
PROFILE = CHECKOUT / "tests" / "simgpu" / "profiles" / "dgx-a100.json"

pytest.importorskip("pynvml", reason="nvidia-ml-py is not installed for this Python")
pytestmark = pytest.mark.skipif(
    shutil.which("cc") is None and shutil.which("gcc") is None,
    reason="no C compiler to build the simulated NVML library with",
)

MIG_OFF = {"supported": True, "current": False, "pending": False}
MIG_ON = {"supported": True, "current": True, "pending": True}

PROGRAM = """
import json, sys
from ansible_collections.steadygpu.host.plugins.module_utils.hardware import inventory, model
root, deadline_s = sys.argv[1], float(sys.argv[2])
print(json.dumps(model.as_facts(inventory.collect(root, deadline_s))))
"""


# MIG on GPU 2 with a 3g.20gb, one slice of which is used, and a 1g.5gb; on GPU 3 without instances.
LAYOUT = """
import pynvml as n
n.nvmlInit()
for index in (2, 3):
    n.nvmlDeviceSetMigMode(n.nvmlDeviceGetHandleByIndex(index), 1)
gpu = n.nvmlDeviceGetHandleByIndex(2)
for profile in (n.NVML_GPU_INSTANCE_PROFILE_3_SLICE, n.NVML_GPU_INSTANCE_PROFILE_1_SLICE):
    info = n.nvmlDeviceGetGpuInstanceProfileInfo(gpu, profile)
    instance = n.nvmlDeviceCreateGpuInstance(gpu, info.id)
    one_slice = n.NVML_COMPUTE_INSTANCE_PROFILE_1_SLICE
    info = n.nvmlGpuInstanceGetComputeInstanceProfileInfo(instance, one_slice, 0)
    n.nvmlGpuInstanceCreateComputeInstance(instance, info.id)
n.nvmlShutdown()
"""


@pytest.fixture(scope="module")
def simulation(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the library and the state of eight A100 on NVSwitch."""
    output = tmp_path_factory.mktemp("simgpu")
    command = [sys.executable, str(CHECKOUT / "tests" / "simgpu"), "local"]
    subprocess.run(
        [*command, "--output", str(output), "--profile", "dgx-a100"],
        check=True,
        capture_output=True,
    )
    return output


@pytest.fixture
def machine(host):
    """A recorded DGX A100 without its NVML."""
    host.dgx_a100()
    host.write("proc/1/comm", "systemd\n")
    return host


def collect(
    simulation: Path, root: str, deadline_s: float = 20, extra: str = "", **state: str
) -> dict[str, Any]:
    """The facts, with lines of the state file replaced (``fail="timeout"``) and ``extra`` ones."""
    text = (simulation / "state").read_text()
    for key, value in state.items():
        text = "".join(
            f"{key} {value}\n" if line.startswith(f"{key} ") else line
            for line in text.splitlines(keepends=True)
        )
    Path(root, "state").write_text(text + extra)
    facts: dict[str, Any] = json.loads(run(simulation, root, PROGRAM, root, str(deadline_s)))
    return facts


def run(simulation: Path, root: str, *program: str) -> bytes:
    """The output of a Python program that has the simulated library and ``root``'s state."""
    env = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(sys.path),
        "LD_LIBRARY_PATH": str(simulation),
        "SIMGPU_STATE": str(Path(root, "state")),
    }
    argv = [sys.executable, "-c", *program]
    return subprocess.run(argv, env=env, stdout=subprocess.PIPE, check=True).stdout


def test_eight_a100_on_nvswitch(simulation, machine):
    facts = collect(simulation, machine.root)
    recorded = json.loads(PROFILE.read_text())["recorded"]["matrix"]
    assert facts["driver"]["status"] == "loaded"
    assert facts["driver"]["library_version"] == facts["driver"]["version"] == "550.163.01"
    assert facts["source"] == "nvml"
    assert facts["links"] == recorded
    assert [device["numa_node"] for device in facts["devices"]] == [0, 0, 0, 0, 1, 1, 1, 1]
    first = facts["devices"][0]
    assert first["name"] == "NVIDIA A100-SXM4-40GB"
    assert first["memory_mib"]["total"] == 40960
    assert first["mig"] == dict(MIG_OFF, devices=[])
    assert first["bar1_mib"]["total"] == 65536
    assert first["compute_mode"] == "default"
    assert facts["p2p"][0][0] == "X"
    assert {word for row in facts["topology"]["nvml"] for word in row} <= {
        "X",
        "PIX",
        "PXB",
        "PHB",
        "NODE",
        "SYS",
    }
    assert facts["topology"]["affinity"][0][1] == 1.0
    assert first["nvlink"]["count"] == 12
    assert {peer["type"] for peer in first["nvlink"]["peers"]} == {"switch"}
    assert all(device["error"] is None for device in facts["devices"])


def test_a_call_that_hangs_is_unresponsive_and_procfs_serves(simulation, machine):
    facts = collect(simulation, machine.root, deadline_s=0.5, fail="timeout")
    assert facts["driver"]["status"] == "unresponsive"
    assert facts["driver"]["reason"] == "unresponsive: no answer in 0.5 s"
    assert (facts["source"], len(facts["devices"])) == ("procfs", 8)
    assert facts["links"][0] == ["X", "PIX", "PHB", "PHB", "SYS", "SYS", "SYS", "SYS"]


def test_a_driver_nvml_cannot_reach(simulation, machine):
    facts = collect(simulation, machine.root, fail="driver_not_loaded")
    assert facts["driver"]["status"] == "not_loaded"
    assert facts["driver"]["reason"].startswith("NVML: Driver Not Loaded")


def test_a_library_of_another_release(simulation, machine):
    machine.driver(
        "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.90.07  Fri May 31 09:35:42 UTC 2024\n"
    )
    facts = collect(simulation, machine.root, module="550.90.07")
    assert facts["driver"]["status"] == "mismatch"
    assert facts["source"] == "procfs"


def test_a_lost_gpu_beside_seven_good_ones(simulation, machine):
    facts = collect(simulation, machine.root, **{"gpu 3 lost": "1"})
    errors = [device["error"] for device in facts["devices"]]
    assert errors == [None, None, None, "GPU is lost", None, None, None, None]
    assert facts["devices"][3]["pci_address"] == "0000:28:00.0"
    assert facts["driver"]["status"] == "loaded"


def test_mig_devices_of_two_gpus(simulation, machine):
    shutil.copy(simulation / "state", Path(machine.root, "state"))
    run(simulation, machine.root, LAYOUT)
    devices = collect(simulation, machine.root)["devices"]
    assert devices[0]["mig"] == dict(MIG_OFF, devices=[])
    assert devices[3]["mig"] == dict(MIG_ON, devices=[])  # MG-001
    whole, small = devices[2]["mig"]["devices"]
    assert (whole["profile"], whole["size"], small["profile"], small["size"]) == (
        "1c.3g.20gb",
        4,
        "1g.5gb",
        1,
    )
    assert whole["uuid"].startswith("MIG-")
    assert not whole["start"] <= small["start"] < whole["start"] + whole["size"]
    assert devices[2]["errors"].keys() <= {"xids"}


def test_a_running_process_is_a_holder_with_its_name(simulation, machine):
    os.symlink(f"/proc/{os.getpid()}", Path(machine.root, f"proc/{os.getpid()}"))
    extra = f"holder 5 {os.getpid()} trainer\n"
    devices = collect(simulation, machine.root, extra=extra)["devices"]
    (holder,) = devices[5]["holders"]
    assert holder["pid"] == os.getpid()
    assert holder["name"] == Path("/proc/self/comm").read_text().strip()
    assert devices[4]["holders"] == []
