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

PROGRAM = """
import json, sys
from ansible_collections.steadygpu.host.plugins.module_utils.hardware import inventory, model
root, deadline_s = sys.argv[1], float(sys.argv[2])
print(json.dumps(model.as_facts(inventory.collect(root, deadline_s))))
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
    """The lab's PCIe tree: two GPUs a switch, two switches a NUMA node."""
    host.driver()
    minor = 0
    for node, bus in ((0, 0x20), (1, 0x40)):
        for switch in (0, 1):
            first = bus + 1 + switch * 4
            above = [f"0000:{bus:02x}:{switch:02x}.0", f"0000:{first:02x}:00.0"]
            for port in (0, 1):
                address = f"0000:{first + 2 + port:02x}:00.0"
                host.pci([*above, f"0000:{first + 1:02x}:{port:02x}.0", address], numa_node=node)
                host.proc_gpu(address, minor, f"GPU-{minor}")
                minor += 1
    return host


def collect(simulation: Path, root: str, deadline_s: float = 20, **state: str) -> dict[str, Any]:
    """The facts, with lines of the state file replaced: ``fail="timeout"``."""
    text = (simulation / "state").read_text()
    for key, value in state.items():
        text = "".join(
            f"{key} {value}\n" if line.startswith(f"{key} ") else line
            for line in text.splitlines(keepends=True)
        )
    changed = Path(root, "state")
    changed.write_text(text)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, root, str(deadline_s)],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(sys.path),
            "LD_LIBRARY_PATH": str(simulation),
            "SIMGPU_STATE": str(changed),
        },
        stdout=subprocess.PIPE,
        check=True,
    )
    facts: dict[str, Any] = json.loads(done.stdout)
    return facts


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
    assert first["mig"] == {"supported": True, "current": False, "pending": False}
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
