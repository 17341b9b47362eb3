# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A host below a scratch directory: real files, and units and settings that only it remembers."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ansible_collections.steadygpu.host.plugins.module_utils import vouched
from ansible_collections.steadygpu.host.plugins.module_utils.rollback import scope
from ansible_collections.steadygpu.host.plugins.module_utils.rollback.codec import entry_from_json
from ansible_collections.steadygpu.host.plugins.module_utils.rollback.model import (
    DIRECTORY,
    Done,
    Host,
    Left,
    Moment,
    State,
    Step,
    UnitState,
)
from ansible_collections.steadygpu.host.plugins.module_utils.rollback.observation import files
from ansible_collections.steadygpu.host.plugins.module_utils.rollback.storage.store import Store
from ansible_collections.steadygpu.host.plugins.module_utils.rollback.way_back import (
    actors_api,
    put_back,
)
from ansible_collections.steadygpu.host.plugins.module_utils.rollback.way_back.actors_api import (
    Context,
)

DAEMON = "/etc/docker/daemon.json"
OWN = "/etc/steadygpu/agent.yml"
SYSCTL = "/etc/sysctl.d/90-steadygpu.conf"


@contextlib.contextmanager
def scratch() -> Iterator[Path]:
    """A directory for a host, in memory where that is possible: there fsync costs nothing."""
    memory = "/dev/shm"
    directory = memory if os.access(memory, os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=directory) as path:
        yield Path(path)


class FakeHost:
    """A host whose tree lies below ``root``; ``clock`` is what its clocks show.

    ``before_step`` is called with every step that an actor is asked to do.
    """

    def __init__(self, root: Path) -> None:
        self.root = str(root)
        self.units: dict[str, UnitState] = {}
        self.sysctls: dict[str, str] = {}
        self.containers: dict[str, Any] = {}
        self.unknown: dict[str, str] = {}
        self.name = Host("0123456789abcdef", "gpu01")
        self.clock = Moment(wall=1_000_000.0, uptime=100.0, boot="boot-1")
        self.before_step: Callable[[Step], None] = lambda step: None
        self.pending: dict[str, str] = {}
        for directory in ("etc/docker", "etc/sysctl.d", "etc/cdi", "srv"):
            (root / directory).mkdir(parents=True)

    # -- what a restore asks ------------------------------------------------------------

    def observe(self, sink: Any, declared: Sequence[str]) -> State:
        """What it is now."""
        return State(
            files=files.read(scope.areas(declared), sink, self.root),
            units=dict(self.units),
            sysctls=dict(self.sysctls),
            runtime={"containers": dict(self.containers)},
            unknown=dict(self.unknown),
        )

    def machine(self) -> Host:
        """Which host it is."""
        return self.name

    def moment(self) -> Moment:
        """What its clocks show."""
        return self.clock

    def actors(self) -> Mapping[str, actors_api.Actor]:
        """Docker's file is a file here; nobody reloads anything."""
        return {
            actors_api.DOCKER: self._docker,
            actors_api.SLICE: self._file,
            actors_api.UNIT: self._unit,
            actors_api.SYSCTL: self._sysctl,
            actors_api.SYSTEMD_RELOAD: self._nothing,
            actors_api.CONTAINERD: self._nothing,
        }

    def _docker(self, step: Step, context: Context) -> Done:
        done = self._file(step, context)
        reason = self.pending.get(step.subject)
        return replace(done, left=(Left(step.subject, reason, pending=True),)) if reason else done

    def _file(self, step: Step, context: Context) -> Done:
        self.before_step(step)
        entry = entry_from_json(step.details["entry"])
        return Done(put_back.put_back(step.subject, entry, context.content, context.root))

    def _unit(self, step: Step, context: Context) -> Done:
        self.before_step(step)
        before = self.units[step.subject]
        self.units[step.subject] = replace(before, **step.details)
        return Done(self.units[step.subject] != before)

    def _sysctl(self, step: Step, context: Context) -> Done:
        self.before_step(step)
        before = self.sysctls[step.subject]
        self.sysctls[step.subject] = step.details["value"]
        return Done(before != step.details["value"])

    def _nothing(self, step: Step, context: Context) -> Done:
        self.before_step(step)
        return Done()

    # -- what happens to it -------------------------------------------------------------

    def at(self, path: str) -> Path:
        """Where a path of the host really is."""
        return Path(self.root, path.lstrip("/"))

    def ours(self, path: str, text: str | None) -> None:
        """A module of ours writes a file, or removes it."""
        self.at(path).parent.mkdir(parents=True, exist_ok=True)
        if text is None:
            vouched.remove(str(self.at(path)), root=self.root)
        else:
            vouched.write(str(self.at(path)), text, root=self.root)

    def theirs(self, path: str, text: str | None) -> None:
        """Somebody else does; or a role, by a module of Ansible's."""
        self.at(path).parent.mkdir(parents=True, exist_ok=True)
        if text is None:
            self.at(path).unlink(missing_ok=True)
        else:
            self.at(path).write_text(text, encoding="utf-8")

    def text(self, path: str) -> str | None:
        """What a file holds, None if there is none."""
        try:
            return self.at(path).read_text(encoding="utf-8")
        except FileNotFoundError:
            return None

    def kept(self, path: str) -> list[str]:
        """The contents that lie beside a path for a person."""
        beside = self.at(path).parent.glob(self.at(path).name + ".steadygpu-conflict*")
        return sorted(one.read_text(encoding="utf-8") for one in beside)

    def later(self, seconds: float) -> None:
        """Time passes."""
        self.clock = replace(
            self.clock, wall=self.clock.wall + seconds, uptime=self.clock.uptime + seconds
        )

    def store(self) -> Store:
        """Its store, where the ledger is as well."""
        return Store(os.path.join(self.root, DIRECTORY.lstrip("/")), now=lambda: self.clock.wall)
