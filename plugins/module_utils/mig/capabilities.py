# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Capability nodes: the device files by which a process is let into a MIG instance.

The driver lists in ``mig-minors`` which ``/dev/nvidia-caps/nvidia-capN`` opens which GPU or
compute instance; it lists all that could be, not those that are (MIG user guide, "Device
nodes and capabilities").
"""

from __future__ import annotations

import os
import re
from typing import NamedTuple

from ..atomic import read_text

DIRECTORY = "/dev/nvidia-caps"

_LINE = re.compile(
    r"^gpu(?P<gpu>\d+)/gi(?P<instance>\d+)(?:/ci(?P<compute>\d+))?/access (?P<cap>\d+)$",
    re.MULTILINE,
)


class Capability(NamedTuple):
    """``gpu`` is the GPU's minor number; ``compute`` None for a GPU instance itself."""

    gpu: int
    instance: int
    compute: int | None = None

    @property
    def proc_path(self) -> str:
        """The file that ``nvidia-modprobe -f`` makes the node from."""
        compute = "" if self.compute is None else f"/ci{self.compute}"
        return (
            f"/proc/driver/nvidia/capabilities/gpu{self.gpu}/mig/gi{self.instance}{compute}/access"
        )


def read(root: str = "/") -> dict[Capability, int]:
    """Instance -> N of its ``nvidia-capN``; {} without a driver."""
    text = read_text(os.path.join(root, "proc/driver/nvidia-caps/mig-minors")) or ""
    return {
        Capability(
            int(line["gpu"]),
            int(line["instance"]),
            None if line["compute"] is None else int(line["compute"]),
        ): int(line["cap"])
        for line in _LINE.finditer(text)
    }


def node(number: int) -> str:
    """The path of a capability's device file."""
    return f"{DIRECTORY}/nvidia-cap{number}"
