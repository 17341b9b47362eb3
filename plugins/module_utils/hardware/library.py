# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where libnvidia-ml lies and which driver release it belongs to, without loading it."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Mapping

# The directories the loader of a 64-bit distribution searches, and the one WSL adds.
_DIRECTORIES = (
    "usr/lib/x86_64-linux-gnu",
    "usr/lib/aarch64-linux-gnu",
    "usr/lib64",
    "usr/local/lib",
    "usr/lib",
    "usr/lib/wsl/lib",
)
_RELEASE = re.compile(r"libnvidia-ml\.so\.(\d+(?:\.\d+)+)$")


def find(root: str = "/", environment: Mapping[str, str] | None = None) -> str | None:
    """The file ``libnvidia-ml.so.1`` resolves to, or None when the host has none.

    ``environment`` may carry LD_LIBRARY_PATH, which the loader searches first.
    """
    searched = (environment or {}).get("LD_LIBRARY_PATH", "").split(":")
    directories: list[str] = [directory for directory in searched if directory]
    directories += [os.path.join(root, directory) for directory in _DIRECTORIES]
    for directory in directories:
        soname = os.path.join(directory, "libnvidia-ml.so.1")
        if os.path.exists(soname):
            return os.path.realpath(soname)
    return None


def release(path: str | None) -> str | None:
    """The driver release in the file name, or of its one versioned sibling; else None.

    NVIDIA names the file ``libnvidia-ml.so.550.163.01`` and links ``.so.1`` to it.
    """
    if path is None:
        return None
    beside = glob.glob(os.path.join(os.path.dirname(path), "libnvidia-ml.so.*"))
    for names in ([path], beside):
        found = [match.group(1) for match in map(_RELEASE.search, names) if match]
        if len(found) == 1:
            return found[0]
    return None
