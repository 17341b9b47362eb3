# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Device nodes of the NVIDIA driver under /dev."""

from __future__ import annotations

import glob
import os
import re
import stat
from collections.abc import Iterable
from typing import Optional

from . import files
from .host_model import DeviceNode

# Major 195 belongs to NVIDIA (Linux Documentation/admin-guide/devices.txt) and its minor
# 255 is the control node; uvm gets a major from the kernel when it loads.
NVIDIA_MAJOR = 195
CONTROL_MINOR = 255
_CHARACTER_MAJOR = re.compile(r"^\s*([0-9]{1,9})\s+(\S+)$")

Number = tuple[Optional[int], Optional[int]]


def parse_majors(text: str) -> dict[str, int]:
    """Driver name to major of the character devices in /proc/devices."""
    characters = text.partition("Block devices:")[0]
    matches = map(_CHARACTER_MAJOR.match, characters.splitlines())
    return {match.group(2): int(match.group(1)) for match in matches if match}


def wanted(minors: Iterable[int], majors: dict[str, int]) -> dict[str, Number]:
    """The nodes a CUDA program needs to use GPUs with these minors: path to number."""
    numbers: dict[str, Number] = {f"/dev/nvidia{minor}": (NVIDIA_MAJOR, minor) for minor in minors}
    if numbers:
        uvm = majors.get("nvidia-uvm")
        numbers["/dev/nvidiactl"] = (NVIDIA_MAJOR, CONTROL_MINOR)
        numbers["/dev/nvidia-uvm"] = (uvm, 0)
        numbers["/dev/nvidia-uvm-tools"] = (uvm, 1)
    return numbers


def read_nodes(minors: Iterable[int], root: str = "/") -> list[DeviceNode]:
    """The driver's nodes that exist and the missing ones of :func:`wanted`, by path.

    A node that exists shows its own number; a missing one the number it should have.
    Something at the path that is no character device does not count as the node.
    """
    majors = parse_majors(files.text(os.path.join(root, "proc/devices")))
    missing = wanted(minors, majors)
    nodes: list[DeviceNode] = []
    for pattern in ("dev/nvidia*", "dev/nvidia-caps/*"):
        for found in glob.glob(os.path.join(root, pattern)):
            number = _device_number(found)
            if number is not None:
                path = "/" + os.path.relpath(found, root)
                missing.pop(path, None)
                nodes.append(DeviceNode(path, os.major(number), os.minor(number), exists=True))
    nodes += [DeviceNode(path, *number, exists=False) for path, number in missing.items()]
    return sorted(nodes, key=lambda node: node.path)


def closed(minors: Iterable[int], root: str = "/") -> list[str]:
    """The GPU nodes that exist and that this process may not open.

    access(2) asks the device cgroup too, where the session of a job scheduler or a container
    hides GPUs, and does not open: the driver would start to initialise the GPU.
    """
    paths = (f"dev/nvidia{minor}" for minor in sorted(minors))
    return [
        "/" + path
        for path in paths
        if os.path.exists(os.path.join(root, path))
        and not os.access(os.path.join(root, path), os.R_OK | os.W_OK)
    ]


def _device_number(path: str) -> int | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_rdev if stat.S_ISCHR(status.st_mode) else None
