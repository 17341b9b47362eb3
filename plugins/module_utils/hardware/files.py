# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Files of the kernel. One that cannot be read is not there: an odd file spoils no facts."""

from __future__ import annotations

import os
import re

from ..atomic import read_text

# Longer than any number the kernel prints (2^64 has 20 digits); int() refuses 4300 digits.
_NUMBER = re.compile(r"[0-9]{1,20}")


def text(path: str) -> str:
    """The content, stripped; "" of a file that is missing, closed to us or no file."""
    try:
        return (read_text(path) or "").strip()
    except (OSError, ValueError):  # ValueError: a name out of another file has a null byte
        return ""


def names(directory: str) -> list[str]:
    """The sorted names in a directory; [] of one that is missing, closed to us or none."""
    try:
        return sorted(os.listdir(directory))
    except OSError:
        return []


def target(link: str) -> str | None:
    """The last part of what a symbolic link leads to; None for anything else."""
    try:
        return os.path.basename(os.readlink(link))
    except OSError:
        return None


def number(written: str) -> int | None:
    """The number a text is, which has nothing but ASCII digits; else None."""
    return int(written) if _NUMBER.fullmatch(written) else None
