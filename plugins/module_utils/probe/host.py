# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a probe must know of the host around it. Every reader takes the root of the tree."""

from __future__ import annotations

import glob
import os
import stat

from .. import cgroups
from ..hardware.procfs import read_gpus
from . import plan
from .limits import FILES, Group


def gpu_nodes(root: str = "/") -> dict[str, str]:
    """``/dev/nvidiaN`` → ``MAJOR:MINOR`` of each whole-GPU node of the host."""
    found = {}
    for path in glob.glob(os.path.join(root, "dev/nvidia[0-9]*")):
        status = os.stat(path)
        if stat.S_ISCHR(status.st_mode) and path.rsplit("nvidia", 1)[1].isdigit():
            number = f"{os.major(status.st_rdev)}:{os.minor(status.st_rdev)}"
            found["/" + os.path.relpath(path, root)] = number
    return dict(sorted(found.items()))


def node_of(device: str, root: str = "/") -> str | None:
    """The GPU node behind a CDI name, as the driver says; None when it does not tell.

    An index counts the GPUs in the order of their PCI addresses, as NVML does; the node
    carries the driver's minor number, which may be another. Without /proc/driver/nvidia the
    two are taken for the same. The CDI spec is not asked: it is what is to be proved.
    """
    named = plan.gpu_of(device)
    gpus = read_gpus(root)
    if isinstance(named, str):
        minors = [gpu.minor for gpu in gpus if gpu.uuid == named]
    elif named is not None:
        minors = [gpu.minor for gpu in gpus[named : named + 1]] if gpus else [named]
    else:
        minors = []
    return f"/dev/nvidia{minors[0]}" if minors and minors[0] is not None else None


def has_merged_usr(root: str = "/") -> bool:
    """Do /bin and /lib lie in /usr, so that mounting /usr alone gives a working shell?"""
    return all(os.path.islink(os.path.join(root, name)) for name in ("bin", "lib"))


def limits_on_path(control_group: str, root: str = "/") -> list[Group]:
    """The limits of a cgroup and of each above it, the lowest first, without the root."""
    path = []
    while control_group.strip("/"):
        files = cgroups.read_files(control_group, FILES, root)
        path.append(Group(control_group, files))
        control_group = os.path.dirname(control_group)
    return path


def tasks_in(control_group: str, root: str = "/") -> int | None:
    """``pids.current`` of a cgroup, or None when nobody counts there."""
    text = cgroups.read_files(control_group, ["pids.current"], root)["pids.current"]
    return int(text) if text else None
