# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a check reads from a host: recorded trees in, plain facts out."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.evidence import (
    containers,
    files,
    gather,
    kernels,
    machine,
    sockets,
    software,
    walk,
)


def write(root: Path, path: str, text: str) -> Path:
    target = root / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text)
    return target


def test_texts_are_read_once_and_by_the_path_the_host_has(tmp_path):
    write(tmp_path, "etc/docker/daemon.json", '{"debug": true}')
    write(tmp_path, "etc/cdi/nvidia.yaml", "cdiVersion: 0.7.0\n")
    os.symlink(tmp_path / "etc/cdi/nvidia.yaml", tmp_path / "etc/cdi/other.yaml")
    texts, left_out = files.read_texts(str(tmp_path))
    assert texts == {
        "/etc/docker/daemon.json": '{"debug": true}',
        "/etc/cdi/nvidia.yaml": "cdiVersion: 0.7.0\n",
    }
    assert left_out == {}


def test_what_cannot_be_read_is_named_and_nothing_hangs(tmp_path):
    (tmp_path / "etc/docker").mkdir(parents=True)
    os.mkfifo(tmp_path / "etc/docker/daemon.json")
    write(tmp_path, "etc/sysctl.conf", "#" * (files.LIMIT_BYTES + 1))
    os.makedirs(tmp_path / "etc/containerd/config.toml")
    texts, left_out = files.read_texts(str(tmp_path))
    assert texts == {}
    assert "not a regular file" in left_out["/etc/docker/daemon.json"]
    assert "longer than" in left_out["/etc/sysctl.conf"]
    assert "/etc/containerd/config.toml" in left_out


def test_bytes_that_are_no_text_do_not_raise(tmp_path):
    (tmp_path / "etc/docker").mkdir(parents=True)
    (tmp_path / "etc/docker/daemon.json").write_bytes(b'{"labels": ["\xff"]}')
    texts, _left = files.read_texts(str(tmp_path))
    assert "\ufffd" in texts["/etc/docker/daemon.json"]


def test_the_machine_as_the_kernel_shows_it(tmp_path):
    write(tmp_path, "sys/devices/system/cpu/online", "0-15\n")
    write(tmp_path, "proc/meminfo", "MemTotal:       65536000 kB\nMemFree: 1 kB\n")
    write(tmp_path, "sys/devices/system/node/node0/cpulist", "0-7\n")
    write(tmp_path, "sys/devices/system/node/node1/cpulist", "8-15\n")
    write(tmp_path, "sys/fs/cgroup/io.cost.qos", "253:0 enable=1 ctrl=auto\n8:0 enable=0\n")
    (tmp_path / "sys/block/vda").mkdir(parents=True)
    (tmp_path / "sys/dev/block").mkdir(parents=True)
    os.symlink(tmp_path / "sys/block/vda", tmp_path / "sys/dev/block/253:0")
    write(tmp_path, "sys/block/sdb/queue/scheduler", "none mq-deadline [bfq]\n")
    write(tmp_path, "sys/fs/selinux/enforce", "1")
    write(tmp_path, "proc/sys/kernel/numa_balancing", "1\n")
    write(tmp_path, "sys/bus/pci/devices/0000:01:00.0/class", "0x030200\n")
    write(tmp_path, "sys/bus/pci/devices/0000:01:00.0/vendor", "0x10de\n")
    write(tmp_path, "sys/bus/pci/devices/0000:02:00.0/class", "0x020000\n")
    write(tmp_path, "sys/bus/pci/devices/0000:02:00.0/vendor", "0x8086\n")
    assert machine.read(str(tmp_path)) == {
        "vendors": ["nvidia"],
        "cpus": "0-15",
        "memory_mib": 64000,
        "nodes": {"0": "0-7", "1": "8-15"},
        "io": {"iocost": ["vda"], "bfq": ["sdb"]},
        "selinux": "enforcing",
        "sysctl": {"kernel.numa_balancing": "1"},
    }


def test_a_bare_tree_has_no_machine_and_does_not_raise(tmp_path):
    found = machine.read(str(tmp_path))
    assert (found["cpus"], found["memory_mib"], found["nodes"]) == (None, None, {})
    assert found["selinux"] == "disabled"


ANY6 = "0" * 32


def table(*rows: tuple[str, str, int]) -> str:
    """/proc/net/tcp with a row for each local address, state and inode."""
    lines = ["sl local_address rem_address st tx_queue:rx_queue tr:tm->when retrnsmt uid timeout"]
    for place, (address, state, inode) in enumerate(rows):
        lines.append(f"{place}: {address} 0:0000 {state} 0:0 00:0 0 0 0 {inode} 1")
    return "\n".join(lines) + "\n"


TCP = table(
    ("00000000:0947", "0A", 4242), ("0100007F:0016", "0A", 4243), ("0A00A8C0:0050", "01", 4244)
)
TCP6 = table(
    (f"{ANY6}:0948", "0A", 77),
    ("00000000000000000000000001000000:0949", "0A", 78),
    ("0000000000000000FFFF00000100007F:094A", "0A", 79),
    ("000080FE00000000FF005450B6AD1DFE:094B", "0A", 80),
)


def test_only_listeners_that_others_can_reach_count():
    assert sockets.parse_tcp(TCP) == {"4242": "0.0.0.0:2375"}
    found = sockets.parse_tcp(TCP6)
    assert found["77"] == "[::]:2376"
    assert "78" not in found
    assert "79" not in found
    assert found["80"].startswith("[fe80:0:0:0:")


def test_the_owner_of_a_listener_is_named(tmp_path):
    write(tmp_path, "proc/net/tcp", TCP)
    write(tmp_path, "proc/10/comm", "dockerd\n")
    (tmp_path / "proc/10/fd").mkdir()
    os.symlink("socket:[4242]", tmp_path / "proc/10/fd/3")
    assert sockets.read_listeners(str(tmp_path)) == [
        {"address": "0.0.0.0:2375", "process": "dockerd"}
    ]


def test_the_kernel_of_the_next_boot_and_those_with_a_driver(tmp_path):
    dep = "kernel/fs/ext4/ext4.ko.xz: kernel/lib/crc16.ko.xz\n"
    write(tmp_path, "lib/modules/6.1.0-1/modules.dep", dep + "updates/dkms/nvidia.ko.xz:\n")
    write(tmp_path, "lib/modules/6.1.0-2/modules.dep", dep + "updates/dkms/nvidia-peermem.ko:\n")
    write(tmp_path, "lib/modules/6.1.0-3/modules.dep", "updates/dkms/nvidia-current.ko: a.ko\n")
    os.symlink("boot/vmlinuz-6.1.0-2", tmp_path / "vmlinuz")
    assert kernels.read(str(tmp_path), running="6.1.0-1") == {
        "running": "6.1.0-1",
        "next": "6.1.0-2",
        "driver_built_for": ["6.1.0-1", "6.1.0-3"],
    }


@pytest.mark.parametrize(
    ("text", "enabled", "blacklist"),
    [
        ("", False, []),
        ('APT::Periodic::Unattended-Upgrade "1";', True, []),
        ('// APT::Periodic::Unattended-Upgrade "1";', False, []),
        (
            'APT::Periodic::Unattended-Upgrade "1";\n'
            'Unattended-Upgrade::Package-Blacklist {\n  "nvidia-";\n//  "libc6";\n  "cuda-";\n};',
            True,
            ["nvidia-", "cuda-"],
        ),
    ],
)
def test_automatic_upgrades_and_what_they_pass_by(text, enabled, blacklist):
    assert software.parse_unattended(text) == {"enabled": enabled, "blacklist": blacklist}


def test_candidates_of_held_packages():
    text = (
        "runc:\n  Installed: 1.1.5+ds1-1\n  Candidate: 1.1.5+ds1-1+deb12u1\n"
        "gone:\n  Installed: 1\n  Candidate: (none)\n"
    )
    assert software.parse_policy(text) == {"runc": "1.1.5+ds1-1+deb12u1"}


def inspected(**host: object) -> dict[str, object]:
    return {"Id": "c" * 64, "Name": "/job", "State": {"Pid": 7}, "HostConfig": host, "Config": {}}


@pytest.mark.parametrize(
    ("host", "how"),
    [
        ({"DeviceRequests": [{"Driver": "cdi", "DeviceIDs": ["nvidia.com/gpu=0"]}]}, "cdi"),
        ({"DeviceRequests": [{"Driver": "", "Capabilities": [["gpu"]]}]}, "hook"),
        ({"Devices": [{"PathOnHost": "/dev/nvidia0"}]}, "device"),
        ({"Devices": [{"PathOnHost": "/dev/fuse"}]}, "none"),
        ({}, "none"),
    ],
)
def test_how_a_container_got_its_gpu(host, how):
    described = containers.describe(inspected(**host), "runc")
    assert described["gpus"] == how
    assert (described["name"], described["pid"], described["runtime"]) == ("job", 7, "runc")


def test_a_runtime_is_judged_by_its_program():
    container = inspected(Runtime="gpu")
    container["Config"] = {"Env": ["NVIDIA_VISIBLE_DEVICES=all"]}
    known = {"gpu": {"path": "/usr/bin/nvidia-container-runtime"}}
    assert containers.describe(container, "runc", known)["gpus"] == "hook"
    known = {"gpu": {"path": "/usr/bin/crun"}}
    assert containers.describe(container, "runc", known)["gpus"] == "none"


def test_all_evidence_of_this_machine_is_json_and_names_its_schema():
    evidence = gather.gather({})
    assert json.loads(json.dumps(evidence))["schema"] == gather.SCHEMA
    assert evidence["containers"] is None


def test_directories_are_walked_for_known_kinds_and_named_files_are_read_in_any_case(tmp_path):
    compose = write(tmp_path, "stacks/a/compose.yaml", "services: {}\n")
    write(tmp_path, "stacks/a/photo.jpg", "not looked at")
    write(tmp_path, "stacks/.git/config.yaml", "not looked at")
    write(tmp_path, "stacks/vendor/compose.yaml", "not looked at")
    os.symlink(tmp_path / "stacks", tmp_path / "stacks/a/again")
    named = write(tmp_path, "run-me", "docker run ubuntu\n")
    missing = str(tmp_path / "nowhere")
    texts, left_out = walk.read_paths([str(tmp_path / "stacks"), str(named), missing])
    assert texts == {str(compose): "services: {}\n", str(named): "docker run ubuntu\n"}
    assert left_out == {missing: "No such file or directory"}


def test_a_directory_that_cannot_be_listed_is_named_and_the_others_are_walked(
    tmp_path, monkeypatch
):
    compose = write(tmp_path, "a/compose.yaml", "services: {}\n")
    (tmp_path / "closed").mkdir()
    listing = os.scandir

    def scandir(path):
        if path.endswith("closed"):
            raise PermissionError(13, "Permission denied")
        return listing(path)

    monkeypatch.setattr(walk.os, "scandir", scandir)
    texts, left_out = walk.read_paths([str(tmp_path)])
    assert list(texts) == [str(compose)]
    assert left_out == {str(tmp_path / "closed"): "Permission denied"}


def test_what_is_too_long_or_binary_is_named_where_it_was_asked_for(tmp_path):
    long = write(tmp_path, "compose.yaml", "#" * (files.LIMIT_BYTES + 1))
    binary = tmp_path / "program"
    binary.write_bytes(b"\x7fELF\0")
    texts, left_out = walk.read_paths([str(long), str(binary)])
    assert texts == {}
    assert "2 MiB" in left_out[str(long)]
    assert "binary" in left_out[str(binary)]


def test_pipes_and_directories_in_the_place_of_files_are_passed_by(tmp_path):
    (tmp_path / "apt").mkdir()
    os.mkfifo(tmp_path / "apt/10pipe")
    (tmp_path / "apt/20directory").mkdir()
    (tmp_path / "apt/30").write_text('APT::Periodic::Unattended-Upgrade "1";\n')
    assert software.read_unattended(str(tmp_path / "apt/*"))["enabled"]
    (tmp_path / "lib/modules/6.1").mkdir(parents=True)
    os.mkfifo(tmp_path / "lib/modules/6.1/modules.dep")
    assert kernels.read(str(tmp_path), "6.1")["driver_built_for"] == []
    (tmp_path / "etc/cdi").mkdir(parents=True)
    os.symlink("/dev/zero", tmp_path / "etc/cdi/zero.yaml")
    os.symlink("/proc/kcore", tmp_path / "etc/cdi/core.yaml")
    os.symlink("loop.yaml", tmp_path / "etc/cdi/loop.yaml")
    texts, left_out = files.read_texts(str(tmp_path))
    assert texts == {}
    assert set(left_out) >= {"/etc/cdi/zero.yaml", "/etc/cdi/core.yaml"}


def test_ten_thousand_files_are_not_all_read(tmp_path):
    (tmp_path / "etc/cdi").mkdir(parents=True)
    for number in range(10_000):
        (tmp_path / f"etc/cdi/{number}.yaml").touch()
    texts, left_out = files.read_texts(str(tmp_path))
    assert len(texts) == 500
    assert list(left_out.values()) == ["the rest was left out: more than 500 files or 32 MiB"]


def test_a_process_that_ends_while_it_is_read_is_passed_by(tmp_path, monkeypatch):
    gone = OSError(3, "No such process")

    def vanish(path: str) -> bytes:
        raise gone

    monkeypatch.setattr(files, "read_regular", vanish)
    assert files.text("/proc/1/comm") == ""


class SlowEngine:
    """Answers each question just within its own time."""

    def __init__(self) -> None:
        self.asked = 0

    def info(self) -> dict[str, str]:
        return {}

    def containers(self, include_stopped: bool) -> list[dict[str, str]]:
        return [{"Id": str(number)} for number in range(1000)]

    def inspect(self, container: str) -> dict[str, str]:
        self.asked += 1
        time.sleep(0.05)
        return {"Id": container}


def test_an_engine_that_drags_on_does_not_hold_up_the_check():
    engine = SlowEngine()
    assert containers.read(engine, {}, deadline_s=0.2) is None
    assert engine.asked < 20
