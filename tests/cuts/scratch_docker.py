# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A dockerd that outlives the process that asks it: what it took is in ``/recorded/docker.json``.

A container runs in it all the time. Every restart is recorded, and whether one ended the container.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ansible_collections.steadygpu.host.plugins.module_utils.atomic import write_atomic
from ansible_collections.steadygpu.host.plugins.module_utils.engine.daemon_control import (
    EngineState,
)

RECORDED = "/recorded/docker.json"
CONFIG = "/etc/docker/daemon.json"
_HOT = ("runtimes", "default-runtime", "live-restore", "labels", "debug", "insecure-registries")


class ScratchDocker:
    """What :class:`daemon_plan.Engine` asks for."""

    def _recorded(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(Path(RECORDED).read_text())
        return found

    def _record(self, **more: Any) -> None:
        write_atomic(RECORDED, json.dumps({**self._recorded(), **more}, sort_keys=True))

    @staticmethod
    def _file() -> dict[str, Any]:
        text = Path(CONFIG).read_text() if os.path.exists(CONFIG) else ""
        found: dict[str, Any] = json.loads(text or "{}")
        return found

    def state(self) -> EngineState:
        """As the file it was last told of has it."""
        recorded = self._recorded()
        live: Mapping[str, Any] = recorded["live"]
        features = live.get("features") or {}
        driver = [word for word in live.get("exec-opts", []) if "cgroupdriver" in word]
        info = {
            "LiveRestoreEnabled": bool(live.get("live-restore")),
            "Runtimes": {"runc": {"path": "runc"}, **(live.get("runtimes") or {})},
            "DefaultRuntime": live.get("default-runtime", "runc"),
            "CDISpecDirs": ["/etc/cdi"] if features.get("cdi") else [],
            "CgroupDriver": driver[-1].partition("=")[2] if driver else "systemd",
            "Labels": live.get("labels", []),
            "Debug": bool(live.get("debug")),
            "Plugins": {"Log": ["json-file", "journald"]},
        }
        return EngineState(
            "running",
            None,
            "26.1.5",
            info,
            () if recorded.get("killed") else ("job",),
            started_at=recorded.get("started_at"),
        )

    def wait_until_settled(self) -> None:
        """It is."""

    def left_behind(self, state: EngineState) -> tuple[str, ...]:
        """No container has CDI devices."""
        return ()

    def carriers(self, state: EngineState) -> Mapping[str, Sequence[str]]:
        """No container carries the name of a runtime."""
        return {}

    def reload(self) -> None:
        """SIGHUP: keys that are present are taken, none that vanished is forgotten."""
        new = self._file()
        live = self._recorded()["live"]
        self._record(live={**live, **{key: new[key] for key in _HOT if key in new}})

    def restart(self) -> None:
        """Take the whole file; the container lives on if live-restore holds on both sides."""
        new = self._file()
        kept = self._recorded()["live"].get("live-restore") and new.get("live-restore")
        recorded = self._recorded()
        self._record(
            live=new,
            started_at=time.time() + 1,
            restarts=recorded.get("restarts", 0) + 1,
            killed=recorded.get("killed", False) or not kept,
        )

    def start(self) -> None:
        """It runs already."""
        raise AssertionError("a daemon that runs is not started")

    def stop(self) -> None:
        """Nobody has a reason to."""
        raise AssertionError("a daemon with a container is not stopped")

    def log(self) -> str:
        """Its last words."""
        return ""

    def validate(self, text: str, version: str | None) -> str | None:
        """It takes all."""
        return None
