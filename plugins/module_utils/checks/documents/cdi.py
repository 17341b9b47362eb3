# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A CDI specification: what an engine makes of it, and where everything stands. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from ...engine.cdi import Spec
from ...trees.node import Node
from .tree_document import TreeDocument

# Files of the driver carry its version: libcuda.so.535.161.07, nvidia/535.161.07/gsp_ga10x.bin.
_VERSIONED = re.compile(
    r"/lib[A-Za-z0-9_+-]*\.so\.(\d{3,}\.\d+(?:\.\d+)?)$|/nvidia/(\d{3,}\.\d+(?:\.\d+)?)/"
)


@dataclass(frozen=True)
class CdiSpec(TreeDocument):
    """One spec file. ``spec`` is what the engine's reader says of it."""

    spec: Spec = field(default_factory=lambda: Spec("", "invalid"))

    @property
    def is_nvidia(self) -> bool:
        """Is it one for NVIDIA's GPUs?"""
        return (self.spec.kind or "").startswith("nvidia.com/")

    def devices(self) -> Iterator[tuple[str, Node]]:
        """The name and the table of each device."""
        devices = self.get("devices")
        for node in devices.elements() if devices is not None else ():
            name = node.get("name")
            yield name.words() if name is not None else "", node

    def edits(self) -> Iterator[Node]:
        """The containerEdits of the whole spec and of every device."""
        whole = self.get("containerEdits")
        if whole is not None:
            yield whole
        for _name, node in self.devices():
            inside = node.get("containerEdits")
            if inside is not None:
                yield inside

    def driver_files(self) -> Iterator[tuple[str, Node]]:
        """The driver version in the path of each file that is mounted from the host."""
        for edit in self.edits():
            mounts = edit.get("mounts")
            for mount in mounts.elements() if mounts is not None else ():
                path = mount.get("hostPath") or mount.get("containerPath")
                found = _VERSIONED.search(path.words()) if path is not None else None
                if path is not None and found:
                    yield found.group(1) or found.group(2), path


def device_paths(edits: Node) -> list[str]:
    """The paths of the device nodes of containerEdits."""
    nodes = edits.get("deviceNodes")
    found = [node.get("path") for node in nodes.elements()] if nodes is not None else []
    return [node.words() for node in found if node is not None]
