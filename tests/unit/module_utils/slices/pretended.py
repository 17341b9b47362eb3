# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A pretended systemd, and wishes for it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ansible_collections.steadygpu.host.plugins.module_utils.process import Completed
from ansible_collections.steadygpu.host.plugins.module_utils.slices.effective import Machine
from ansible_collections.steadygpu.host.plugins.module_utils.slices.model import Wish
from ansible_collections.steadygpu.host.plugins.module_utils.slices.properties import (
    parse_properties,
)
from ansible_collections.steadygpu.host.plugins.module_utils.slices.quantities import parse_size
from ansible_collections.steadygpu.host.plugins.module_utils.slices.squeeze import (
    MemoryUse,
    TaskUse,
)
from ansible_collections.steadygpu.host.plugins.module_utils.slices.unit_text import assignments

NAME = "ai-workload.slice"
GROUP = "/ai.slice/ai-workload.slice"
MACHINE = Machine(2 << 30, 0, 15000, 4096, {}, False, False)


def _bytes(text: str) -> str:
    return str(parse_size(text)) if text != "max" else text


class Systemd:
    """A pretended systemd and kernel: TasksMax= ends in pids.max.

    As seen with systemd 257, the start of a slice applies its file and set-property applies
    a value at once, while a daemon-reload alone changes no cgroup.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.loaded: str | None = None
        self.active = False
        self.reloads = 0
        self.kernel: dict[str, str] = {}
        self.stubborn: str | None = None
        self.inside: dict[str, list[int]] = {}
        self.complaint = ""
        self.endangered: list[str] = []
        self.use: MemoryUse | None = None
        self.more_files: dict[str, str] = {}
        self.tasks: TaskUse | None = None
        self.above: dict[str, tuple[str, int]] = {}

    def file(self) -> str | None:
        """What the unit file says."""
        return self.path.read_text() if self.path.exists() else None

    def show(self, _unit: str, _properties: Sequence[str]) -> dict[str, str]:
        """The unit as systemd knows it."""
        if self.loaded is None:
            self.loaded = self.file()
        return {
            "ActiveState": "active" if self.active else "inactive",
            "ControlGroup": GROUP if self.active else "",
            "FragmentPath": str(self.path) if self.loaded is not None else "",
            "NeedDaemonReload": "yes" if self.loaded != self.file() else "no",
        }

    def daemon_reload(self) -> None:
        """Read the file again, which changes no cgroup."""
        self.reloads += 1
        self.loaded = self.file()

    def act(self, verb: str, _unit: str) -> None:
        """Start or stop the slice."""
        self.active = verb == "start"
        self.kernel = dict(assignments(self.file() or "")) if self.active else {}

    def slice_files(self, _group: str) -> dict[str, str | None]:
        """The files of its cgroup."""
        return {
            "pids.max": self.stubborn or self.kernel.get("TasksMax") or "max",
            "memory.max": _bytes(self.kernel.get("MemoryMax") or "max"),
            "memory.high": _bytes(self.kernel.get("MemoryHigh") or "max"),
            **self.more_files,
        }

    def run(self, argv: Sequence[str], **_more: Any) -> Completed:
        """Answer systemd-analyze and systemctl set-property."""
        if argv[0] == "systemd-analyze":
            said = f"{argv[2]}:3: {self.complaint}\n" if self.complaint else ""
            return Completed(argv, 0, "", said)
        key, _equals, value = argv[-1].partition("=")
        self.kernel[key] = value
        return Completed(argv, 0, "", "")


def wish(systemd: Systemd, tasks: int = 512, **more: Any) -> Wish:
    """The slice with a limit of tasks."""
    settings = parse_properties({"TasksMax": tasks})
    return Wish(NAME, "Training", settings, str(systemd.path.parent), **more)


def memory(systemd: Systemd, **properties: str) -> Wish:
    """The slice with these limits of memory."""
    return Wish(NAME, "Training", parse_properties(properties), str(systemd.path.parent))
