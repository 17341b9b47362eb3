# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is known of a host before its engine changes, and what the change means: plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..containerd.config import Config
from ..engine.daemon_waiting import is_on
from ..versions import at_least

INFO, WARNING, ERROR = "info", "warning", "error"

# How a container got its GPU.
BY_CDI, BY_FLAG, BY_RUNTIME, BY_DEVICE = "cdi", "--gpus", "runtime", "--device"


@dataclass(frozen=True)
class Container:
    """A container of Docker. ``gpus`` is one of the four ways above, "" for none.

    ``on_socket``: Docker's socket is mounted in it, so it is a client of the API; ``api_pin`` is
    its DOCKER_API_VERSION. ``restart`` is the restart policy's name. ``looked_into``: the engine
    described it; else only ``id``, ``name``, ``running`` and ``on_socket`` are known.
    """

    id: str
    name: str
    running: bool = False
    pid: int = 0
    on_socket: bool = False
    looked_into: bool = True
    api_pin: str = ""
    gpus: str = ""
    runtime: str = ""
    restart: str = "no"


@dataclass(frozen=True)
class Daemon:
    """A daemon's unit. ``stale``: its program on disk is another one than the one that runs.

    ``version`` is the running one's, ``program`` that of the program on disk. ``bound`` are the
    active units that systemd stops and starts with it. ``coming_up``: started, and not there yet.
    """

    there: bool = False
    active: bool = False
    coming_up: bool = False
    pid: int = 0
    version: str | None = None
    program: str | None = None
    stale: bool = False
    kill_mode: str = ""
    bound: tuple[str, ...] = ()


@dataclass(frozen=True)
class Shim:
    """A containerd shim with its container: the ``unit`` it lives in, its ``program``'s name.

    ``namespace`` and ``container``, "" for one that has ended, are containerd's, ``version`` is
    that of the language that it speaks.
    """

    unit: str
    program: str
    namespace: str = ""
    container: str = ""
    version: int = 2


@dataclass(frozen=True)
class Host:
    """A host before the change.

    ``versions`` has docker, containerd and runc as they run, ``installed`` the engine's packages,
    ``unfinished`` those that a killed package manager has left half done, "" for a version that
    nobody can tell.
    ``config`` is ``daemon.json``, ``flags`` are those of docker.service, all of them if
    ``flags_known``, ``info`` is ``GET /info``.
    ``config_newer``: the file was written after the daemon had started. ``config_fault`` and
    ``containerd_fault`` say why a file could not be read. ``pins`` are units
    and files of the host with DOCKER_API_VERSION. ``endangered`` are those whose GPU a
    daemon-reload may take. ``programs``: is a program on the path of the system? ``cdi_devices``:
    how many a valid CDI specification names. ``in_lxc``: is the host an LXC container?
    """

    status: str = "running"
    reason: str | None = None
    versions: Mapping[str, str] = field(default_factory=dict)
    installed: Mapping[str, str] = field(default_factory=dict)
    unfinished: Mapping[str, str] = field(default_factory=dict)
    manager: str | None = "dpkg"
    os: str | None = None
    docker: Daemon = Daemon()
    containerd: Daemon = Daemon()
    config: Mapping[str, Any] = field(default_factory=dict)
    config_fault: str | None = None
    config_newer: bool = False
    flags: Mapping[str, str] = field(default_factory=dict)
    flags_known: bool = True
    info: Mapping[str, Any] = field(default_factory=dict)
    containers: tuple[Container, ...] = ()
    shims: tuple[Shim, ...] = ()
    containerd_config: Config | None = None
    containerd_fault: str | None = None
    pins: Mapping[str, str] = field(default_factory=dict)
    endangered: tuple[str, ...] = ()
    programs: Mapping[str, bool] = field(default_factory=dict)
    cdi_devices: int = 0
    cgroup_version: int | None = None
    systemd: int | None = None
    in_lxc: bool = False

    @property
    def there(self) -> dict[str, str]:
        """The engine's packages, what is half done among them."""
        return {**self.unfinished, **self.installed}

    @property
    def running(self) -> tuple[Container, ...]:
        """The containers that a stop of the engine could end."""
        return tuple(one for one in self.containers if one.running)

    @property
    def live_restore(self) -> bool:
        """Does the daemon keep containers when it stops, and adopt them when it starts again?"""
        by_flag = is_on(self.flags, "--live-restore")
        wanted = self.config.get("live-restore") is True or by_flag
        return bool(self.info.get("LiveRestoreEnabled")) and wanted

    @property
    def stale(self) -> tuple[str, ...]:
        """The units that run another program than the installed one, in the order to start them."""
        known = (("containerd.service", self.containerd), ("docker.service", self.docker))
        return tuple(unit for unit, daemon in known if daemon.stale)

    @property
    def images_in_containerd(self) -> bool:
        """Does the daemon keep images and containers in containerd's store?"""
        rows = self.info.get("DriverStatus") or []
        return any("io.containerd.snapshotter" in str(row) for row in rows)

    @property
    def in_swarm(self) -> bool:
        """Is it a node of a Swarm?"""
        return (self.info.get("Swarm") or {}).get("LocalNodeState") not in (None, "", "inactive")

    def feature(self, name: str) -> bool | None:
        """A switch of ``features`` in ``daemon.json`` or the flags; None where it is not set."""
        features = self.config.get("features")
        value = features.get(name) if isinstance(features, dict) else None
        if isinstance(value, bool):
            return value
        for word in self.flags.get("--feature", "").split(","):
            key, equals, said = word.partition("=")
            if key == name:
                return said == "true" if equals else True
        return None


@dataclass(frozen=True)
class Move:
    """Versions before and after, of docker, containerd and runc; "" where one is not known."""

    before: Mapping[str, str]
    after: Mapping[str, str]

    def gains(self, component: str, release: str) -> bool:
        """Does the component reach ``release``, coming from an older one?"""
        return self._has(self.after, component, release) and self._lacks(
            self.before, component, release
        )

    def loses(self, component: str, release: str) -> bool:
        """Does the component go below ``release``, coming from it or a newer one?"""
        return self._has(self.before, component, release) and self._lacks(
            self.after, component, release
        )

    @staticmethod
    def _has(versions: Mapping[str, str], component: str, release: str) -> bool:
        return at_least(versions.get(component), release)

    @staticmethod
    def _lacks(versions: Mapping[str, str], component: str, release: str) -> bool:
        known = versions.get(component)
        return bool(known) and not at_least(known, release)


@dataclass(frozen=True)
class Item:
    """One thing that changes. An ``error`` blocks unless it is accepted by its id.

    ``release`` is that of the component where it changes, ``""`` for what every change meets.
    ``seen`` is what this host has of it, ``todo`` what to do about it.
    """

    id: str
    severity: str
    title: str
    seen: str
    why: str
    todo: str
    source: str
    release: str = ""

    def as_dict(self) -> dict[str, str]:
        """The item as JSON types."""
        return {
            "id": self.id,
            "severity": self.severity,
            "release": self.release,
            "title": self.title,
            "seen": self.seen,
            "why": self.why,
            "todo": self.todo,
            "source": self.source,
        }


def listed(names: object, most: int = 10) -> str:
    """Names for a person: the first ten and how many more."""
    words = [str(name) for name in names] if isinstance(names, (list, tuple)) else []
    more = f" and {len(words) - most} more" if len(words) > most else ""
    return ", ".join(words[:most]) + more
