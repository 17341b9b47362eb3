# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Programs the lab runs: their failures are readable, and an interrupt leaves none behind."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ansible_collections.steadygpu.host.tests.lab.console import LabError, call


def test_a_missing_program_names_the_way_to_get_it() -> None:
    with pytest.raises(LabError, match=r"making a disk: the program no-such-program .* setup"):
        call(["no-such-program"], "making a disk")


def test_a_failure_shows_the_programs_last_words() -> None:
    with pytest.raises(LabError, match="exited 3:\n  no space left"):
        call(["sh", "-c", "echo no space left >&2; exit 3"], "making a disk")


def is_running(pid: int) -> bool:
    try:
        return " Z " not in Path("/proc", str(pid), "stat").read_text()
    except OSError:
        return False


def test_an_interrupt_ends_the_program_and_its_children(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    # The caller must have got from its fork to its wait, which nothing announces: hence `sleep 1`.
    script = (
        "import signal, sys; sys.path.insert(0, sys.argv[1])\n"
        "from lab.console import call\n"
        "signal.signal(signal.SIGTERM, signal.default_int_handler)\n"
        "shell = 'sleep 600 & echo $! > $0.new; sleep 1; mv $0.new $0; wait'\n"
        "call(['sh', '-c', shell, sys.argv[2]], 'x')"
    )
    tests = str(Path(sys.modules[LabError.__module__].__file__ or "").parents[1])
    caller = subprocess.Popen(
        [sys.executable, "-c", script, tests, str(pid_file)], stderr=subprocess.DEVNULL
    )
    deadline = time.monotonic() + 60
    while not pid_file.exists() and time.monotonic() < deadline:
        assert caller.poll() is None
        time.sleep(0.02)
    caller.send_signal(signal.SIGTERM)
    caller.wait(40)
    child = int(pid_file.read_text())
    while is_running(child) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not is_running(child)
