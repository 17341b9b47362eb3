# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Device nodes of the simulated driver. Nothing answers behind them: open says ENXIO where the
device cgroup allows it and EPERM where it does not.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
from pathlib import Path

from .state import State

MAJOR = 195
CONTROL_MINOR, MODESET_MINOR = 255, 254
#: MIG capabilities that are there whatever the mode. Those of instances are the library's.
CAPABILITIES = "nvidia-caps"
CONFIG_MINOR, MONITOR_MINOR = 1, 2

_OURS = re.compile(r"^nvidia(\d+|ctl|-modeset|-uvm|-uvm-tools)$")


def wanted(state: State) -> dict[str, tuple[int, int]]:
    """Node name -> (major, minor)."""
    uvm = int(state.settings["uvm_major"])
    nodes = {
        f"nvidia{gpu.values['minor']}": (MAJOR, int(gpu.values["minor"])) for gpu in state.gpus
    }
    nodes["nvidiactl"] = (MAJOR, CONTROL_MINOR)
    nodes["nvidia-modeset"] = (MAJOR, MODESET_MINOR)
    if state.uvm_loaded:
        nodes["nvidia-uvm"] = (uvm, 0)
        nodes["nvidia-uvm-tools"] = (uvm, 1)
    capabilities = int(state.settings.get("caps_major", "0"))
    if capabilities:
        for minor in (CONFIG_MINOR, MONITOR_MINOR):
            nodes[f"{CAPABILITIES}/nvidia-cap{minor}"] = (capabilities, minor)
    return nodes


def free_major(proc_devices: str, taken: frozenset[int] = frozenset()) -> int:
    """The major a driver would be given: the highest unused one of the kernel's dynamic range.

    `proc_devices` is the text of /proc/devices, `taken` what it does not show because no module
    is loaded. ValueError if 384..511 are all taken.
    """
    characters = proc_devices.partition("Block devices:")[0]
    used = {int(line.split()[0]) for line in characters.splitlines() if line.strip()[:1].isdigit()}
    return max(set(range(384, 512)) - used - taken)


def ensure(nodes: dict[str, tuple[int, int]], dev: Path = Path("/dev")) -> None:
    """Make `dev` hold exactly these nodes of ours; a node that is right is left alone."""
    for entry in dev.iterdir():
        if _OURS.match(entry.name) and not _is_node(entry, nodes.get(entry.name)):
            entry.unlink()
    capabilities = dev / CAPABILITIES
    if not any(name.startswith(f"{CAPABILITIES}/") for name in nodes):
        shutil.rmtree(capabilities, ignore_errors=True)
    for name, (major, minor) in nodes.items():
        path = dev / name
        path.parent.mkdir(mode=0o755, exist_ok=True)
        if path.parent == capabilities and path.exists() and not _is_node(path, (major, minor)):
            path.unlink()
        if not path.exists():
            os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(major, minor))
            path.chmod(_mode(name, minor))


def _mode(name: str, minor: int) -> int:
    """Everybody may use a GPU and see its instances; only root may configure them."""
    if not name.startswith(f"{CAPABILITIES}/"):
        return 0o666
    return 0o400 if minor == CONFIG_MINOR else 0o444


def _is_node(path: Path, number: tuple[int, int] | None) -> bool:
    status = path.lstat()
    return (
        number is not None
        and stat.S_ISCHR(status.st_mode)
        and status.st_rdev == os.makedev(number[0], number[1])
    )
