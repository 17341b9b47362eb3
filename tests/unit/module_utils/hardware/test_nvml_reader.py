# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The child that asks NVML: it may hang, crash or fill the screen, the caller goes on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.hardware import nvml_reader
from ansible_collections.steadygpu.host.tests.unit.module_utils.hardware.fake_nvml import (
    FakeNvml,
    a100,
)


def _hang(_library):
    time.sleep(60)


def test_the_report_crosses_the_pipe():
    library = FakeNvml([a100("0000:23:00.0", minor) for minor in range(8)])
    answer = nvml_reader.read(10, load=lambda: library)
    assert answer.reason is None
    assert answer.report is not None
    assert [device["minor"] for device in answer.report["devices"]] == list(range(8))


def test_a_report_larger_than_a_pipe():
    answer = nvml_reader.read(10, ask=lambda _l: {"text": "x" * 1_000_000}, load=object)
    assert answer.report == {"text": "x" * 1_000_000}


def test_a_hanging_driver_is_unresponsive_after_the_deadline():
    started = time.monotonic()
    answer = nvml_reader.read(0.2, ask=_hang, load=object)
    assert time.monotonic() - started < 5
    assert answer.unresponsive
    assert answer.report is None
    assert answer.reason == "unresponsive: no answer in 0.2 s"


def test_the_hanging_child_is_gone_afterwards():
    nvml_reader.read(0.2, ask=_hang, load=object)
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


def test_a_library_that_crashes_is_told_with_its_signal():
    answer = nvml_reader.read(10, ask=lambda _l: os.kill(os.getpid(), signal.SIGSEGV), load=object)
    assert answer.report is None
    assert not answer.unresponsive
    assert "signal 11" in (answer.reason or "")


def test_an_exception_in_the_child_is_no_answer():
    answer = nvml_reader.read(10, ask=lambda _l: {}["missing"], load=object)
    assert answer.reason == "the NVML reader ended without an answer (exit status 1)"


def test_without_pynvml_the_reason_says_where_to_get_it():
    answer = nvml_reader.read(10, load=lambda: None)
    assert "steadygpu.host.agent" in (answer.reason or "")


def test_a_child_that_hangs_does_not_hold_the_output_of_its_parent():
    """An ssh session ends when nobody holds its pipes any more."""
    program = (
        "import os, time\n"
        "from ansible_collections.steadygpu.host.plugins.module_utils.hardware import ("
        "guarded, nvml_reader)\n"
        "guarded._reap = lambda child, kill: str(child)\n"  # as if SIGKILL had no effect
        "hang = lambda library: time.sleep(3)\n"
        "print(nvml_reader.read(0.2, ask=hang, load=object).reason)\n"
    )
    started = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", program],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        env=dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path)),
    )
    assert "no answer in 0.2 s" in done.stdout
    assert time.monotonic() - started < 2.5
