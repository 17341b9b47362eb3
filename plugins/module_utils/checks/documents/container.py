# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What somebody asks an engine to start, however it is written: one model for run lines, Compose
services and Ansible's docker_container. Pure.

Every way to write it is translated into Docker's own long flags, so that a rule is written once:
``mem_limit: 8g`` and ``-m 8g`` are both ``flags["memory"]``, each with its own place and spelling.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ..model import Given, Position


@dataclass(frozen=True)
class GpuRequest:
    """One request for GPUs: ``--gpus``, Compose's ``gpus:`` or a device reservation.

    ``count`` is the text given (``all``, ``-1``, ``2``) or None; ``device_ids`` are those named.
    ``capabilities`` is None where the key is missing. ``how`` is ``--gpus``, ``gpus``,
    ``reservation`` or ``device_requests``. ``errors`` are what the engine's own grammar refuses,
    each with its place and, as ``spelled``, a word for the kind of error: ``unexpected-key``,
    ``count-and-ids``, ``bad-csv``, ``bad-count``, ``duplicate-key``, ``capabilities-missing``,
    ``capabilities-type``.
    """

    at: Position
    how: str
    raw: str = ""
    driver: Given | None = None
    count: Given | None = None
    device_ids: tuple[Given, ...] = ()
    capabilities: tuple[str, ...] | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    errors: tuple[Given, ...] = ()

    @property
    def wants_all(self) -> bool:
        """Does it ask for every GPU?"""
        named = any(given.value == "all" for given in self.device_ids)
        return named or (self.count is not None and self.count.value in ("all", "-1"))


@dataclass(frozen=True)
class ContainerSpec:
    """One container that is asked for.

    ``how`` is ``run``, ``create``, ``compose`` or ``ansible``; ``engine`` is ``docker``, ``podman``
    or ``nerdctl``. ``flags`` has Docker's long flag names without dashes as keys and what was given
    in order: ``{"memory": (Given("8g"),), "device": (…, …), "privileged": (Given("true"),)}``.
    Values are as Docker would get them; a switch is ``true`` or ``false``. What Docker's flags do
    not have but Compose does has Compose's key: ``profiles``, ``deploy.replicas``.
    ``unknown`` are flags or keys that the engine does not know. ``env`` is by name; a variable
    without a value (taken from the caller) has the value "". ``env``, ``labels`` and
    ``annotations`` are not repeated in ``flags``. ``image`` is None where a service is built or
    extended from elsewhere. ``shell`` names variables that a shell or Compose would have put in
    and that had no default.
    """

    at: Position
    how: str
    name: str = ""
    engine: str = "docker"
    image: Given | None = None
    command: tuple[Given, ...] = ()
    flags: Mapping[str, tuple[Given, ...]] = field(default_factory=dict)
    unknown: tuple[Given, ...] = ()
    gpus: tuple[GpuRequest, ...] = ()
    env: Mapping[str, Given] = field(default_factory=dict)
    labels: Mapping[str, Given] = field(default_factory=dict)
    annotations: Mapping[str, Given] = field(default_factory=dict)
    shell: frozenset[str] = frozenset()

    def last(self, flag: str) -> Given | None:
        """The value that counts for a flag that is given once: the last one."""
        given = self.flags.get(flag, ())
        return given[-1] if given else None

    def all(self, flag: str) -> tuple[Given, ...]:
        """Every value of a flag that may be repeated."""
        return self.flags.get(flag, ())

    def switched_on(self, flag: str) -> bool:
        """Is a switch such as ``privileged`` on?"""
        given = self.last(flag)
        return given is not None and given.value.lower() in ("true", "1", "t", "yes", "on")

    @property
    def cdi_devices(self) -> tuple[Given, ...]:
        """``--device`` values that are CDI names (``vendor.com/class=name``), not paths."""
        return tuple(
            g for g in self.all("device") if not g.value.startswith("/") and "=" in g.value
        )

    @property
    def asks_nvidia(self) -> bool:
        """Does it ask for NVIDIA GPUs in any way we know?"""
        visible = self.env.get("NVIDIA_VISIBLE_DEVICES")
        runtime = self.last("runtime")
        return (
            any(r.driver is None or r.driver.value in ("", "nvidia", "cdi") for r in self.gpus)
            or any(g.value.startswith("nvidia.com/") for g in self.cdi_devices)
            or any(g.value.startswith("/dev/nvidia") for g in self.all("device"))
            or (runtime is not None and runtime.value.startswith("nvidia"))
            or (visible is not None and visible.value not in ("", "void", "none"))
        )


@dataclass(frozen=True)
class ComposeFile:
    """The services of one Compose file (or of one and what it extends), for rules across them.

    ``keys`` are its top-level keys with their places; the services are also documents themselves.
    """

    at: Position
    services: tuple[ContainerSpec, ...]
    keys: Mapping[str, Position] = field(default_factory=dict)
