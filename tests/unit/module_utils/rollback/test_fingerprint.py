# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils import process
from ansible_collections.steadygpu.host.plugins.module_utils.hardware import guarded
from ansible_collections.steadygpu.host.plugins.module_utils.rollback.model import RollbackError
from ansible_collections.steadygpu.host.plugins.module_utils.rollback.observation import (
    device_rules,
    fingerprint,
)
from ansible_collections.steadygpu.host.tests.unit.module_utils.hardware.recorded_host import Host
from ansible_collections.steadygpu.host.tests.unit.module_utils.rollback.recorded_bundles import (
    KUBERNETES,
    bundle,
    gpu_rules,
    program,
    specification,
)
from ansible_collections.steadygpu.host.tests.unit.module_utils.rollback.recorded_bundles import (
    process as one_process,
)

ID = "4a" * 32
OTHER = "b7" * 32
UUID = "GPU-5c0f3ad2-8a1e-4c3b-9d5e-2f7a6b1c4d3e"


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    """An empty root, and no programs."""
    monkeypatch.setattr(process, "_SEARCH_PATH", str(tmp_path / "no-programs"))
    return Host(tmp_path)


def information(**changed: str) -> str:
    values = {
        "Model": "NVIDIA H200",
        "IRQ": "121",
        "GPU UUID": UUID,
        "Video BIOS": "96.00.A0.00.01",
        "Bus Type": "PCIe",
        "DMA Size": "52 bits",
        "DMA Mask": "0xfffffffffffff",
        "Bus Location": "0000:19:00.0",
        "Device Minor": "0",
        "GPU Firmware": "570.172.08",
        "GPU Excluded": "No",
        **changed,
    }
    return "".join(f"{key}: \t {value}\n" for key, value in values.items())


def driver(host: Host, **changed: str) -> dict[str, object]:
    host.driver()
    host.write("proc/driver/nvidia/gpus/0000:19:00.0/information", information(**changed))
    return fingerprint.driver(5, host.root)


def test_device_nodes_with_their_numbers(host: Host) -> None:
    for path in ("nvidia0", "nvidiactl", "nvidia-caps/nvidia-cap1"):
        node = Path(host.root, "dev", path)
        node.parent.mkdir(parents=True, exist_ok=True)
        node.symlink_to("/dev/null")  # a character device that every user may make a link to
    assert fingerprint.devices(host.root) == {
        "/dev/nvidia-caps/nvidia-cap1": "1:3",
        "/dev/nvidia0": "1:3",
        "/dev/nvidiactl": "1:3",
    }


def test_a_host_without_driver(host: Host) -> None:
    assert fingerprint.driver(5, host.root) == {}
    assert fingerprint.devices(host.root) == {}


def test_the_driver_by_its_lasting_lines(host: Host) -> None:
    told = driver(host)
    assert str(told["version"]).startswith("NVIDIA UNIX Open Kernel Module for x86_64 550.163.01")
    assert told["gpus"] == {
        "0000:19:00.0": {
            "Model": "NVIDIA H200",
            "GPU UUID": UUID,
            "Video BIOS": "96.00.A0.00.01",
            "Bus Type": "PCIe",
            "Bus Location": "0000:19:00.0",
            "Device Minor": "0",
            "GPU Firmware": "570.172.08",
            "GPU Excluded": "No",
        }
    }


@pytest.mark.parametrize("line", ["IRQ", "DMA Size", "DMA Mask"])
def test_what_the_kernel_gives_anew_at_each_boot_does_not_count(host: Host, line: str) -> None:
    assert driver(host, **{line: "7"}) == driver(host)


@pytest.mark.parametrize(
    "line", ["GPU UUID", "Video BIOS", "GPU Firmware", "GPU Excluded", "Device Minor"]
)
def test_what_somebody_changed_counts(host: Host, line: str) -> None:
    assert driver(host, **{line: "7"}) != driver(host)


def test_a_gpu_that_was_not_opened_yet_knows_less(host: Host) -> None:
    gpus = driver(
        host,
        **{"GPU UUID": "GPU-????????-????-????-????-????????????", "Video BIOS": "??.??.??.??.??"},
    )["gpus"]
    assert isinstance(gpus, dict)
    assert not {"GPU UUID", "Video BIOS"} & gpus["0000:19:00.0"].keys()
    assert gpus["0000:19:00.0"]["Model"] == "NVIDIA H200"


def test_a_driver_that_does_not_answer_is_told(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    host.driver()
    slow = guarded.Outcome(reason="no answer in 5 s", unresponsive=True)
    monkeypatch.setattr(fingerprint.guarded, "call", lambda question, deadline_s: slow)
    with pytest.raises(RollbackError, match="no answer in 5 s"):
        fingerprint.driver(5, host.root)


def test_the_toolkit_by_its_content(
    host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = "usr/lib/x86_64-linux-gnu/libnvidia-container.so.1"
    host.write(library, "a library")
    assert fingerprint.toolkit(host.root) == {
        "/" + library: hashlib.sha256(b"a library").hexdigest()
    }
    program(tmp_path / "bin", "nvidia-ctk", "exit 0\n")
    monkeypatch.setattr(process, "_SEARCH_PATH", str(tmp_path / "bin"))
    monkeypatch.setattr(fingerprint, "_LIBRARIES", ())
    digest = hashlib.sha256(b"#!/bin/sh\nexit 0\n").hexdigest()
    assert fingerprint.toolkit() == {str(tmp_path / "bin/nvidia-ctk"): digest}


# -- containers ---------------------------------------------------------------------------


def look(host: Host, **named: object) -> dict[str, dict[str, object]]:
    """The containers of the recorded host; by default NVML tells of nobody."""
    asked = {"listed": {}, "memory_mib": {}, "deadline_s": 5, "root": host.root, **named}
    return fingerprint.containers(device_rules.running(host.root), **asked)  # type: ignore[arg-type]


def test_gpu_containers_alone_with_rules_and_memory(host: Host) -> None:
    bundle(host, ID, 100, specification(gpu_rules(0)))
    bundle(host, OTHER, 200, specification())
    one_process(host, 101, f"/ai.slice/docker-{ID}.scope")
    one_process(host, 900, "/user.slice")
    found = look(host, memory_mib={100: 512, 101: 1024, 900: 77})
    assert list(found) == [ID]
    assert found[ID]["gpu_memory_mib"] == 1536
    assert found[ID]["namespace"] == "moby"
    assert "c 195:0 rw allow" in found[ID]["device_rules"]  # type: ignore[operator]


def test_memory_that_nobody_told_is_unknown_and_not_none(host: Host) -> None:
    bundle(host, ID, 100, specification(gpu_rules(0)))
    assert look(host)[ID]["gpu_memory_mib"] == 0
    assert look(host, memory_mib=None)[ID]["gpu_memory_mib"] is None
    assert look(host, memory_mib={100: None})[ID]["gpu_memory_mib"] is None


def test_a_container_that_the_rules_hide_is_found_by_its_process(host: Host) -> None:
    bundle(host, ID, 100, specification())
    one_process(host, 300, "/lxc.payload.build")
    found = look(host, memory_mib={100: 5, 300: 6})
    assert {name: one["gpu_memory_mib"] for name, one in found.items()} == {ID: 5, "build": 6}
    assert found["build"]["device_rules"] == []


def test_names_by_whoever_knows_them(host: Host) -> None:
    bundle(host, ID, 100, specification(gpu_rules(0)))
    pod = {
        "io.kubernetes.cri.container-name": "main",
        "io.kubernetes.cri.sandbox-name": "train-0",
        "io.kubernetes.cri.sandbox-namespace": "ml",
    }
    spec = specification(gpu_rules(1), annotations=pod)
    bundle(host, OTHER, 200, spec, KUBERNETES, f"/kubepods.slice/cri-containerd-{OTHER}.scope")
    bundle(host, "job", 300, specification(gpu_rules(2)), KUBERNETES, "/default/job")
    found = look(host, listed={ID: fingerprint.Listed("trainer")})
    assert {one["name"] for one in found.values()} == {"trainer", "ml/train-0/main", "job"}
    assert look(host)[ID]["name"] == ID[:12]


@pytest.mark.parametrize("data_root", [None, "/srv/docker"])
def test_the_runtime_is_the_name_that_docker_baked_in(host: Host, data_root: str | None) -> None:
    bundle(host, ID, 100, specification(gpu_rules(0)), runtime="/usr/bin/nvidia-container-runtime")
    assert look(host)[ID]["runtime"] == "nvidia-container-runtime"
    if data_root:
        host.write("etc/docker/daemon.json", json.dumps({"data-root": data_root}))
    directory = data_root or "/var/lib/docker"
    host.write(f"{directory[1:]}/containers/{ID}/hostconfig.json", '{"Runtime": "nvidia"}')
    assert look(host)[ID]["runtime"] == "nvidia"


def test_the_data_root_of_the_units_flags_is_known_by_what_is_mounted(host: Host) -> None:
    spec = specification(gpu_rules(0))
    root = "/data/docker/100000.100000"
    spec["mounts"] = [
        {"destination": "/proc", "source": "proc"},
        {"destination": "/etc/hosts", "source": f"{root}/containers/{ID}/hosts"},
    ]
    bundle(host, ID, 100, spec, runtime="/usr/bin/nvidia-container-runtime")
    host.write(f"{root[1:]}/containers/{ID}/hostconfig.json", '{"Runtime": "gpu"}')
    assert look(host)[ID]["runtime"] == "gpu"


def test_a_gpu_that_systemd_does_not_know_of_is_visible(
    host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hook = ["/usr/bin/nvidia-container-runtime-hook"]
    bundle(host, ID, 100, specification(env=["NVIDIA_VISIBLE_DEVICES=0"], hooks=hook))
    shown = f"Id=docker-{ID}.scope\nLoadState=loaded\nDevicePolicy=strict\n"
    shown += "DeviceAllow=/dev/char/1:3 rwm\n"
    program(tmp_path / "bin", "systemctl", f"cat <<'END'\n{shown}END\n")
    monkeypatch.setattr(process, "_SEARCH_PATH", f"{tmp_path}/bin:/usr/bin:/bin")
    rules = look(host)[ID]["device_rules"]
    assert isinstance(rules, list)
    assert rules[-2:] == ["systemd DevicePolicy=strict", "systemd DeviceAllow=/dev/char/1:3 rwm"]
    assert not [rule for rule in rules if "195:" in rule]
