# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""NVML asked in a child process that may hang, die or crash without taking us along.

A call into a sick driver can sleep uninterruptibly: no signal ends it and ctypes cannot
be cancelled. So the question is put by a forked child; the parent waits for a deadline
and then leaves.
"""

from __future__ import annotations

import json
import os
import select
import signal
import time
from dataclasses import dataclass
from typing import Any, Callable, NoReturn

from . import nvml


@dataclass(frozen=True)
class Answer:
    """``report`` is what ``nvml.read_all`` returns, or None; then ``reason`` says why.

    ``unresponsive`` means that NVML was asked and did not answer in time.
    """

    report: dict[str, Any] | None = None
    reason: str | None = None
    unresponsive: bool = False


def read(
    deadline_s: float,
    ask: Callable[[Any], dict[str, Any]] = nvml.read_all,
    load: Callable[[], Any | None] = nvml.load,
) -> Answer:
    """Everything NVML knows, within ``deadline_s`` seconds. Never raises for NVML's sake."""
    library = load()
    if library is None:
        return Answer(
            reason="no pynvml on this host; the agent that role steadygpu.host.agent installs "
            "carries one, or install the package nvidia-ml-py"
        )
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        _child(library, ask, writing)
    os.close(writing)
    try:
        text = _read_until(reading, time.monotonic() + deadline_s)
    finally:
        os.close(reading)
    status = _reap(child, kill=text is None)
    if text is None:
        return Answer(reason=f"unresponsive: no answer in {deadline_s:g} s", unresponsive=True)
    try:
        return Answer(report=json.loads(text))
    except ValueError:
        return Answer(reason=f"the NVML reader ended without an answer ({status})")


def _child(library: Any, ask: Callable[[Any], dict[str, Any]], writing: int) -> NoReturn:
    """Write the report and vanish. No exit handler of the parent's program may run here."""
    try:
        # An unkillable child must not hold the parent's pipes: ssh would wait for it.
        null = os.open(os.devnull, os.O_RDWR)
        for standard in (0, 1, 2):
            os.dup2(null, standard)
        os.closerange(3, writing)
        os.closerange(writing + 1, 1024)
        with os.fdopen(writing, "w") as pipe:
            json.dump(ask(library), pipe)
        os._exit(0)
    finally:
        os._exit(1)


def _read_until(reading: int, deadline: float) -> str | None:
    """All the child writes until it closes the pipe; None when the deadline comes first."""
    chunks: list[bytes] = []
    while True:
        ready, _w, _x = select.select([reading], [], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            return None
        chunk = os.read(reading, 65536)
        if not chunk:
            return b"".join(chunks).decode("utf-8", "replace")
        chunks.append(chunk)


def _reap(child: int, kill: bool) -> str:
    """How the child ended. One that SIGKILL does not end within a second is left alone."""
    if kill:
        os.kill(child, signal.SIGKILL)
    for _attempt in range(100):
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            if os.WIFSIGNALED(status):
                return f"killed by signal {os.WTERMSIG(status)}"
            return f"exit status {os.WEXITSTATUS(status)}"
        time.sleep(0.01)
    return f"still in a driver call, left behind as process {child}"
