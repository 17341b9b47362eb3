# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A question put in a child process that may hang, die or crash without taking us along.

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

# How long a child may take to end once it has answered, or was killed.
_REAP_S = 1.0


@dataclass(frozen=True)
class Outcome:
    """``value`` is what the question returned, through JSON. Without one ``reason`` says why.

    ``unresponsive`` means that the deadline came first.
    """

    value: Any = None
    reason: str | None = None
    unresponsive: bool = False


def call(question: Callable[[], Any], deadline_s: float) -> Outcome:
    """The answer to ``question``, a value JSON can carry, within ``deadline_s`` seconds."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        _child(question, writing)
    os.close(writing)
    try:
        text = _read_until(reading, time.monotonic() + deadline_s)
    finally:
        os.close(reading)
    status = _reap(child, kill=text is None)
    if text is None:
        return Outcome(reason=f"no answer in {deadline_s:g} s", unresponsive=True)
    try:
        return Outcome(value=json.loads(text))
    except ValueError:
        return Outcome(reason=f"ended without an answer ({status})")


def _child(question: Callable[[], Any], writing: int) -> NoReturn:
    """Write the answer and vanish. No exit handler of the parent's program may run here."""
    try:
        # An unkillable child must not hold the parent's pipes: ssh would wait for it.
        null = os.open(os.devnull, os.O_RDWR)
        for standard in (0, 1, 2):
            os.dup2(null, standard)
        os.closerange(3, writing)
        os.closerange(writing + 1, 1024)
        with os.fdopen(writing, "w") as pipe:
            pipe.write(json.dumps(question()))
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
    deadline, pause = time.monotonic() + _REAP_S, 0.0001
    while time.monotonic() < deadline:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            if os.WIFSIGNALED(status):
                return f"killed by signal {os.WTERMSIG(status)}"
            return f"exit status {os.WEXITSTATUS(status)}"
        time.sleep(pause)
        pause = min(2 * pause, 0.01)
    return f"still in a driver call, left behind as process {child}"
