# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Parameters of kernel modules, as the loaded module has them."""

from __future__ import annotations

import os

from ..atomic import read_text

# nvidia shows its own in this file, without the prefix, and none in sysfs.
_NVIDIA = "proc/driver/nvidia/params"
_PREFIX = "NVreg_"
_TRUE = frozenset({"y", "1"})
_FALSE = frozenset({"n", "0"})


def loaded_value(module: str, name: str, root: str = "/") -> str | None:
    """What the loaded module holds of a parameter; None where it shows nothing."""
    if module == "nvidia" and name.startswith(_PREFIX):
        for line in (_read(os.path.join(root, _NVIDIA)) or "").splitlines():
            key, _colon, value = line.partition(":")
            if key.strip() == name[len(_PREFIX) :]:
                return value.strip().strip('"')
        return None
    text = _read(os.path.join(root, "sys/module", module.replace("-", "_"), "parameters", name))
    return None if text is None else text.strip()


def is_loaded(module: str, root: str = "/") -> bool:
    """Is it in the kernel, as a module or built in?"""
    return os.path.isdir(os.path.join(root, "sys/module", module.replace("-", "_")))


def is_builtin(module: str, root: str = "/") -> bool:
    """Is it a part of the running kernel itself? /sys/module does not have all of these."""
    release = (_read(os.path.join(root, "proc/sys/kernel/osrelease")) or "").strip()
    listed = _read(os.path.join(root, "lib/modules", release, "modules.builtin")) or ""
    wanted = module.replace("-", "_")
    return any(
        os.path.basename(line).partition(".ko")[0].replace("-", "_") == wanted
        for line in listed.splitlines()
    )


def is_there(module: str, root: str = "/") -> bool:
    """Need it not be loaded, because it is, or is built in?"""
    return is_loaded(module, root) or is_builtin(module, root)


def same(seen: str, wanted: str) -> bool:
    """Do two values of a parameter mean the same? ``Y`` is 1, and numbers have several forms."""
    left, right = seen.strip().lower(), wanted.strip().lower()
    if left == right or {left, right} <= _TRUE or {left, right} <= _FALSE:
        return True
    try:
        return int(left, 0) == int(right, 0)
    except ValueError:
        return False


def _read(path: str) -> str | None:
    try:
        return read_text(path)
    except OSError:
        return None
