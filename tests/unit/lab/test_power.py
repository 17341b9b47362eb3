# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A power cut gives no last word, and what comes up again is the host's own disk."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ansible_collections.steadygpu.host.tests.lab import cache, host, machine, power, vm
from ansible_collections.steadygpu.host.tests.lab.console import LabError

BOOT = machine.Boot(Path("/i/vmlinuz"), Path("/i/initrd.img"), ("nowatchdog",))


def test_a_cut_gives_the_machine_no_time_to_write_anything(tmp_path: Path) -> None:
    # It would answer the polite signal by writing a file.
    program = (
        "import pathlib, signal\n"
        "def farewell(*unused):\n"
        "    pathlib.Path('farewell').touch()\n"
        "signal.signal(signal.SIGTERM, farewell)\n"
        "print(flush=True)\n"
        "while True: signal.pause()\n"
    )
    process = subprocess.Popen(
        ["qemu-system-x86_64", "-c", program, f"file={tmp_path / vm.DISK}"],
        executable=sys.executable,
        cwd=tmp_path,
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    process.stdout.readline()
    (tmp_path / vm.PID_FILE).write_text(str(process.pid))
    vm.kill(tmp_path)
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert not (tmp_path / "farewell").exists()
    assert vm.running_pid(tmp_path) is None


def test_a_resumed_host_boots_its_own_disk_after_a_cut(tmp_path: Path) -> None:
    hardware = machine.hardware("tcg")
    entry = cache.Entry("hosts/1-a", tmp_path, {"hardware": hardware, "snapshot": "converged"})
    argv = power.booting(entry, BOOT)(2207)
    assert argv == machine.command(hardware, BOOT, tmp_path / vm.DISK, 2207)
    assert "-incoming" not in argv


def test_only_a_running_host_can_be_cut(tmp_path: Path) -> None:
    hosts = host.Hosts(cache.Cache(tmp_path), {}, checkout=tmp_path)
    with pytest.raises(LabError, match="no lab host 'lab1'"):
        power.cut(hosts, "lab1")
