# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What may be stopped for a MIG change, in which order, and how it comes back.

A stop set is a list of systemd units, ``container:NAME`` and ``module:nvidia_drm``. The
container engine and the kubelet are never in it: what they run is somebody's job.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass

from .. import units
from ..engine.docker_api import DockerClient, EngineError, EngineUnreachableError
from ..process import CommandMissingError, run
from . import containers
from .model import MigError

_UNIT = re.compile(r"[A-Za-z0-9][A-Za-z0-9:_.\\@-]*\.(?:service|socket|timer|path)$")
_CONTAINER = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*$")
_MODULES = ("nvidia_drm", "nvidia_modeset")

_SACRED = re.compile(
    r"(?:snap\.docker\.dockerd|docker|dockerd|containerd|podman|podman-restart|crio|cri-o|cri-docker"
    r"|kubelet|k3s|k3s-agent|k0scontroller|k0sworker|rke2-server|rke2-agent"
    r"|snap\.microk8s\.daemon-[a-z0-9-]+|snap\.k8s\.[a-z0-9-]+|buildkit"
    # A user's manager runs that user's engine, and every job of that user.
    r"|user@\d+)\.(?:service|socket)$"
)
# Stopping a unit takes along those that name it in Requires=, Requisite=, BindsTo=, PartOf=
# (systemd.unit(5)); these are the properties' reverse names.
_TAKES_ALONG = ("RequiredBy", "RequisiteOf", "BoundBy", "ConsistsOf", "PropagatesStopTo")

_REFUSALS = (units.UnitError, CommandMissingError, EngineError, EngineUnreachableError)


class StopError(MigError):
    """Something could not be stopped or must not be."""


@dataclass(frozen=True)
class Item:
    """``kind`` is ``unit``, ``container`` or ``module``."""

    kind: str
    name: str

    @property
    def text(self) -> str:
        """As it is written in a stop set."""
        return self.name if self.kind == "unit" else f"{self.kind}:{self.name}"


def parse(entries: Sequence[str]) -> list[Item]:
    """The items in their order. Raises StopError for what is not understood or refused."""
    return [item_of(entry) for entry in entries]


def item_of(entry: str) -> Item:
    """One entry. Raises StopError."""
    kind, colon, name = entry.partition(":")
    if colon and kind == "container" and _CONTAINER.match(name):
        return Item(kind, name)
    if colon and kind == "module" and name in _MODULES:
        return Item(kind, name)
    unit = entry if "." in entry else entry + ".service"
    if kind in ("container", "module") or not _UNIT.match(unit):
        raise StopError(
            f"stop: {entry!r} is not understood; wanted a unit such as dcgm.service, "
            f"container:NAME, or module:{_MODULES[0]}"
        )
    _refuse_sacred(unit, ())
    return Item("unit", unit)


def _refuse_sacred(unit: str, above: Sequence[str]) -> None:
    if _SACRED.match(unit):
        why = "".join(f"systemd stops it with {name}, and " for name in above[-1:])
        raise StopError(
            f"stop: {unit} is refused: {why}a MIG change never stops or restarts a container "
            "engine or a kubelet. Name the containers that hold the GPU instead: container:NAME"
        )


class StopSet:
    """The items on this host: which of them run, stopping and starting them."""

    def __init__(self, items: Sequence[Item], client: DockerClient, root: str = "/") -> None:
        self._items = items
        self._client = client
        self._root = root

    def running(self) -> list[Item]:
        """What would be stopped, in order: the items that run, each after the active units
        that systemd would take along.

        Raises StopError when an engine is among those, and for what could not be started again.
        """
        found: list[Item] = []
        for item in self._items:
            if item.kind == "unit":
                for unit in _with_dependants(item.name):
                    _append(found, Item("unit", unit))
            elif self._runs(item):
                _append(found, item)
        return found

    def stop(self, item: Item) -> None:
        """Stop one of them. Raises StopError."""
        try:
            self._stop(item)
        except _REFUSALS as error:
            raise StopError(f"{item.text} could not be stopped: {error}") from error

    def start(self, items: Sequence[Item], wait: bool = True) -> list[str]:
        """Start them in reverse order, all of them whatever happens; the failures in words."""
        failures = []
        for item in reversed(items):
            try:
                self._start(item, wait)
            except (*_REFUSALS, StopError) as error:
                failures.append(f"{item.text} could not be started again: {error}")
        return failures

    def _runs(self, item: Item) -> bool:
        if item.kind == "module":
            return os.path.isdir(os.path.join(self._root, "sys/module", item.name))
        if item.name not in containers.names(self._client).values():
            return False
        try:
            vanishes = containers.vanishes_when_stopped(self._client, item.name)
        except _REFUSALS as error:
            raise StopError(f"{item.text}: {error}") from error
        if vanishes:
            raise StopError(
                f"stop: {item.text} is refused: it was started with --rm, so stopping it deletes "
                "it. Stop it by hand, or start it without --rm"
            )
        return True

    def _stop(self, item: Item) -> None:
        if item.kind == "unit":
            units.act("stop", item.name)
        elif item.kind == "container":
            self._client.stop(item.name)
        else:
            # Not modprobe -r: that takes unused modules below along, nvidia itself among them,
            # and with it the MIG instances of every GPU. The kernel refuses a module in use.
            _command(["rmmod", item.name])

    def _start(self, item: Item, wait: bool) -> None:
        if item.kind == "unit" and wait:
            units.act("start", item.name)
        elif item.kind == "unit":
            # At boot the unit waits for ours, so waiting for it would never end.
            _command(["systemctl", "start", "--no-block", item.name])
        elif item.kind == "container":
            self._client.start(item.name)
        else:
            _command(["modprobe", item.name])


def _command(argv: list[str]) -> None:
    done = run(argv)
    if not done.ok:
        raise StopError("{} failed: {}".format(" ".join(argv), done.said))


def _append(items: list[Item], item: Item) -> None:
    if item not in items:
        items.append(item)


def _with_dependants(unit: str, above: tuple[str, ...] = ()) -> list[str]:
    """The active units that stopping this one stops, dependants first; [] when it is down."""
    shown = units.show(unit, ("Id", "ActiveState", "Transient", *_TAKES_ALONG))
    name = shown.get("Id", unit)
    _refuse_sacred(name, above)
    if shown.get("ActiveState") not in ("active", "activating", "reloading"):
        return []
    if shown.get("Transient") == "yes":
        raise StopError(
            f"stop: {name} is refused: it is transient (systemd-run), so nobody could start it "
            "again. Stop it by hand"
        )
    found = []
    for dependant in sorted({one for key in _TAKES_ALONG for one in shown.get(key, "").split()}):
        # Targets that want a service are milestones of the boot, not programs.
        if dependant not in above and not dependant.endswith(".target"):
            found += _with_dependants(dependant, (*above, name))
    return [*dict.fromkeys(found), name]
