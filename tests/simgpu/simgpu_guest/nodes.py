# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Device nodes of the simulated driver. Nothing answers behind them: open says ENXIO where the
device cgroup allows it and EPERM where it does not.
"""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

from .state import State

MAJOR = 195
CONTROL_MINOR, MODESET_MINOR = 255, 254

_OURS = re.compile(r"^nvidia(\d+|ctl|-modeset|-uvm|-uvm-tools)$")


def wanted(state: State) -> dict[str, tuple[int, int]]:
    """Node name -> (major, minor)."""
    uvm = int(state.settings["uvm_major"])
    nodes = {
        f"nvidia{gpu.values['minor']}": (MAJOR, int(gpu.values["minor"])) for gpu in state.gpus
    }
    nodes["nvidiactl"] = (MAJOR, CONTROL_MINOR)
    nodes["nvidia-modeset"] = (MAJOR, MODESET_MINOR)
    nodes["nvidia-uvm"] = (uvm, 0)
    nodes["nvidia-uvm-tools"] = (uvm, 1)
    return nodes


def free_major(proc_devices: str) -> int:
    """The major a driver would be given: the highest unused one of the kernel's dynamic range.

    `proc_devices` is the text of /proc/devices. ValueError if 384..511 are all taken.
    """
    characters = proc_devices.partition("Block devices:")[0]
    used = {int(line.split()[0]) for line in characters.splitlines() if line.strip()[:1].isdigit()}
    return max(set(range(384, 512)) - used)


def ensure(nodes: dict[str, tuple[int, int]], dev: Path = Path("/dev")) -> None:
    """Make `dev` hold exactly these nodes of ours; a node that is right is left alone."""
    for entry in dev.iterdir():
        if _OURS.match(entry.name) and not _is_node(entry, nodes.get(entry.name)):
            entry.unlink()
    for name, (major, minor) in nodes.items():
        if not (dev / name).exists():
            os.mknod(dev / name, stat.S_IFCHR | 0o600, os.makedev(major, minor))
            os.chmod(dev / name, 0o666)


def _is_node(path: Path, number: tuple[int, int] | None) -> bool:
    status = path.lstat()
    return (
        number is not None
        and stat.S_ISCHR(status.st_mode)
        and status.st_rdev == os.makedev(number[0], number[1])
    )
