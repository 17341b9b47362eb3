# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a host is now, whole: one :class:`..model.State`. Changes nothing.

Files must be readable, everything else may fail: a part that could not be read is empty and
``State.unknown`` says why. The names of parts there are ``units``, ``sysctls``, ``packages``,
``mig``, ``kernel_cmdline``, and of the runtime fingerprint ``devices``, ``driver``, ``toolkit`` and
``containers``. Others are about less than a part, which is known for the rest: ``mig GPU <index>``
(one GPU that does not answer), ``names of containers``, ``files of …``.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any, Callable, TypeVar

from ... import packages
from ...engine.docker_api import DEFAULT_SOCKET, DockerClient, EngineError, EngineUnreachableError
from ...hardware import files as kernel_files
from ...process import CommandMissingError, find_program
from .. import scope
from ..model import Host, Moment, PackageState, RollbackError, State, UnitState
from . import container_files, device_rules, files, fingerprint, package_names, sysctls, units_seen
from .device_rules import Running
from .fingerprint import Listed

if TYPE_CHECKING:
    from .gpu_seen import Seen

_DOCKER_NAMESPACE = "moby"
# An engine that waits for a container's lock must not use up the time of all other parts.
_ENGINE_DEADLINE_S = 5.0

# Their texts are for people; of any other error the kind is told as well.
_KNOWN = (RollbackError, CommandMissingError, EngineError, EngineUnreachableError)

Value = TypeVar("Value")


def observe(
    sink: Any,
    declared: Sequence[str] = (),
    root: str = "/",
    live: bool | None = None,
    deadline_s: float = 20.0,
    socket: str = DEFAULT_SOCKET,
    containers: bool = True,
) -> State:
    """The state of the host; contents of files go to ``sink`` (see :func:`.files.read`).

    ``declared`` are absolute paths to look at beyond :mod:`..scope`. When not ``live``, which a
    ``root`` other than ``/`` is by default, only files are read: every other part would tell of the
    machine this runs on. ``deadline_s`` bounds all questions together; ``containers`` False leaves
    the running containers out. Raises RollbackError and OSError for files, for nothing else.
    """
    if live is None:
        live = os.path.abspath(root) == "/"
    areas = scope.areas(declared)
    if not live:
        return State(files=files.read(areas, sink, root))
    look = _Look(root, deadline_s, socket)
    # These fork, and a fork beside other threads may inherit a lock that nobody opens again.
    seen = look.part("mig", look.gpus)
    driver = look.part("driver", lambda: fingerprint.driver(look.left(), root))
    with ThreadPoolExecutor(max_workers=3) as pool:
        units_asked = pool.submit(look.part, "units", look.units)
        packages_asked = pool.submit(look.part, "packages", look.packages)
        toolkit_asked = pool.submit(look.part, "toolkit", lambda: fingerprint.toolkit(root))
        entries = files.read(areas, sink, root)
        units = units_asked.result() or {}
        found = look.part("containers", lambda: look.containers(seen, units)) if containers else {}
    return State(
        files=entries,
        units=units,
        sysctls=look.part("sysctls", lambda: sysctls.read(sysctls.names(root), root)) or {},
        packages=packages_asked.result() or {},
        mig=seen.mig if seen is not None else None,
        kernel_cmdline=kernel_files.text(os.path.join(root, "proc/cmdline")),
        runtime={
            "devices": look.part("devices", lambda: fingerprint.devices(root)) or {},
            "driver": driver or {},
            "toolkit": toolkit_asked.result() or {},
            "containers": found or {},
        },
        unknown=dict(sorted(look.unknown.items())),
    )


def host(root: str = "/") -> Host:
    """Whose state it is. A host without a machine-id has the empty one."""
    machine = kernel_files.text(os.path.join(root, "etc/machine-id"))
    return Host(machine=machine, hostname=os.uname().nodename)


def moment() -> Moment:
    """The time now; by CLOCK_BOOTTIME, which goes on while the host sleeps."""
    return Moment(
        wall=time.time(),
        uptime=time.clock_gettime(time.CLOCK_BOOTTIME),
        boot=kernel_files.text("/proc/sys/kernel/random/boot_id"),
    )


class _Look:
    """One look at a live host: its deadline, and what could not be seen."""

    def __init__(self, root: str, deadline_s: float, socket: str) -> None:
        self.root = root
        self.unknown: dict[str, str] = {}
        self._socket = socket
        self._end = time.monotonic() + deadline_s

    def left(self) -> float:
        """Seconds until the deadline, never none: a question that is not put says nothing."""
        return max(0.1, self._end - time.monotonic())

    def part(self, name: str, question: Callable[[], Value]) -> Value | None:
        """The answer; None, with the reason in ``unknown``, when there is none."""
        try:
            return question()
        except Exception as error:
            # Whatever is broken on a host, it can still be brought back to what is known of it.
            known = isinstance(error, (*_KNOWN, OSError)) and str(error)
            self.unknown[name] = str(error) if known else f"{type(error).__name__}: {error}"
            return None

    def gpus(self) -> Seen | None:
        """What NVML tells; None without a driver to ask."""
        if not os.path.exists(os.path.join(self.root, "proc/driver/nvidia/version")):
            # Asked by root without its module, NVML would load it.
            return None
        from . import gpu_seen

        seen = gpu_seen.read(self.left())
        for index, reason in seen.sick.items():
            self.unknown[f"mig GPU {index}"] = reason
        return seen

    def units(self) -> dict[str, UnitState]:
        """The units, in one question."""
        return units_seen.read(units_seen.names(self.root), self.left())

    def packages(self) -> dict[str, PackageState]:
        """The packages that matter, by name. Raises RollbackError for half an answer."""
        found = packages.read_installed(self.root, self.left())
        # A list that was cut off names too few, and a restore would take the rest for removed.
        if found.manager is not None and (not found.packages or time.monotonic() >= self._end):
            raise RollbackError(
                f"the package database ({found.manager}) told of {len(found.packages)} packages "
                "and did not end in time, or failed. Does another program hold it?"
            )
        there = {name: PackageState(one.version, one.held) for name, one in found.packages.items()}
        there.update({name: PackageState("", False) for name in found.half_done})
        names = package_names.recorded(there, os.uname().release)
        return {name: there[name] for name in sorted(names)}

    def containers(
        self, seen: Seen | None, units: Mapping[str, UnitState]
    ) -> dict[str, dict[str, Any]]:
        """Running containers with a GPU, and the changed files of those that ask for it."""
        running = device_rules.running(self.root)
        memory = seen.memory_mib if seen is not None else None
        if not running and not memory:
            return {}
        listed = self._listed(running, units)
        found = fingerprint.containers(running, listed, memory, self.left(), self.root)
        asking = {name for name, one in listed.items() if container_files.asks(one.labels)}
        for name in sorted(asking & found.keys()):
            self._add_files(found[name], partial(container_files.of_docker, self._client(), name))
        self._add_files_of_containerd(found)
        return found

    def _client(self) -> DockerClient:
        return DockerClient(self._socket, min(self.left(), _ENGINE_DEADLINE_S))

    def _listed(
        self, running: Sequence[Running], units: Mapping[str, UnitState]
    ) -> dict[str, Listed]:
        """What Docker says of its containers; {} when it does not run: a question may start it."""
        docker = units.get("docker.service")
        ours = any(one.namespace == _DOCKER_NAMESPACE for one in running)
        if not ours or (
            docker is not None and docker.load == "loaded" and docker.active != "active"
        ):
            return {}
        answer = self.part("names of containers", lambda: self._client().containers(False)) or []
        return {
            one["Id"]: Listed(
                (one.get("Names") or ["/" + one["Id"][:12]])[0].lstrip("/"),
                one.get("Labels") or {},
            )
            for one in answer
        }

    def _add_files_of_containerd(self, found: Mapping[str, dict[str, Any]]) -> None:
        """The lists of containers that run without Docker."""
        spaces = {one["namespace"] for one in found.values()} - {"", _DOCKER_NAMESPACE}
        if not spaces or find_program("ctr") is None:
            return
        for space in sorted(spaces):
            question = partial(container_files.asking, space, self.left())
            asking = self.part(f"files of containers in {space}", question) or []
            for name in sorted(set(asking) & found.keys()):
                self._add_files(
                    found[name],
                    partial(container_files.of_containerd, space, name, self.left()),
                )

    def _add_files(self, one: dict[str, Any], question: Callable[[], list[str]]) -> None:
        told = self.part(f"files of container {one['name']}", question)
        if told is not None:
            one["changed_files"] = told
