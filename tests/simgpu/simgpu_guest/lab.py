# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Is this a lab machine? The simulation never touches another one."""

from __future__ import annotations

import os
from pathlib import Path

MARKER = "etc/steadygpu-lab"


class NotALabError(Exception):
    """The machine is no lab machine, or a real driver is at work on it."""


def require(root: Path = Path("/")) -> None:
    """Pass on a lab machine as root; NotALabError says which sign is missing."""
    if not (root / MARKER).exists():
        raise NotALabError(
            f"/{MARKER} is missing: this is no steadygpu lab machine, nothing was changed"
        )
    vendor = _read(root / "sys/class/dmi/id/sys_vendor")
    if not vendor.startswith("QEMU"):
        raise NotALabError(
            f"firmware says vendor {vendor!r}, 'QEMU' wanted: this is no lab machine, "
            "nothing was changed"
        )
    if (root / "sys/module/nvidia").exists():
        raise NotALabError(
            "a real nvidia kernel module is loaded and must not be covered, nothing was changed"
        )
    if os.geteuid() != 0:
        raise NotALabError("root is needed for device nodes and mounts")


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except OSError:
        return ""
