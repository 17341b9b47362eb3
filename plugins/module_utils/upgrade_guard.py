# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Files that keep a host's own upgrades from restarting an engine or swapping the driver.

needrestart restarts services whose libraries were upgraded, engines among them. unattended-upgrades
brings a new driver library beside the loaded module, and NVML then fails with "Driver/library
version mismatch". A hold does not help against the former, and nobody holds the driver for us.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from . import vouched
from .atomic import read_text
from .boot_unit import ENGINES

_HEAD = "Written by steadygpu.host; changes by hand are lost."

# Beside engines: what holds GPUs, or what running CUDA programs need.
_DAEMONS = ("nvidia-persistenced", "nvidia-fabricmanager", "nvidia-dcgm", "nvidia-mig-manager")

# Beginnings of names, which unattended-upgrades matches as regular expressions. The kernel is none
# of them: a new one is used from the next boot on, which somebody decides.
_NOT_UPGRADED = (
    "nvidia-",
    "libnvidia-",
    "cuda-drivers",
    "firmware-nvidia",
    "libcuda1",
    "libnvcuvid",
    "linux-modules-nvidia",
    "linux-objects-nvidia",
    "linux-signatures-nvidia",
    "xserver-xorg-video-nvidia",
    "docker",
    "containerd",
    "moby-",
    "runc$",
    "runc-app",
)


def _needrestart() -> str:
    units = [name.rpartition(".")[0] for name in ENGINES.split()]
    names = "|".join(name.replace(".", r"\.") for name in (*units, *_DAEMONS))
    return (
        f"# {_HEAD}\n"
        "# Their restart may end containers or take GPUs from them, so it is somebody's decision.\n"
        f"$nrconf{{override_rc}}{{qr(^({names})\\.service$)}} = 0;\n"
    )


def _unattended() -> str:
    lines = "".join(f'    "{name}";\n' for name in _NOT_UPGRADED)
    return (
        f"// {_HEAD}\n"
        "// Of engines and the driver nothing is upgraded unattended, security updates included:\n"
        "// upgrade them yourself, when jobs may end.\n"
        f"Unattended-Upgrade::Package-Blacklist {{\n{lines}}};\n"
    )


FILES: Mapping[str, str] = {
    "/etc/needrestart/conf.d/steadygpu.conf": _needrestart(),
    "/etc/apt/apt.conf.d/52steadygpu": _unattended(),
}


def missing(manager: str | None, root: str = "/") -> list[str]:
    """The files that are not as they should be. Only hosts with dpkg have any."""
    if manager != "dpkg":
        return []
    return [path for path, text in FILES.items() if read_text(_below(root, path)) != text]


def install(manager: str | None, root: str = "/") -> None:
    """Write them. Raises OSError."""
    for path in missing(manager, root):
        vouched.write(_below(root, path), FILES[path], mode=0o644, root=root)


def there(root: str = "/") -> list[str]:
    """Those that are there, as they should be or not."""
    return [path for path in FILES if os.path.exists(_below(root, path))]


def remove(root: str = "/") -> None:
    """Take them away. Raises OSError."""
    for path in there(root):
        vouched.remove(_below(root, path), root)


def _below(root: str, path: str) -> str:
    return os.path.join(root, path.lstrip("/"))
