# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A host with slices: files of the kernel in a scratch tree, and what systemd says of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils import units
from ansible_collections.steadygpu.host.plugins.module_utils.burst import reader


class SlicedHost:
    """One active slice with a quota of 300 ms in 100 ms; ``told`` is what systemd shows."""

    def __init__(self, root: Path) -> None:
        self.root = str(root)
        self.name = "ai-workload.slice"
        self.group = root / "sys/fs/cgroup/ai.slice/ai-workload.slice"
        self.group.mkdir(parents=True)
        (root / "run/systemd/system").mkdir(parents=True)
        command = root / "usr/local/bin/steadygpu"
        command.parent.mkdir(parents=True)
        command.touch()
        self.told = {
            self.name: {
                "ActiveState": "active",
                "FragmentPath": "/etc/systemd/system/ai-workload.slice",
                "ControlGroup": "/ai.slice/ai-workload.slice",
                "CPUQuotaPerSecUSec": "3s",
                "CPUQuotaPeriodUSec": "infinity",
            }
        }
        self.quota("300000 100000")
        self.burst("0")
        self.started: list[str] = []

    def quota(self, text: str) -> None:
        """What cpu.max holds."""
        (self.group / "cpu.max").write_text(text + "\n", encoding="ascii")

    def burst(self, text: str) -> None:
        """What cpu.max.burst holds."""
        (self.group / "cpu.max.burst").write_text(text + "\n", encoding="ascii")

    def has(self, name: str) -> str:
        """A file of the slice's group."""
        return (self.group / name).read_text(encoding="ascii").strip()

    def ask(self, **properties: str) -> None:
        """What systemd says of the slice from now on."""
        self.told[self.name].update(properties)

    def unit(self, name: str) -> Path:
        """A path below the directory of units."""
        return Path(self.root) / "etc/systemd/system" / name


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SlicedHost:
    """One active slice without a burst."""
    made = SlicedHost(tmp_path)

    def show(unit: str, _properties: object) -> dict[str, str]:
        if unit in made.started:
            return {"ActiveState": "active"}
        return made.told.get(unit, {"ActiveState": "inactive", "FragmentPath": ""})

    def act(verb: str, unit: str, _deadline_s: float = 0) -> None:
        (made.started.append if verb == "start" else made.started.remove)(unit)

    monkeypatch.setattr(units, "show", show)
    monkeypatch.setattr(units, "act", act)
    monkeypatch.setattr(reader.units, "show", show)
    return made
