# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Keep a burst out of the way of a lower quota: for whoever is about to lower one.

The kernel refuses a ``cpu.max`` below ``cpu.max.burst`` (EINVAL), and systemd then only logs it
(seen with systemd 257 and 262).
"""

from __future__ import annotations

import os

from .. import cgroups

FILE = "cpu.max.burst"


def clear_if_above(control_group: str, quota_us: int, root: str = "/") -> int | None:
    """Lower the burst of a group to ``quota_us``, the quota of one period that is to come.

    Returns the former burst, None when it was not in the way or the kernel knows none. Raises
    OSError.
    """
    former = read(control_group, root)
    if former is None or former <= quota_us:
        return None
    write(control_group, quota_us, root)
    return former


def put_back(control_group: str, former: int | None, root: str = "/") -> None:
    """The inverse of :func:`clear_if_above`, once the former quota is back. Raises OSError."""
    if former is not None and read(control_group, root) not in (None, former):
        write(control_group, former, root)


def read(control_group: str, root: str = "/") -> int | None:
    """The burst of a group in microseconds, None where the kernel has no such file."""
    text = cgroups.read_files(control_group, [FILE], root)[FILE]
    return int(text) if text and text.isdigit() else None


def write(control_group: str, burst_us: int, root: str = "/") -> None:
    """Set the burst. Raises OSError: EINVAL for one above the quota."""
    write_file(control_group, FILE, str(burst_us), root)


def write_file(control_group: str, name: str, value: str, root: str = "/") -> None:
    """Write one file of a group, which must be there. Raises OSError."""
    path = os.path.join(cgroups.directory(control_group, root), name)
    descriptor = os.open(path, os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC)
    try:
        os.write(descriptor, f"{value}\n".encode())
    finally:
        os.close(descriptor)
