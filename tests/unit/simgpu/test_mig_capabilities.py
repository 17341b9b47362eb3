# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The kernel side of MIG below $SIMGPU_ROOT, and what nvidia-ctk makes of it."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from simgpu_guest import hold, procfs

LAYOUT = """
h = gpu({gpu})
n.nvmlDeviceSetMigMode(h, 1)
for profile, computes in ((19, (0,)), (9, (1, 0))):
    gi = create(h, profile)
    for compute in computes:
        n.nvmlGpuInstanceCreateComputeInstance(gi, compute)
out = 0
"""


@pytest.fixture
def machine(driver: Callable[[str], Any], tmp_path: Path) -> Callable[[str], tuple[Any, Path]]:
    """A driver whose /proc and /dev are a directory."""

    def make(profile: str) -> tuple[Any, Path]:
        simulated, root = driver(profile), tmp_path / "root"
        simulated.environment["SIMGPU_ROOT"] = str(root)
        (root / "proc/driver/nvidia/capabilities/mig").mkdir(parents=True)
        (root / "proc/driver/nvidia-caps").mkdir()
        (root / "proc/driver/nvidia-caps/mig-minors").write_text(procfs.mig_minors())
        (root / "dev/nvidia-caps").mkdir(parents=True)
        return simulated, root

    return make


def shown(root: Path) -> dict[str, int]:
    """Capability file -> DeviceFileMinor."""
    base = root / "proc/driver/nvidia/capabilities"
    return {
        str(path.relative_to(base)): int(path.read_text().splitlines()[0].split()[1])
        for path in base.rglob("access")
    }


def test_the_table_of_minors_is_the_modules() -> None:
    lines = procfs.mig_minors().splitlines()
    assert lines[:5] == [
        "config 1",
        "monitor 2",
        "gpu0/gi0/access 3",
        "gpu0/gi0/ci0/access 4",
        "gpu0/gi0/ci1/access 5",
    ]
    assert lines[-1] == "gpu31/gi14/ci7/access 4322"


def test_capabilities_follow_the_instances(machine: Callable[[str], tuple[Any, Path]]) -> None:
    simulated, root = machine("dgx-a100")
    simulated.ask(LAYOUT.format(gpu=2))
    minors = dict(line.split() for line in procfs.mig_minors().splitlines())
    names = [
        "gi1/access",
        "gi1/ci0/access",
        "gi1/ci1/access",
        "gi7/access",
        "gi7/ci0/access",
    ]
    assert shown(root) == {f"gpu2/mig/{name}": int(minors[f"gpu2/{name}"]) for name in names}
    text = (root / "proc/driver/nvidia/capabilities/gpu2/mig/gi7/access").read_text()
    assert re.fullmatch(r"DeviceFileMinor: 336\nDeviceFileMode: 292\nDeviceFileModify: 1\n", text)
    simulated.ask(
        "h = gpu(2); gi = n.nvmlDeviceGetGpuInstanceById(h, 7)\n"
        "n.nvmlComputeInstanceDestroy(n.nvmlGpuInstanceGetComputeInstanceById(gi, 0))\n"
        "n.nvmlGpuInstanceDestroy(gi); out = 0"
    )
    assert sorted(shown(root)) == [f"gpu2/mig/{name}" for name in names[:3]]


def test_capabilities_of_lost_files_come_back_with_the_next_change(
    machine: Callable[[str], tuple[Any, Path]],
) -> None:
    simulated, root = machine("dgx-a100")
    simulated.ask(LAYOUT.format(gpu=0))
    before = shown(root)
    (root / "proc/driver/nvidia/capabilities/gpu0/mig/gi1/access").unlink()
    simulated.ask("n.nvmlDeviceSetMigMode(gpu(0), 1); out = 0")
    assert shown(root) == before


def test_hold_opens_the_nodes_of_the_table(driver: Callable[[str], Any]) -> None:
    state = driver("dgx-a100").state
    minors = dict(line.split() for line in procfs.mig_minors().splitlines())
    assert hold.paths(state, "3/7/1") == [
        Path("/dev/nvidia3"),
        Path(f"/dev/nvidia-caps/nvidia-cap{minors['gpu3/gi7/access']}"),
        Path(f"/dev/nvidia-caps/nvidia-cap{minors['gpu3/gi7/ci1/access']}"),
    ]
    assert hold.paths(state, "0") == [Path("/dev/nvidia0")]
    for wrong in ("8", "x", "0/x", ""):
        with pytest.raises(hold.HoldError, match=r"want GPU\[/GI\[/CI\]\], 8 GPUs are loaded"):
            hold.paths(state, wrong)


def put_nodes(root: Path) -> None:
    """Stand-ins for the capability nodes: nobody needs to be root to make these."""
    for minor in shown(root).values():
        (root / f"dev/nvidia-caps/nvidia-cap{minor}").touch()


def test_spec_names_mig_devices_and_not_their_gpu(
    machine: Callable[[str], tuple[Any, Path]], ctk: Any
) -> None:
    simulated, root = machine("a100-pcie-bridge")
    simulated.ask(LAYOUT.format(gpu=1))
    put_nodes(root)
    done = ctk(simulated.environment, "cdi", "generate")
    assert done.returncode == 0, done.stderr
    devices = {
        entry["name"]: [node["path"] for node in entry["containerEdits"]["deviceNodes"]]
        for entry in yaml.safe_load(done.stdout)["devices"]
    }
    uuids = simulated.ask("out = [n.nvmlDeviceGetUUID(mig) for mig in mig_devices(gpu(1))]")
    whole = [simulated.state.gpus[index].values["uuid"] for index in (0, 2, 3)]
    indices = ["0", "1:0", "1:1", "1:2", "2", "3"]
    assert list(devices) == [*indices, whole[0], *uuids, *whole[1:], "all"]
    caps = [f"/dev/nvidia-caps/nvidia-cap{minor}" for minor in (201, 202)]
    assert devices["1:2"] == devices[uuids[2]] == ["/dev/nvidia1", *caps]
    assert devices["2"] == ["/dev/nvidia2"]
    assert len(devices["all"]) == 4 + 5  # each node once
    naming = ("--device-name-strategy", "type-index")
    done = ctk(simulated.environment, "cdi", "generate", *naming)
    names = [entry["name"] for entry in yaml.safe_load(done.stdout)["devices"]]
    assert names == ["gpu0", "mig1:0", "mig1:1", "mig1:2", "gpu2", "gpu3", "all"]


def test_mg_006_mig_without_instances_is_no_spec(
    machine: Callable[[str], tuple[Any, Path]], ctk: Any, tmp_path: Path
) -> None:
    simulated, _root = machine("a100-pcie-bridge")
    simulated.ask("for i in range(4): n.nvmlDeviceSetMigMode(gpu(i), 1)\nout = 0")
    done = ctk(simulated.environment, "cdi", "generate", "--output", str(tmp_path / "x.yaml"))
    assert done.returncode == 1
    assert "no usable device: 4 GPUs in MIG mode without instances" in done.stderr
    assert not (tmp_path / "x.yaml").exists()


def test_without_the_table_of_minors_generating_fails(
    machine: Callable[[str], tuple[Any, Path]], ctk: Any
) -> None:
    simulated, root = machine("a100-pcie-bridge")
    simulated.ask(LAYOUT.format(gpu=0))
    (root / "proc/driver/nvidia-caps/mig-minors").unlink()
    done = ctk(simulated.environment, "cdi", "generate")
    assert done.returncode == 1
    assert "mig-minors" in done.stderr


def test_without_capability_nodes_the_spec_silently_lacks_them(
    machine: Callable[[str], tuple[Any, Path]], ctk: Any
) -> None:
    simulated, root = machine("a100-pcie-bridge")
    simulated.ask(LAYOUT.format(gpu=0))
    for node in (root / "dev/nvidia-caps").iterdir():
        node.unlink()
    done = ctk(simulated.environment, "cdi", "generate")
    assert done.returncode == 0
    device = next(e for e in yaml.safe_load(done.stdout)["devices"] if e["name"] == "0:0")
    assert device["containerEdits"] == {"deviceNodes": [{"path": "/dev/nvidia0"}]}
    assert "cap" not in done.stderr
