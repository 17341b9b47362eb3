# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A host as placement sees it, what is asked of it, and the answer. Pure values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..mig.model import GpuLayout, Plan

ALL = -1  # ``count``: every device that will do

# How a set is chosen among those with equally good links.
PACK, SPREAD, NUMA = "pack", "spread", "numa"
POLICIES = (PACK, SPREAD, NUMA)

# How much of the device somebody takes when he does not say.
WHOLE_PERCENT = 100.0


class PlacementError(ValueError):
    """What was given is no host or no request; the message names the thing and the value seen."""


@dataclass(frozen=True)
class Tenant:
    """Who was promised a device, or a part of it.

    ``share`` is the way he lets others in: ``time``, ``mps``, ``any``, or None: he is alone.
    """

    who: str
    memory_mib: int = 0
    compute_percent: float = WHOLE_PERCENT
    share: str | None = None


@dataclass(frozen=True)
class Device:
    """A whole GPU, or with ``profile`` a MIG device of one.

    ``name`` is what a person calls it: ``GPU0``, and ``0:1`` for a MIG device. ``total_mib`` is
    None where it is not known; ``reserved_mib`` is what the driver keeps, ``used_mib`` what is in
    use now, ``numa_node`` None where it is hidden. ``faults`` keep it out always. ``doubts`` (it
    works, and something is wrong with it) and ``weak`` (lost NVLinks; only for sets) keep it
    out where that can be avoided. ``foreign`` names who has it without a lease.
    ``answer_s`` is the response time last seen of who shares it. ``rdma`` is the level of the
    nearest RDMA adapter. ``compute_used`` is the share of the multiprocessors in use, in percent.
    """

    name: str
    uuid: str | None = None
    model: str | None = None
    total_mib: int | None = None
    reserved_mib: int = 0
    used_mib: int = 0
    numa_node: int | None = None
    profile: str | None = None
    faults: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    weak: str | None = None
    foreign: str | None = None
    tenants: tuple[Tenant, ...] = ()
    compute_used: float = 0.0
    answer_s: float | None = None
    rdma: str | None = None

    @property
    def usable_mib(self) -> int | None:
        """What containers can have of an empty device: the driver's part is never theirs."""
        return None if self.total_mib is None else max(0, self.total_mib - self.reserved_mib)

    @property
    def taken_mib(self) -> int:
        """Promised or in use, whichever is more: who was promised 8 GiB may use them later."""
        return max(self.used_mib, sum(one.memory_mib for one in self.tenants))


@dataclass(frozen=True)
class Gpu:
    """One GPU: the device, or with MIG on ``parts`` and no device to be given as a whole.

    ``index`` is the driver's number. ``layout`` is what MIG planning knows of it.
    """

    index: int
    device: Device
    mig: bool = False
    parts: tuple[Device, ...] = ()
    layout: GpuLayout | None = None


@dataclass(frozen=True)
class Host:
    """``levels[i][j]`` is the word between GPU i and j, None where nobody knows."""

    gpus: tuple[Gpu, ...]
    levels: tuple[tuple[str | None, ...], ...]


@dataclass(frozen=True)
class Weights:
    """What a fitting device is ranked by; they sum to 1.

    The defaults are an article's (0.65, 0.25, 0.10); nobody measured them. Its "SM affinity" is
    here the share of the multiprocessors that nobody else uses, as no interface binds a container
    to multiprocessors of its own outside MIG.
    """

    memory: float = 0.65
    compute: float = 0.25
    numa: float = 0.10

    def __post_init__(self) -> None:
        values = (self.memory, self.compute, self.numa)
        if any(not 0 <= value <= 1 for value in values) or abs(sum(values) - 1) > 1e-9:
            listed = ", ".join(f"{value:g}" for value in values)
            raise PlacementError(
                f"weights are {listed}; wanted are three numbers from 0 to 1 that sum to 1"
            )


@dataclass(frozen=True)
class Limits:
    """Beyond these a shared device takes nobody else; exclusive ones are not asked.

    ``memory_percent`` of the device in use, ``answer_s`` as response time of who is there where
    neither side says another, ``reserve_percent`` of the memory stays free beside an inference
    server (one with a response time to keep).
    """

    memory_percent: float = 85.0
    answer_s: float = 0.2
    reserve_percent: float = 15.0


@dataclass(frozen=True)
class Request:
    """What is asked; see docs/claims.md for the words. ``tier`` is the claim's ``link``.

    ``strict``: a tier that cannot be reached is a refusal, and not a wish. ``cpu_node`` is the
    NUMA node that the container's CPUs are on, where they are given.
    """

    count: int = 1
    devices: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    profile: str | None = None
    whole: bool = False
    memory_mib: int | None = None
    compute_percent: float | None = None
    share: str | None = None
    tier: str | None = None
    strict: bool = False
    numa: str | None = None
    rdma: str | None = None
    answer_s: float | None = None
    cpu_node: int | None = None
    policy: str = PACK
    weights: Weights = field(default_factory=Weights)
    limits: Limits = field(default_factory=Limits)
    # What is asked for on this host: GPUs, thousandths of each, share of the requests; () for the
    # usual (``fragmentation.USUAL``).
    mix: tuple[tuple[int, int, float], ...] = ()

    def __post_init__(self) -> None:
        if self.count != ALL and self.count < 1:
            raise PlacementError(f"count is {self.count}; wanted is 1 or more, or all")
        if self.policy not in POLICIES:
            raise PlacementError(
                f"policy is {self.policy!r}; wanted is one of {', '.join(POLICIES)}"
            )
        for key, value in (("memory", self.memory_mib), ("compute", self.compute_percent)):
            if value is not None and value < 0:
                raise PlacementError(f"{key} is {value}; wanted is 0 or more")

    @property
    def shared(self) -> bool:
        """May others be on the device at the same time?"""
        return self.share not in (None, "none")


@dataclass(frozen=True)
class Verdict:
    """How good a set is; what comes first counts first, and more is better in all.

    ``doubtful`` and ``weak`` count such devices (as minus), ``near`` says whether the wished tier
    is reached, ``nodes`` counts NUMA nodes (as minus, policy numa only), ``links`` is the sum of
    the pairs' weights, ``score`` the weighted score in twentieths, ``left`` what it leaves.
    """

    doubtful: int
    weak: int
    near: bool
    nodes: int
    links: float
    score: float
    left: tuple[float, ...]

    def order(self) -> tuple[object, ...]:
        """For comparing."""
        return (
            self.doubtful,
            self.weak,
            self.near,
            self.nodes,
            self.links,
            self.score,
            self.left,
        )


@dataclass(frozen=True)
class Reshape:
    """A MIG device that does not exist yet: the plan makes it on that GPU."""

    gpu: Gpu
    profile: str
    plan: Plan


@dataclass(frozen=True)
class Decision:
    """``chosen`` are devices, () with ``reason`` for a refusal.

    ``farthest`` is the worst word between two of them, ``notes`` what the asker should know
    (a wish that was not met). ``exact`` is False only where a host is too large and too
    irregular to prove the optimum.
    """

    chosen: tuple[Device, ...] = ()
    reason: str = ""
    links: float = 0.0
    farthest: str | None = None
    score: float | None = None
    notes: tuple[str, ...] = ()
    reshapes: tuple[Reshape, ...] = ()
    excluded: tuple[tuple[Device, str], ...] = ()
    exact: bool = True
