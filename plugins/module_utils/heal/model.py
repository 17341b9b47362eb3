# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is seen of a host, and what would heal it: plain, frozen values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

# The kinds of steps, which `--only` names.
GPU_ACCESS = "gpu-access"
CDI_SPEC = "cdi-spec"
UVM = "uvm"
CDI_REFRESH = "cdi-refresh"
CDI_ORDER = "cdi-order"
KINDS = (UVM, CDI_SPEC, CDI_REFRESH, CDI_ORDER, GPU_ACCESS)


@dataclass(frozen=True, order=True)
class DeviceNode:
    """A device node: ``kind`` is ``c`` or ``b``, ``path`` as the host has it."""

    path: str
    kind: str
    major: int
    minor: int

    def __str__(self) -> str:
        return self.path


@dataclass(frozen=True)
class GpuContainer:
    """A running container that was given GPUs.

    ``given`` are the NVIDIA nodes that it was given: those the engine ordered by name, or those of
    the GPUs it asked the hook for, as far as they are in its ``/dev``. ``lost`` are those of them
    that it may not open now, and ``barred`` those of them that a slice above its scope refuses.
    ``others`` are all other devices that it may open now: in its ``/dev``, or by its own rules.
    ``decided`` is a drop-in of the scope that has set its devices since, without a lost one.
    ``scope`` is its systemd unit, None with Docker's cgroupfs driver; ``allowed`` are the lines
    ``DevicePolicy=…`` and ``DeviceAllow=…`` that systemd keeps for it. ``unclear`` says why
    nothing can be said of it; then the lists are empty.
    """

    id: str
    name: str
    namespace: str
    pid: int
    group: str
    scope: str | None
    by_hook: bool
    given: tuple[DeviceNode, ...] = ()
    lost: tuple[DeviceNode, ...] = ()
    others: tuple[DeviceNode, ...] = ()
    allowed: tuple[str, ...] = ()
    barred: tuple[str, ...] = ()
    decided: str = ""
    unclear: str = ""

    @property
    def is_dockers(self) -> bool:
        """Was it started by Docker? containerd keeps its containers apart by this name."""
        return self.namespace == "moby"


@dataclass(frozen=True)
class UnitState:
    """A systemd unit: LoadState, UnitFileState, and the units it is ordered after."""

    load_state: str = "not-found"
    file_state: str = ""
    active_state: str = ""
    after: frozenset[str] = frozenset()

    @property
    def there(self) -> bool:
        """Is there such a unit that may be used? A masked one is somebody's decision."""
        return self.load_state == "loaded" and self.file_state not in ("masked", "masked-runtime")


@dataclass(frozen=True)
class Sight:
    """What is known of the host when a plan is made.

    ``facts`` is ``gpu_host``. ``spec_texts`` are the CDI files by path, ``drop_ins`` the unit
    drop-ins that order Docker and the CDI refresh, by path. ``majors`` are the character devices of
    /proc/devices. ``programs`` has the path of each program that a step needs, None: not there.
    """

    facts: Mapping[str, Any]
    containers: tuple[GpuContainer, ...] = ()
    units: Mapping[str, UnitState] = field(default_factory=dict)
    spec_texts: Mapping[str, str] = field(default_factory=dict)
    drop_ins: Mapping[str, str] = field(default_factory=dict)
    majors: Mapping[str, int] = field(default_factory=dict)
    programs: Mapping[str, str | None] = field(default_factory=dict)


@dataclass(frozen=True)
class Step:
    """One repair. ``seen`` is what is wrong and ``wanted`` what will be.

    ``commands`` are those that a person would type for the same; ``undo`` says how to take it back.
    ``subject`` is the container, file or unit that it is about.
    """

    kind: str
    subject: str
    seen: str
    wanted: str
    commands: tuple[str, ...]
    undo: str
    note: str = ""

    @property
    def id(self) -> str:
        """``gpu-access:trainer``: what `--only` takes, beside the kind alone."""
        return f"{self.kind}:{self.subject}" if self.subject else self.kind

    def as_dict(self) -> dict[str, Any]:
        """The step as JSON types."""
        return {
            "id": self.id,
            "seen": self.seen,
            "wanted": self.wanted,
            "commands": list(self.commands),
            "undo": self.undo,
            "note": self.note,
        }


@dataclass(frozen=True)
class ByHand:
    """Something wrong that is not repaired here: why not, and what a person can do."""

    id: str
    seen: str
    why: str
    commands: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """The entry as JSON types."""
        return {"id": self.id, "seen": self.seen, "why": self.why, "commands": list(self.commands)}


@dataclass(frozen=True)
class Plan:
    """What would heal the host, in order, and what is left for a person.

    ``recreate`` are containers to be made anew at a good time, because what repairs them now does
    not last. ``unclear`` is what could not be found out.
    """

    steps: tuple[Step, ...] = ()
    by_hand: tuple[ByHand, ...] = ()
    recreate: tuple[str, ...] = ()
    unclear: tuple[str, ...] = ()


@dataclass(frozen=True)
class Done:
    """How a step went: ``healed`` after a second look, which is ``after``; ``actions`` done."""

    step: Step
    healed: bool
    after: str
    actions: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """The result as JSON types."""
        return {
            **self.step.as_dict(),
            "healed": self.healed,
            "after": self.after,
            "actions": list(self.actions),
        }
