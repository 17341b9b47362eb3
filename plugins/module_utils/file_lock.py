# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A lock that ends with the process that holds it, and says which one that is."""

from __future__ import annotations

import fcntl
import os
import time

from .atomic import read_text


class HeldError(Exception):
    """Another process holds the lock; ``owner`` is its id as text, or ``unknown``."""

    def __init__(self, owner: str) -> None:
        super().__init__(f"process {owner} holds the lock")
        self.owner = owner


def acquire(path: str, wait_s: float, mode: int = 0o600) -> int:
    """Lock the file ``path``, which is made if missing, and return its descriptor.

    Raises HeldError when it is not free within ``wait_s`` seconds, OSError when the file cannot be
    made.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, mode)
    try:
        _wait(descriptor, path, wait_s)
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode("ascii"), 0)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def release(descriptor: int) -> None:
    """Give the lock back, also where a forked child still has the descriptor."""
    fcntl.flock(descriptor, fcntl.LOCK_UN)
    os.close(descriptor)


def _wait(descriptor: int, path: str, wait_s: float) -> None:
    end = time.monotonic() + wait_s
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() >= end:
                owner = (read_text(path) or "").strip()
                raise HeldError(owner or "unknown") from None
            # flock has no deadline of its own.
            time.sleep(0.05)
