# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a container may ask of the scheduler: a claim, and what can be wrong with one. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

# Where a claim travels: an OCI annotation, or for Compose and old engines a variable.
ANNOTATION = "steadygpu.claim"
VARIABLE = "STEADYGPU_CLAIM"

ALL = -1  # ``count=all``: as many as the host has

# How near two devices are to each other, the nearest first: the words of ``nvidia-smi topo -m``.
LINKS = ("nvlink", "pix", "pxb", "phb", "node", "sys")


@dataclass(frozen=True)
class Profile:
    """A MIG profile: ``name`` as nvidia-smi spells it, ``1g.10gb``; ``memory_gb`` is in it."""

    name: str
    memory_gb: int


@dataclass(frozen=True)
class Claim:
    """What one container asks; None: it does not say.

    ``count`` is the number of devices, or :data:`ALL`. ``devices`` are named ones: an index,
    ``0:1`` (the second MIG device of GPU 0), ``GPU-…`` or ``MIG-…``. ``models`` are parts of names,
    any of which will do. ``mig`` is a profile, ``whole`` refuses MIG devices. ``memory_mib`` is
    wanted of each device. ``compute_percent`` is the share of a device's multiprocessors, 100 for
    ``on`` and 0 for ``off``. ``link`` is one of :data:`LINKS`, the farthest that any two devices
    may be apart. ``numa`` is a node's number or ``single``. ``policy`` is strict or shared,
    ``share`` is none, time, mps or any, ``rdma`` is off, on or one of the levels. ``priority`` is 0
    (gives way first) to 100. Times are in seconds.

    ``places`` has the column, from 1, at which each given key's value begins.
    """

    text: str = ""
    count: int | None = None
    devices: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    mig: Profile | None = None
    whole: bool = False
    memory_mib: int | None = None
    compute_percent: float | None = None
    link: str | None = None
    numa: str | None = None
    policy: str | None = None
    share: str | None = None
    rdma: str | None = None
    priority: int | None = None
    p99_s: float | None = None
    wait_s: float | None = None
    minruntime_s: float | None = None
    places: dict[str, int] = field(default_factory=dict, compare=False)

    @property
    def wanted(self) -> int:
        """How many devices: :data:`ALL`, the count, as many as are named, or one."""
        return self.count if self.count is not None else max(1, len(self.devices))

    @property
    def exclusive(self) -> bool:
        """Is it to be alone on its devices? So it is unless it allows a way of sharing."""
        return self.share in (None, "none")

    def as_dict(self) -> dict[str, Any]:
        """What was asked, as JSON types; only what the claim says."""
        found: dict[str, Any] = {}
        for one in fields(self):
            value = getattr(self, one.name)
            # A zero is an answer: 0 == False, so it is told apart by its identity.
            if one.name in ("text", "places") or value is None or value is False or value == ():
                continue
            if isinstance(value, Profile):
                value = value.name
            found[one.name] = list(value) if isinstance(value, tuple) else value
        return found


@dataclass(frozen=True)
class Fault:
    """What is wrong with the text of a claim: ``column`` counts from 1, ``advice`` may be ""."""

    column: int
    said: str
    advice: str = ""

    def __str__(self) -> str:
        return f"{self.said}; {self.advice}" if self.advice else self.said


class ClaimError(ValueError):
    """The text is no claim; ``faults`` has everything that is wrong with it, from the left."""

    def __init__(self, text: str, faults: tuple[Fault, ...]) -> None:
        super().__init__("; ".join(f"character {one.column}: {one}" for one in faults))
        self.text = text
        self.faults = faults


@dataclass(frozen=True)
class Conflict:
    """A claim that can be read and cannot be met: ``key`` is what to change about it."""

    key: str
    said: str
    advice: str = ""

    def __str__(self) -> str:
        return f"{self.said}; {self.advice}" if self.advice else self.said
