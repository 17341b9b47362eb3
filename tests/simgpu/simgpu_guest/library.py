# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The simulated libnvidia-ml: installed only while a profile is loaded."""

from __future__ import annotations

import ctypes
import filecmp
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

HOME = Path("/usr/local/lib/simgpu")
TARGET = Path("/usr/lib/x86_64-linux-gnu")
SONAME = "libnvidia-ml.so.1"


class LibraryError(Exception):
    """The library is not where the lab image has it, or another one is in its place."""


def source() -> Path:
    """The library in the image; its suffix is the driver version it is for."""
    found = sorted(HOME.glob("libnvidia-ml.so.*"))
    if len(found) != 1:
        raise LibraryError(
            f"{HOME}: {len(found)} libraries seen, one wanted; rebuild the lab image"
        )
    return found[0]


def refuse_foreign() -> None:
    """LibraryError if the name is taken by a library that is not the simulation's."""
    link = TARGET / SONAME
    if link.exists() and not filecmp.cmp(link, source(), shallow=False):
        raise LibraryError(f"{link} is not the simulation's; remove that package first")


def is_installed() -> bool:
    """Whether the library in place is the simulation's."""
    link = TARGET / SONAME
    return link.exists() and filecmp.cmp(link, source(), shallow=False)


def install() -> None:
    """Put the library and its soname in place anew: to whoever watches, a driver is installed."""
    built, known = source(), is_installed()
    _replace(TARGET / built.name, lambda path: shutil.copyfile(built, path))
    _replace(TARGET / SONAME, lambda path: path.symlink_to(built.name))
    if not known:
        subprocess.run(["/sbin/ldconfig"], check=True)


def sync_capabilities() -> None:
    """Show the MIG instances there are in /proc/driver/nvidia and /dev/nvidia-caps again."""
    ctypes.CDLL(str(source())).simgpuSyncCapabilities()


def _replace(target: Path, make: Callable[[Path], object]) -> None:
    temporary = target.with_name(f".{target.name}.new")
    temporary.unlink(missing_ok=True)
    make(temporary)
    os.replace(temporary, target)


def ensure_removed() -> None:
    """Take our copy away; a library of somebody else stays."""
    built, link = source(), TARGET / SONAME
    installed = TARGET / built.name
    if not installed.exists():
        return
    if link.is_symlink() and os.readlink(link) == installed.name:
        link.unlink()
    installed.unlink()
    subprocess.run(["/sbin/ldconfig"], check=True)
