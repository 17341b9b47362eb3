# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A dockerd in memory and a host with its files, for the tests of daemon.json."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ansible_collections.steadygpu.host.plugins.module_utils.engine.daemon_apply import (
    Outcome,
    carry_out,
)
from ansible_collections.steadygpu.host.plugins.module_utils.engine.daemon_control import (
    EngineState,
)
from ansible_collections.steadygpu.host.plugins.module_utils.engine.daemon_plan import (
    Plan,
    Wish,
    make_plan,
)
from ansible_collections.steadygpu.host.plugins.module_utils.units import UnitError

HOT = ("runtimes", "default-runtime", "live-restore", "labels", "debug")


@dataclass
class FakeDocker:
    """dockerd as measured: SIGHUP takes hot keys that are present, forgets none that vanish."""

    path: str
    running: tuple[str, ...] = ()
    status: str = "running"
    version: str = "26.1.5"
    swarm: bool = False
    flags: Mapping[str, str] = field(default_factory=dict)
    refuses: str = ""  # a word in the file that keeps the daemon from starting
    deaf: tuple[str, ...] = ()  # keys it never takes
    appears_on_reload: str = ""
    hangs_after: str = ""  # an action after which it lives and does not answer
    dies_after: str = ""
    raises: Mapping[str, Exception] = field(default_factory=dict)  # by action
    live: dict[str, Any] = field(default_factory=dict)
    forgotten: tuple[str, ...] = ()  # who is not started again
    bound: tuple[str, ...] = ()  # units that systemd restarts with it
    living: tuple[str, ...] = ()  # live in their shims while it is stopped
    adrift: tuple[str, ...] = ()  # of those, whom it would not find
    carried: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # containers by runtime
    shows: Mapping[str, Any] = field(default_factory=dict)  # more that GET /info has
    flags_known: bool = True
    started_at: float | None = None
    words: str = "unable to configure the Docker daemon"
    killed: list[str] = field(default_factory=list)
    done: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.live = self._file()

    def _file(self) -> dict[str, Any]:
        if not os.path.exists(self.path):
            return {}
        text = Path(self.path).read_text()
        return {k: v for k, v in json.loads(text or "{}").items() if k not in self.deaf}

    def state(self) -> EngineState:
        """As the file it was last told of has it."""
        if self.status != "running":
            has_unit = self.status != "absent"
            stopped = self.status == "stopped"
            return EngineState(
                self.status,
                reason="test",
                flags=self.flags,
                has_unit=has_unit,
                living=self.living if stopped else (),
                adrift=self.adrift if stopped else (),
            )
        names = {"runc": {"path": "runc"}, **(self.live.get("runtimes") or {})}
        features = self.live.get("features") or {}
        info = {
            "LiveRestoreEnabled": bool(self.live.get("live-restore")),
            "Runtimes": names,
            "DefaultRuntime": self.live.get("default-runtime", "runc"),
            "CDISpecDirs": ["/etc/cdi"] if features.get("cdi") else [],
            "CgroupDriver": "systemd",
            "Labels": self.live.get("labels", []),
            "Debug": bool(self.live.get("debug")),
            "Plugins": {"Log": ["json-file", "journald"]},
            **self.shows,
        }
        return EngineState(
            "running",
            None,
            self.version,
            info,
            self.running,
            self.swarm,
            started_at=self.started_at,
            flags=self.flags,
            bound=self.bound,
            flags_known=self.flags_known,
        )

    def _act(self, action: str) -> None:
        self.done.append(action)
        if action == self.hangs_after:
            self.status = "unreachable"
        if action == self.dies_after:
            self.status = "stopped"
        if action in self.raises:
            raise self.raises[action]

    def reload(self) -> None:
        """SIGHUP."""
        self._act("reload")
        new = self._file()
        self.live.update({key: new[key] for key in HOT if key in new})
        if self.appears_on_reload:
            self.running += (self.appears_on_reload,)
            self.live["live-restore"] = False

    def restart(self) -> None:
        """End the containers unless live-restore holds on both sides, and come up."""
        self._act("restart")
        kept = self.live.get("live-restore") and self._file().get("live-restore")
        if not kept:
            self.killed.extend(self.running)
            self.running = ()
        self._come_up("restart")

    def start(self) -> None:
        """Come up, if it likes its file."""
        self._act("start")
        self._come_up("start")

    def stop(self) -> None:
        """End daemon and containers."""
        self._act("stop")
        self.killed.extend(self.running)
        self.status = "stopped"

    def _come_up(self, action: str) -> None:
        if self.refuses and self.refuses in Path(self.path).read_text():
            self.status = "stopped"
            raise UnitError("docker.service failed")
        self.status = "unreachable" if action == self.hangs_after else "running"
        self.live = self._file()
        if self.live.get("live-restore"):
            self.running += self.living
        else:
            self.killed.extend(self.living)
        self.living = ()

    def log(self) -> str:
        """Its last words."""
        return self.words

    def left_behind(self, state: EngineState) -> tuple[str, ...]:
        """Containers with CDI devices."""
        return self.forgotten

    def carriers(self, state: EngineState) -> Mapping[str, Sequence[str]]:
        """As its files have it."""
        if "carriers" in self.raises:
            raise self.raises["carriers"]
        return self.carried

    def validate(self, text: str, version: str | None) -> str | None:
        """Knows one unknown key."""
        return "unknown key" if "ai-scheduler" in text else None


@dataclass
class Host:
    """A directory with a daemon.json and our record of it."""

    directory: Path
    ours: tuple[str, ...] = ()  # texts that the ledger knows

    @property
    def path(self) -> str:
        """Of daemon.json."""
        return str(self.directory / "daemon.json")

    @property
    def record(self) -> str:
        """Path of what we remember."""
        return str(self.directory / "record.json")

    def write(self, text: str) -> None:
        """Make ``text`` the daemon.json that is found."""
        Path(self.path).write_text(text)

    def text(self) -> str | None:
        """What daemon.json holds; None without one."""
        return Path(self.path).read_text() if os.path.exists(self.path) else None

    def docker(self, **kinds: Any) -> FakeDocker:
        """A daemon that reads this daemon.json."""
        return FakeDocker(self.path, **kinds)

    def plan(self, docker: FakeDocker, config: Mapping[str, Any], **wish: Any) -> Plan:
        """What would be done."""
        asked = Wish(config=config, path=self.path, **wish)
        return make_plan(
            asked,
            docker,
            self.record,
            is_program=lambda path: path != "/missing",
            is_ours=lambda path, text: text in self.ours,
        )

    def run(self, docker: FakeDocker, config: Mapping[str, Any], **wish: Any) -> Outcome:
        """Plan and carry out, with no patience."""
        plan = self.plan(docker, config, **wish)
        return carry_out(plan, docker, timeout_s=0.01, record_path=self.record)


NVIDIA = {"runtimes": {"nvidia": {"path": "/usr/bin/nvidia-container-runtime"}}}
CDI = {"features": {"cdi": True}}
