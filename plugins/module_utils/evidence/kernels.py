# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""For which installed kernels is there a GPU driver? Asked before a reboot, not after it."""

from __future__ import annotations

import glob
import os
import re
from typing import Any

from . import files

# nvidia.ko, Debian's nvidia-current.ko and the like, packed or not.
_MODULE = re.compile(r"(?:^|/)nvidia(?:-current|-open)?\.ko(?:\.\w+)?:", re.MULTILINE)


def read(root: str = "/", running: str | None = None) -> dict[str, Any]:
    """``running``, ``next`` and ``driver_built_for``: kernels for which depmod knows the driver.

    ``next`` is what the next boot most likely takes, None where it is not known.
    """
    return {
        "running": running or os.uname().release,
        "next": _next(root),
        "driver_built_for": [name for name in _releases(root) if _has_driver(root, name)],
    }


def _has_driver(root: str, release: str) -> bool:
    path = os.path.join(root, "lib/modules", release, "modules.dep")
    return _MODULE.search(files.text(path)) is not None


def _releases(root: str) -> list[str]:
    paths = glob.glob(os.path.join(root, "lib/modules/*/modules.dep"))
    return sorted(os.path.basename(os.path.dirname(path)) for path in paths)


def _next(root: str) -> str | None:
    """What ``/vmlinuz`` points to where the distribution keeps that link (Debian, Ubuntu).

    Ubuntu's is in /boot. A boot loader that was told otherwise is not asked.
    """
    for link in ("vmlinuz", "boot/vmlinuz"):
        path = os.path.join(root, link)
        if os.path.islink(path):
            name = os.path.basename(os.readlink(path))
            if name.startswith("vmlinuz-"):
                return name[len("vmlinuz-") :]
    return None
