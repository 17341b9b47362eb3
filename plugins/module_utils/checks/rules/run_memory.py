# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rules on a container's memory: limits, swap, the OOM killer. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from ..documents.container import ContainerSpec
from ..host import HostView
from ..model import Hit, Needs, Severity
from ..registry import rule
from .run_values import for_swarm, number, shown, size, write

_MOBY = "moby daemon/daemon_unix.go verifyPlatformContainerResources"
_MINIMUM = 6 << 20  # linuxMinMemory of moby; 4 MiB before 20.10


@rule(
    "memory-swap-below-memory",
    "memory-swap is smaller than memory",
    Severity.ERROR,
    reads=ContainerSpec,
    reason="memory-swap is memory and swap together, so it cannot be less than memory alone; the "
    "engine refuses the container.",
    fix="Give memory-swap at least the value of memory: the same value means no swap, -1 no limit.",
    sources=(_MOBY,),
    row="P23",
    cases=("ME-001",),
)
def memory_swap_below_memory(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """The sum is less than one of its parts."""
    memory, swap = spec.last("memory"), spec.last("memory-swap")
    limit, both = size(memory), size(swap)
    if memory and swap and limit and both and 0 < both < limit:
        fix = f"Write {write(spec, 'memory-swap', memory.value)} for no swap, or -1 for no limit."
        yield Hit(swap.at, f"{shown(swap)} is less than {shown(memory)}.", fix)


@rule(
    "memory-swap-without-memory",
    "memory-swap without memory",
    Severity.ERROR,
    reads=ContainerSpec,
    reason="memory-swap is memory and swap together; without a memory limit the sum means "
    "nothing, and the engine refuses the container.",
    fix="Set memory too, or drop memory-swap.",
    sources=(_MOBY,),
    cases=("ME-002",),
)
def memory_swap_without_memory(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """A sum without its first part."""
    swap, memory = spec.last("memory-swap"), spec.last("memory")
    if swap and (size(swap) or 0) > 0 and (memory is None or size(memory) == 0):
        fix = f"Add {write(spec, 'memory', swap.value)} (no swap), or drop the option."
        yield Hit(swap.at, f"{shown(swap)} stands without a memory limit.", fix)


@rule(
    "memory-swap-zero",
    "memory-swap=0 does not switch swap off",
    Severity.WARNING,
    reads=ContainerSpec,
    reason="0 counts as not set: the container may then swap as much again as its memory limit.",
    fix="For no swap give memory-swap the value of memory.",
    sources=(_MOBY, "seen on Docker 26.1.5 and 28.5.2: memory.swap.max equals memory"),
    row="154",
)
def memory_swap_zero(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """Zero means unset."""
    swap, memory = spec.last("memory-swap"), spec.last("memory")
    if swap and memory and size(swap) == 0 and (size(memory) or 0) > 0:
        fix = f"Write {write(spec, 'memory-swap', memory.value)} for no swap."
        yield Hit(swap.at, f"{shown(swap)} beside {shown(memory)} allows {memory.value} swap.", fix)


@rule(
    "memory-below-minimum",
    "A memory limit below 6 MiB",
    Severity.ERROR,
    reads=ContainerSpec,
    reason="The engine refuses limits below 6 MiB. A number without a unit is bytes.",
    fix="Write the unit: 512m, 8g.",
    sources=(_MOBY, "docker/go-units RAMInBytes"),
)
def memory_below_minimum(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """Mostly a forgotten unit."""
    for flag in ("memory", "memory-reservation"):
        given = spec.last(flag)
        value = size(given)
        if given and value is not None and 0 < value < _MINIMUM:
            yield Hit(given.at, f"{shown(given)} is {value} bytes.")


@rule(
    "memory-reservation-above-memory",
    "memory-reservation is larger than memory",
    Severity.ERROR,
    reads=ContainerSpec,
    reason="The reservation is the part of the limit that is protected; the engine refuses a "
    "limit below it.",
    fix="Give memory at least the value of memory-reservation.",
    sources=(_MOBY,),
)
def memory_reservation_above_memory(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """A soft limit above the hard one. Swarm only chooses a node by it."""
    memory, soft = spec.last("memory"), spec.last("memory-reservation")
    limit, reserved = size(memory), size(soft)
    if memory and soft and limit and reserved and 0 < limit < reserved:
        swarm = for_swarm(spec) and soft.spelled.startswith("deploy.")
        also = "; docker stack deploy takes it, docker compose up does not" if swarm else ""
        seen = f"{shown(soft)} is more than {shown(memory)}{also}."
        yield Hit(soft.at, seen, severity=Severity.WARNING if swarm else None)


@rule(
    "oom-kill-disable-ignored",
    "oom-kill-disable has no effect on cgroup v2",
    Severity.WARNING,
    reads=ContainerSpec,
    reason="cgroup v2 has no switch for the OOM killer: Docker warns and drops the option, crun "
    "refuses the container.",
    fix="Drop the option. Give the job the memory it needs, or lower its place among the OOM "
    "killer's victims with oom-score-adj.",
    sources=("moby/moby#42865", "seen on Docker 26.1.5 and 28.5.2: warning, discarded"),
    needs=(Needs("cgroup", ">=2"),),
    row="159",
    cases=("ME-004",),
)
def oom_kill_disable_ignored(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """oom-kill-disable has no effect on cgroup v2."""
    given = spec.last("oom-kill-disable")
    if given and spec.switched_on("oom-kill-disable"):
        yield Hit(given.at, f"{shown(given)} is dropped, or refused, where cgroup v2 is in use.")


@rule(
    "oom-kill-disable-without-memory",
    "oom-kill-disable without a memory limit",
    Severity.WARNING,
    reads=ContainerSpec,
    reason="On cgroup v1 a container that nothing limits and nothing may kill takes the whole "
    "host down when memory runs out.",
    fix="Set memory beside it, or drop it.",
    sources=(_MOBY, "moby/moby#14440"),
    needs=(Needs("cgroup", "<2"),),
    cases=("ME-005",),
)
def oom_kill_disable_without_memory(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """The host runs out of memory instead."""
    given, memory = spec.last("oom-kill-disable"), spec.last("memory")
    unlimited = memory is None or size(memory) == 0
    if given and unlimited and spec.switched_on("oom-kill-disable"):
        yield Hit(given.at, f"{shown(given)} stands without a memory limit.")


@rule(
    "memory-swappiness-ignored",
    "memory-swappiness has no effect on cgroup v2",
    Severity.WARNING,
    reads=ContainerSpec,
    reason="cgroup v2 has no swappiness for each group: Docker warns and drops the option.",
    fix="Drop it. For no swap give memory-swap the value of memory.",
    sources=(_MOBY, "seen on Docker 26.1.5 and 28.5.2: warning, discarded"),
    needs=(Needs("cgroup", ">=2"),),
    unknown=Severity.INFO,
)
def memory_swappiness_ignored(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """A v1 control."""
    given = spec.last("memory-swappiness")
    value = number(given)
    if given and value is not None and value != -1:
        yield Hit(given.at, f"{shown(given)} is dropped where cgroup v2 is in use.")


@rule(
    "kernel-memory-ignored",
    "kernel-memory has no effect",
    Severity.WARNING,
    reads=ContainerSpec,
    reason="Kernels from 5.4 on do not limit kernel memory separately, runc ignores the value, "
    "and newer engines accept the flag without a word.",
    fix="Drop it: the memory limit counts kernel memory too.",
    sources=("docs.docker.com deprecated features", "seen on Docker 26.1.5 and 28.5.2"),
)
def kernel_memory_ignored(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """Accepted, and nothing happens."""
    given = spec.last("kernel-memory")
    if given and (size(given) or 0) > 0:
        yield Hit(given.at, f"{shown(given)} limits nothing.")


@rule(
    "oom-score-adj-range",
    "oom-score-adj out of range",
    Severity.ERROR,
    reads=ContainerSpec,
    reason="The value is from -1000 to 1000; the engine refuses others.",
    fix="Choose a value from -1000 (killed last) to 1000 (killed first).",
    sources=("moby daemon/daemon_unix.go verifyPlatformContainerSettings",),
    row="140",
)
def oom_score_adj_range(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """The kernel's range."""
    given = spec.last("oom-score-adj")
    value = number(given)
    if given and value is not None and not -1000 <= value <= 1000:
        yield Hit(given.at, f"{shown(given)} is not between -1000 and 1000.")


@rule(
    "oom-score-adj-negative",
    "The container is killed after the system's own daemons",
    Severity.INFO,
    reads=ContainerSpec,
    reason="oom-score-adj orders the victims of the OOM killer, it does not preempt anything: "
    "with a low value a leak in this container kills other processes of the host first.",
    fix="Set a memory limit, so that a leak stays in the container.",
    sources=("moby daemon/daemon_unix.go", "proc(5) oom_score_adj"),
    row="140",
)
def oom_score_adj_negative(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """Not a priority for memory."""
    given = spec.last("oom-score-adj")
    value = number(given)
    if given and value is not None and -1000 <= value < 0 and not spec.last("memory"):
        yield Hit(given.at, f"{shown(given)} and no memory limit.")


@rule(
    "memory-is-not-gpu-memory",
    "The memory limit is for the host's RAM, not for the GPU's",
    Severity.INFO,
    reads=ContainerSpec,
    reason="memory limits the cgroup's host memory; what a process takes on the GPU is not "
    "counted there.",
    fix="GPU memory is limited by a MIG device, by MPS (CUDA_MPS_PINNED_DEVICE_MEM_LIMIT), or "
    "with driver 615 and newer by nvidia-smi memory-limits.",
    sources=("kernel admin-guide/cgroup-v2.rst", "docs.nvidia.com MPS memory partitioning"),
    row="150",
)
def memory_is_not_gpu_memory(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """The memory limit is for the host's RAM, not for the GPU's."""
    given = spec.last("memory")
    if given and (size(given) or 0) > 0 and spec.asks_nvidia:
        yield Hit(given.at, f"{shown(given)} does not limit the GPU's memory.")
