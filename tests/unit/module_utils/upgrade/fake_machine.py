# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A host for the switch: what was asked of it is kept, what goes wrong is set."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ansible_collections.steadygpu.host.plugins.module_utils.units import UnitError
from ansible_collections.steadygpu.host.plugins.module_utils.upgrade.model import (
    Container,
    Daemon,
    Host,
    Shim,
)
from ansible_collections.steadygpu.host.plugins.module_utils.upgrade.switch import Ended
from ansible_collections.steadygpu.host.tests.unit.module_utils.upgrade.upgrade_hosts import (
    FORKY,
    host,
)


def old(pid: int, version: str, program: str) -> Daemon:
    """A daemon whose program was replaced under it."""
    return Daemon(True, True, False, pid, version, program, stale=True, kill_mode="process")


def upgraded() -> Host:
    """The host after its packages have changed, with the former daemons still running."""
    return host(
        installed=FORKY,
        docker=old(100, "26.1.5+dfsg1", "28.5.2+dfsg4"),
        containerd=old(90, "1.7.24~ds1", "2.1.9+ds1"),
        shims=(Shim("containerd.service", "containerd-shim-runc-v2"),),
    )


class FakeMachine:
    """A host whose restarts put the installed programs in force; what goes wrong is set."""

    def __init__(self, now: Host) -> None:
        self.host = now
        self.restarts: list[str] = []
        self.complaint: tuple[str, str] | None = None  # unit, words
        self.lost: dict[str, str] = {}
        self.loses: dict[str, str] = {}
        self.kills: dict[str, int | None] = {}  # container, exit status
        self.renews: dict[str, int] = {}  # container, new process
        self.broken: str | None = None
        self.ends_at_start = ""
        self.silent = 0
        self.useless = False
        self.finds: tuple[Container, ...] = ()  # by Docker, at its restart
        self.then: tuple[Container, ...] | None = None  # once the programs were asked

    def look(self) -> Host:
        """The host now."""
        return self.host

    def restart(self, unit: str) -> None:
        """Put the installed program in force, unless told otherwise."""
        if unit == self.broken:
            raise UnitError(f"systemctl restart {unit} failed")
        self.restarts.append(unit)
        if self.useless:
            return
        key = unit.partition(".")[0]
        daemon = getattr(self.host, key)
        fresh = replace(
            daemon, stale=False, version=daemon.program, active=True, coming_up=False, pid=200
        )
        versions = {**self.host.versions, key: str(daemon.program)}
        status = "running" if key == "docker" else self.host.status
        self.host = replace(self.host, **{key: fresh}, versions=versions, status=status)
        if key == "docker":
            self.lost.update(self.loses)
            there = (*self.host.containers, *self.finds)
            self.host = replace(self.host, containers=tuple(map(self._after, there)))

    def _after(self, one: Container) -> Container:
        if one.name in self.kills:
            return replace(one, running=False, pid=0)
        return replace(one, pid=self.renews.get(one.name, one.pid))

    def why_not_start(self) -> str:
        """As set."""
        return self.ends_at_start

    def answers(self) -> str | None:
        """Silent as often as set."""
        self.silent -= 1
        return None if self.silent < 0 else "nobody listens on it"

    def refuses(self, unit: str, text: str | None) -> str | None:
        """The complaint, if it is of this unit."""
        return self.complaint[1] if self.complaint and self.complaint[0] == unit else None

    def lost_gpus(self) -> Mapping[str, str]:
        """What is lost by now."""
        if self.then is not None:
            self.host, self.then = replace(self.host, containers=self.then), None
        return dict(self.lost)

    def ended(self, name: str) -> Ended:
        """As set."""
        return Ended(name, self.kills.get(name))

    def log(self, unit: str) -> str:
        """Words to be found in a message."""
        return f"{unit} said goodbye"
