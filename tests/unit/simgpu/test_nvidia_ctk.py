# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The stand-in for nvidia-ctk against the simulated library."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from simgpu_image import packages


def test_spec_has_every_gpu_by_index_and_uuid_and_all(
    driver: Callable[[str], Any], ctk: Any
) -> None:
    simulated = driver("a100-pcie-bridge")
    done = ctk(simulated.environment, "cdi", "generate")
    spec = yaml.safe_load(done.stdout)
    assert (spec["cdiVersion"], spec["kind"]) == ("0.7.0", "nvidia.com/gpu")
    uuids = [gpu.values["uuid"] for gpu in simulated.state.gpus]
    assert [device["name"] for device in spec["devices"]] == ["0", "1", "2", "3", *uuids, "all"]
    assert spec["devices"][2]["containerEdits"] == {"deviceNodes": [{"path": "/dev/nvidia2"}]}
    assert len(spec["devices"][-1]["containerEdits"]["deviceNodes"]) == 4
    assert spec["containerEdits"]["mounts"][0]["hostPath"].endswith("libnvidia-ml.so.550.163.01")


def test_yaml_and_json_say_the_same(driver: Callable[[str], Any], ctk: Any, tmp_path: Path) -> None:
    environment = driver("t4").environment
    naming = ("--device-name-strategy", "index")
    ctk(environment, "cdi", "generate", *naming, "--output", str(tmp_path / "cdi/a.yaml"))
    ctk(environment, "cdi", "generate", *naming, "--output", str(tmp_path / "cdi/b.json"))
    one = yaml.safe_load((tmp_path / "cdi/a.yaml").read_text())
    assert one == json.loads((tmp_path / "cdi/b.json").read_text())
    assert [device["name"] for device in one["devices"]] == ["0", "all"]


def test_without_a_driver_generating_fails_and_writes_nothing(
    driver: Callable[[str], Any], ctk: Any, tmp_path: Path
) -> None:
    simulated = driver("t4")
    simulated.path.unlink()
    done = ctk(simulated.environment, "cdi", "generate", "--output", str(tmp_path / "x.yaml"))
    assert done.returncode == 1
    assert "failed to initialize NVML: Driver Not Loaded" in done.stderr
    assert not (tmp_path / "x.yaml").exists()


def test_list_names_devices_and_drops_conflicting_ones(
    driver: Callable[[str], Any], ctk: Any, tmp_path: Path
) -> None:
    environment = driver("t4").environment
    ctk(environment, "cdi", "generate", "--output", str(tmp_path / "a.yaml"))
    uuid = driver("t4").state.gpus[0].values["uuid"]
    done = ctk(environment, "cdi", "list", "--spec-dir", str(tmp_path))
    assert done.stdout.split() == [f"nvidia.com/gpu={name}" for name in ("0", uuid, "all")]
    ctk(environment, "cdi", "generate", "--output", str(tmp_path / "b.json"))
    done = ctk(environment, "cdi", "list", "--spec-dir", str(tmp_path))
    assert (done.returncode, done.stdout) == (0, "")
    assert "conflicting device" in done.stderr


def test_docker_dry_run_changes_no_file_and_drops_other_features(
    driver: Callable[[str], Any], ctk: Any, tmp_path: Path
) -> None:
    config = tmp_path / "daemon.json"
    before = '{"live-restore": true, "features": {"buildkit": true}}'
    config.write_text(before)
    arguments = ("--config", str(config), "--cdi.enabled", "--dry-run")
    done = ctk(driver("t4").environment, "runtime", "configure", "--runtime", "docker", *arguments)
    assert json.loads(done.stdout) == {
        "live-restore": True,
        "features": {"cdi": True},
        "runtimes": {"nvidia": {"args": [], "path": "nvidia-container-runtime"}},
    }
    assert config.read_text() == before


def test_config_set_changes_one_value_in_place(
    driver: Callable[[str], Any], ctk: Any, sources: Path, tmp_path: Path
) -> None:
    config = tmp_path / "config.toml"
    config.write_text((sources / "toolkit/files/config.toml").read_text())
    changes = (
        "--set",
        "nvidia-container-runtime.mode=cdi",
        "--set",
        "nvidia-container-cli.no-cgroups=true",
    )
    done = ctk(driver("t4").environment, "config", "--config", str(config), *changes, "--in-place")
    assert done.returncode == 0, done.stderr
    text = config.read_text()
    assert 'mode = "cdi"\n' in text
    assert "no-cgroups = true\n" in text
    assert 'runtimes = ["runc", "crun"]\n' in text


@pytest.mark.parametrize("version", packages.VERSIONS)
def test_version_names_the_simulation(install: Callable[[str], Path], version: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "nvidia_ctk", "--version"],
        env={"PYTHONPATH": str(install(version))},
        capture_output=True,
        text=True,
        check=True,
    )
    upstream = version.partition("-")[0]
    assert done.stdout == (
        f"NVIDIA Container Toolkit CLI version {upstream} (steadygpu simulation)\n"
    )
