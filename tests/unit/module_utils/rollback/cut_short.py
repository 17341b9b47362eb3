# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Cut an operation short at each of its system calls that change something, one after another.

A real SIGKILL at each of them is what tests/cuts does. Here the process goes on, but from the cut
on it can do nothing any more, not even clear up.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest

_CALLS = ("open", "write", "replace", "unlink", "mkdir", "fsync", "ftruncate", "chmod", "fchmod")


class Cut(BaseException):
    """The process is no more."""


def every_cut(operation: Callable[[], object], prepare: Callable[[], object]) -> Iterator[int]:
    """Yield the number of calls that went through, after each cut; at last after a whole run.

    ``prepare`` makes the state to start from, and is not cut.
    """
    allowed = 0
    while True:
        prepare()
        with pytest.MonkeyPatch.context() as patch:
            died = _allow(patch, allowed)
            with contextlib.suppress(Cut):
                operation()
        yield allowed
        if not died:
            return
        allowed += 1


def _allow(patch: pytest.MonkeyPatch, allowed: int) -> list[str]:
    """Let ``allowed`` calls through; what died then is in the list returned."""
    left, died = [allowed], list[str]()

    def limited(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            # Opening without creating changes nothing; directories are opened like this.
            harmless = name == "open" and not args[1] & (os.O_CREAT | os.O_TRUNC)
            if not harmless:
                if left[0] == 0:
                    died.append(name)
                    raise Cut(name)
                left[0] -= 1
            # It is for when the power is cut, which it is not here, and it takes time.
            return None if name == "fsync" else real(*args, **kwargs)

        return call

    for name in _CALLS:
        patch.setattr(os, name, limited(name, getattr(os, name)))
    return died


def is_locked(path: str) -> bool:
    """Does anybody hold the lock?"""
    with open(path, "rb") as handle:
        try:
            fcntl.flock(handle.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False
