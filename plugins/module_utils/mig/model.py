# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The values MIG planning works with: plain, frozen, no I/O.

Words are NVIDIA's (MIG user guide): a *GPU instance* owns memory slices and compute slices, a
*compute instance* inside it is what a program sees as one *MIG device*.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


class MigError(Exception):
    """A layout cannot be had. The message says what was seen, what is wanted, what to do."""


class ConfigError(MigError):
    """What the user wrote cannot be read. The message names the place in it."""


@dataclass(frozen=True, order=True)
class Placement:
    """Where an instance lies: first slice and number of slices, counted in memory slices.

    As ``nvidia-smi mig -lgipp`` prints them: ``{0,4}:4`` is (0, 4) and (4, 4).
    """

    start: int
    size: int

    @property
    def end(self) -> int:
        """The first slice behind it."""
        return self.start + self.size

    def overlaps(self, other: Placement) -> bool:
        """Do both want a slice?"""
        return self.start < other.end and other.start < self.end


@dataclass(frozen=True)
class Profile:
    """One kind of GPU instance that a GPU offers.

    ``name`` as mig-parted and nvidia-smi write it without ``MIG``: ``1g.5gb``, ``1g.5gb+me``.
    ``id`` is the number nvidia-smi shows (19 for 1g on most models). ``slices`` are compute
    slices, ``most`` the number of such instances an empty GPU takes. ``media`` counts the
    decoders and the optical flow engines of one instance where they are scarce (``+me``); (0, 0)
    sets no bound.
    """

    name: str
    id: int | None
    slices: int
    placements: tuple[Placement, ...]
    most: int
    media: tuple[int, int] = (0, 0)


@dataclass(frozen=True)
class Geometry:
    """Everything one GPU model offers. Instances fit together when their placements are
    disjoint and their compute slices sum to at most ``compute_slices`` (7; 4 on A30).
    """

    model: str
    memory_slices: int
    compute_slices: int
    profiles: tuple[Profile, ...]

    def profile(self, name: str) -> Profile | None:
        """The profile of that name."""
        return next((one for one in self.profiles if one.name == name), None)


@dataclass(frozen=True)
class ComputeInstance:
    """``slices`` compute slices of a GPU instance; ``uuid`` is the MIG device's ``MIG-…``."""

    slices: int
    id: int | None = None
    uuid: str | None = None


@dataclass(frozen=True)
class GpuInstance:
    """One GPU instance as it is (``id`` known) or is to be (``id`` None)."""

    profile: str
    placement: Placement
    compute: tuple[ComputeInstance, ...] = ()
    id: int | None = None


@dataclass(frozen=True)
class GpuLayout:
    """One GPU as NVML shows it now.

    ``device_id`` is PCI device and vendor as mig-parted filters write it, ``0x20B010DE``;
    ``subsystem_id`` the same of the board, which newer filters may ask for after a colon.
    ``supported`` is False for a GPU without MIG; ``pending`` is the mode after a reset.
    ``geometry`` is what the driver itself says, None while MIG is off (NVML answers then with
    Not Supported), so that the tables must do.
    """

    index: int
    uuid: str
    pci_address: str
    name: str
    device_id: str
    supported: bool
    current: bool
    pending: bool
    instances: tuple[GpuInstance, ...] = ()
    geometry: Geometry | None = None
    subsystem_id: str | None = None


@dataclass(frozen=True)
class Wanted:
    """The layout one GPU is to have.

    ``devices`` counts MIG devices by profile name; compute profiles such as ``1c.3g.20gb``
    are allowed. None with ``enabled`` means: the mode only, whatever instances there are.
    """

    enabled: bool
    devices: Mapping[str, int] | None = None


@dataclass(frozen=True)
class Step:
    """One action on one GPU. ``verb`` is one of ``disable``, ``enable``, ``destroy_compute``,
    ``destroy_gpu``, ``create_gpu`` and ``create_compute``; ``instance`` is what it acts on.

    For the compute verbs ``compute`` is the one compute instance acted on. ``text`` is the
    line a person reads in check mode, in the diff and in the report.
    """

    verb: str
    gpu_uuid: str
    text: str
    instance: GpuInstance | None = None
    compute: ComputeInstance | None = None


@dataclass(frozen=True)
class Plan:
    """Ordered steps for one GPU; () when it is as wanted.

    ``kept`` are the GPU instances that stay, with those of their compute instances that stay.
    ``before`` and ``after`` are canonical texts of the layout for a diff. ``provisional``: MIG is
    off now, so that the placements are those of our tables, or unknown and left out. Read the GPU
    again once MIG is on and plan again; the driver's own answer decides.
    """

    gpu: GpuLayout
    wanted: Wanted
    steps: tuple[Step, ...] = ()
    kept: tuple[GpuInstance, ...] = ()
    before: str = ""
    after: str = ""
    notes: tuple[str, ...] = field(default_factory=tuple)
    provisional: bool = False

    @property
    def changes_mode(self) -> bool:
        """Does it switch MIG on or off, which needs the whole GPU idle?"""
        return any(step.verb in ("enable", "disable") for step in self.steps)
