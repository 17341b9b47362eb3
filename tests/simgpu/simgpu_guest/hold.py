# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A process that has a GPU open. No simulated node can be opened, but an O_PATH descriptor of
one can be held, and the simulated driver counts that.
"""

from __future__ import annotations

import ctypes
import os
import signal
from pathlib import Path

from .nodes import CAPABILITIES
from .state import State

NAME = "simgpu-hold"
_PR_SET_NAME = 15
#: By the module's table, see procfs.mig_minors.
_FIRST, _PER_INSTANCE, _PER_GPU = 3, 9, 135


class HoldError(Exception):
    """There is nothing of that name to hold."""


def hold(state: State, what: str, name: str) -> None:
    """Print the own pid, be called `name`, and hold `what` until killed."""
    held = [_open(path) for path in paths(state, what)]
    ctypes.CDLL(None).prctl(_PR_SET_NAME, name.encode()[:15], 0, 0, 0)
    print(os.getpid(), flush=True)
    while held:
        signal.pause()


def paths(state: State, what: str, dev: Path = Path("/dev")) -> list[Path]:
    """The nodes a process opens that uses GPU[/GI[/CI]]."""
    try:
        index, *instances = (int(word) for word in what.split("/"))
        minor = int(state.gpus[index].values["minor"])
    except (ValueError, IndexError):
        raise HoldError(f"{what}: want GPU[/GI[/CI]], {len(state.gpus)} GPUs are loaded") from None
    found = [dev / f"nvidia{minor}"]
    number = _FIRST + minor * _PER_GPU
    for place, scale, offset in zip(instances, (_PER_INSTANCE, 1), (0, 1)):
        number += place * scale + offset
        found.append(dev / CAPABILITIES / f"nvidia-cap{number}")
    return found


def _open(path: Path) -> int:
    try:
        return os.open(path, os.O_PATH)
    except FileNotFoundError:
        raise HoldError(f"{path} is missing: no such GPU or MIG instance now") from None
