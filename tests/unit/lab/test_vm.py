# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A pid file is believed only when the process is the machine's qemu."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ansible_collections.steadygpu.host.tests.lab import vm
from ansible_collections.steadygpu.host.tests.lab.console import LabError


def fake_process(proc: Path, pid: int, words: list[str]) -> None:
    (proc / str(pid)).mkdir(parents=True)
    (proc / str(pid) / "cmdline").write_bytes(b"\0".join(w.encode() for w in words) + b"\0")


DIRECTORY = Path("/cache/hosts/1-a")
OURS = ["qemu-system-x86_64", "-drive", "id=root,if=none,file=/cache/hosts/1-a/disk.qcow2"]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (OURS, True),
        (["/usr/bin/qemu-system-x86_64", *OURS[1:]], True),
        (["qemu-system-x86_64", "-drive", "file=/cache/hosts/1-ab/disk.qcow2"], False),
        (["qemu-system-x86_64", "-drive", "id=root,file=/other/hosts/1-a/disk.qcow2"], False),
        (["less", "file=/cache/hosts/1-a/disk.qcow2"], False),
        ([""], False),
    ],
)
def test_only_the_qemu_on_this_disk_is_the_machine(
    tmp_path: Path, words: list[str], expected: bool
) -> None:
    fake_process(tmp_path, 4242, words)
    assert vm.is_machine(4242, DIRECTORY, proc=str(tmp_path)) is expected


def test_a_number_without_a_process_is_no_machine(tmp_path: Path) -> None:
    assert not vm.is_machine(4242, DIRECTORY, proc=str(tmp_path))


@pytest.mark.parametrize("content", ["", "many\n", pytest.param(str(os.getpid()), id="stranger")])
def test_a_stale_or_broken_pid_file_means_not_running(tmp_path: Path, content: str) -> None:
    (tmp_path / vm.PID_FILE).write_text(content)
    assert vm.running_pid(tmp_path) is None


def test_stopping_leaves_a_stranger_with_our_old_number_alone(tmp_path: Path) -> None:
    stranger = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        (tmp_path / vm.PID_FILE).write_text(str(stranger.pid))
        vm.stop(tmp_path)
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.communicate()


def test_stop_ends_the_machine(tmp_path: Path) -> None:
    disk = f"file={tmp_path / vm.DISK}"
    # A program under qemu's name: what matters is what /proc says.
    machine = subprocess.Popen(
        ["qemu-system-x86_64", "-c", "input()", disk],
        executable=sys.executable,
        stdin=subprocess.PIPE,
    )
    (tmp_path / vm.PID_FILE).write_text(str(machine.pid))
    deadline = time.monotonic() + 10
    while vm.running_pid(tmp_path) is None and time.monotonic() < deadline:
        pass
    assert vm.running_pid(tmp_path) == machine.pid
    vm.stop(tmp_path)
    machine.communicate()
    assert machine.returncode is not None
    assert vm.running_pid(tmp_path) is None


def test_too_little_memory_is_said_before_the_boot(tmp_path: Path) -> None:
    meminfo = tmp_path / "meminfo"
    meminfo.write_text("MemTotal: 9000000 kB\nMemAvailable: 1048576 kB\n")
    with pytest.raises(LabError, match="1024 MiB are available; stop another"):
        vm.require_memory(str(meminfo))


def test_a_missing_qemu_names_the_way_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="setup"):
        vm.start(tmp_path, lambda port: ["/nonexistent/qemu-system-x86_64"])


def test_a_taken_port_is_replaced_by_another(tmp_path: Path) -> None:
    ports: list[int] = []

    def command(port: int) -> list[str]:
        ports.append(port)
        script = "echo 'Could not set up host forwarding rule' >&2; exit 1"
        return ["sh", "-c", script]

    with pytest.raises(LabError, match="no free TCP port"):
        vm.start(tmp_path, command)
    assert len(set(ports)) > 1


def test_qemus_own_words_are_in_the_error(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="no such bus"):
        vm.start(tmp_path, lambda port: ["sh", "-c", "echo 'no such bus' >&2; exit 1"])
