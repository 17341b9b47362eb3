# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Live values are written here, and nowhere else."""

from __future__ import annotations

import errno
import os

from ..atomic import read_text
from .model import LINE, Target
from .readback import below, live_path

# Coefficients behind this word would be taken as a person's own (block/blk-iocost.c).
_AUTO = "ctrl=auto"


def writable(target: Target, value: str) -> str:
    """A value as it must be written for the kernel to hold it again.

    iocost shows the numbers that it chose by itself in the same line; written back, they would be
    frozen, and ``ctrl`` would become ``user``.
    """
    words = value.split()
    if target.kind != LINE or _AUTO not in words:
        return value
    return " ".join(
        word for word in words if "=" not in word or word.startswith(("enable=", "ctrl="))
    )


def write_live(target: Target, value: str, root: str = "/") -> None:
    """Write one live value. Raises OSError, also for what the kernel takes only in part."""
    path = below(root, live_path(target))
    value = writable(target, value)
    data = (value + "\n").encode("utf-8")
    if target.kind == LINE and not path.startswith(("/proc/", "/sys/")):
        data = _with_line(read_text(path) or "", value).encode("utf-8")
    # Never made: a missing file in /sys cannot be, and elsewhere it would be nonsense.
    descriptor = os.open(path, os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC)
    try:
        # One write: the kernel takes each as a value of its own.
        if os.write(descriptor, data) != len(data):
            raise OSError(errno.EIO, "only a part was taken", path)
    finally:
        os.close(descriptor)


def _with_line(text: str, line: str) -> str:
    """What the kernel does of itself, for a tree of plain files."""
    key = line.split()[:1]
    others = [one for one in text.splitlines() if one.split()[:1] != key]
    return "".join(f"{one}\n" for one in [*others, line])
