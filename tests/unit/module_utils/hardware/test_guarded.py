# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A child that is asked: its answer, its crash, and the time it may take."""

from __future__ import annotations

import os
import signal
import time

from ansible_collections.steadygpu.host.plugins.module_utils.hardware import files, guarded, procfs


def test_the_answer_comes_through():
    assert guarded.call(lambda: {"a": [1, None]}, 10) == guarded.Outcome(value={"a": [1, None]})


def test_no_answer_in_time():
    started = time.monotonic()
    outcome = guarded.call(lambda: time.sleep(60), 0.2)
    assert time.monotonic() - started < 5
    assert outcome == guarded.Outcome(reason="no answer in 0.2 s", unresponsive=True)


def test_a_crash_is_no_answer_and_no_hang():
    outcome = guarded.call(lambda: os.kill(os.getpid(), signal.SIGSEGV), 10)
    assert not outcome.unresponsive
    assert "signal 11" in (outcome.reason or "")


def test_a_proc_file_that_blocks_does_not_block_the_facts(host, monkeypatch):
    """Reading a file of a driver that holds its lock waits for ever."""
    host.proc_gpu("0000:23:00.0", 0, "GPU-aaaa")
    read = files.read_text
    monkeypatch.setattr(
        files, "read_text", lambda path: time.sleep(60) if "version" in path else read(path)
    )
    report = procfs.read(0.2, host.root)
    assert report.reason == "/proc/driver/nvidia: no answer in 0.2 s"
    assert (report.version, report.gpus) == (None, [])
