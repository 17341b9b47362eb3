# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a kernel does with real-time tasks, and what a wish means on it. Pure.

Sources: kernel scheduler/sched-rt-group.rst, commits 5f6bd380c7bd (real-time throttling goes),
d741f297bcea (fair server in debugfs), both in Linux 6.12; admin-guide/cgroup-v2.rst, "cpuset" and
"cpu" ("cpu controller can only be enabled when all RT processes are in the root cgroup").
"""

from __future__ import annotations

from ..slices.quantities import QuantityError, format_indices, parse_indices
from ..slices.unit_text import name_fault
from .model import (
    FAIR_SERVER,
    GROUPS,
    LEAST_MARGIN,
    THROTTLING,
    UNKNOWN,
    Class,
    Kernel,
    Machine,
    Margin,
    Partition,
    RealtimeError,
    Wish,
)

# The kernel's bounds of a fair server's period (kernel/sched/debug.c): 100 us to about 4.2 s.
_FAIR_PERIOD_US = (100, 4_194_304)
_RT_PERIOD_US = (1_000, 10_000_000)
_PARTITION_KINDS = ("isolated", "root")
# Threads of the kernel that nobody may run over (migration, watchdog) have 99.
_MOST_PRIORITY = 98
# Threaded interrupt handlers have 50 (kernel/irq/manage.c, sched_set_fifo).
_INTERRUPTS = 50
# Since which kernel throttling gave way to the fair server.
_FAIR_SINCE = (6, 12)


def classify(kernel: Kernel) -> Class:
    """By what the kernel shows; its version only where it shows nothing."""
    if kernel.groups and kernel.cgroup_version == 1:
        return Class(
            GROUPS,
            f"Linux {kernel.release} has real-time groups ({kernel.groups_told}): a group has no "
            "real time until somebody gives it a budget, which is not done here; wanted cgroup v2 "
            "alone, and a kernel without CONFIG_RT_GROUP_SCHED",
        )
    if kernel.groups:
        return Class(
            GROUPS,
            f"Linux {kernel.release} has real-time groups ({kernel.groups_told}): with cgroup v2 a "
            "task of SCHED_FIFO or SCHED_RR can only live in the root group, so no container and "
            "no service can have one. Boot with rt_group_sched=0 (Linux 6.16 and later), or take a "
            "kernel without CONFIG_RT_GROUP_SCHED",
        )
    if kernel.servers:
        return Class(
            FAIR_SERVER,
            f"Linux {kernel.release} has a fair server on each CPU, which gives normal tasks their "
            "share; kernel.sched_rt_runtime_us no longer holds SCHED_FIFO and SCHED_RR back, it "
            "only bounds what SCHED_DEADLINE may be promised",
        )
    if kernel.version is None:
        return Class(UNKNOWN, f"Linux {kernel.release or '?'}: the version cannot be understood")
    if kernel.version >= _FAIR_SINCE:
        return Class(
            FAIR_SERVER,
            f"Linux {kernel.release} is 6.12 or later: kernel.sched_rt_runtime_us no longer holds "
            "SCHED_FIFO and SCHED_RR back, fair servers do, which this host does not show: "
            f"{kernel.no_servers}",
        )
    return Class(
        THROTTLING,
        f"Linux {kernel.release} throttles SCHED_FIFO and SCHED_RR on each CPU: of each "
        "kernel.sched_rt_period_us they get kernel.sched_rt_runtime_us",
    )


def faults(wish: Wish, kernel: Kernel, machine: Machine) -> list[str]:
    """All that is wrong with a wish; [] when it may be tried."""
    found = []
    if wish.runtime_us is not None:
        found += _runtime_faults(wish.runtime_us, wish.period_us)
    if wish.fair_runtime_us is not None:
        found += _fair_faults(wish, kernel)
    if wish.rtprio is not None and not 1 <= wish.rtprio <= _MOST_PRIORITY:
        found.append(
            f"rtprio {wish.rtprio}: wanted 1 to {_MOST_PRIORITY}; 99 belongs to the kernel's own "
            "migration and watchdog threads"
        )
    if wish.partition is not None:
        found += _partition_faults(wish.partition, machine)
    return found


def _runtime_faults(runtime_us: int, period_us: int) -> list[str]:
    low, high = _RT_PERIOD_US
    if runtime_us == -1:
        return [
            "sched_rt_runtime_us -1 means no limit, not that real-time scheduling is off: one task "
            "that never sleeps then holds its CPU for ever. Wanted at most "
            f"{_share(period_us)} of {period_us}"
        ]
    if not low <= period_us <= high:
        return [f"sched_rt_period_us {period_us}: wanted {low} to {high}"]
    if runtime_us < 0 or runtime_us > _share(period_us):
        return [
            f"sched_rt_runtime_us {runtime_us} of {period_us} leaves normal tasks "
            f"{margin_percent(runtime_us, period_us):g} %: wanted at least {LEAST_MARGIN:g} %, so "
            f"0 to {_share(period_us)}"
        ]
    return []


def _fair_faults(wish: Wish, kernel: Kernel) -> list[str]:
    runtime_us, period_us = wish.fair_runtime_us or 0, wish.fair_period_us
    low, high = _FAIR_PERIOD_US
    if not low <= period_us <= high:
        return [f"fair server period {period_us} us: the kernel takes {low} to {high}"]
    share = 100 * runtime_us / period_us
    if share < LEAST_MARGIN:
        return [
            f"fair server {runtime_us} of {period_us} us leaves normal tasks {share:g} %: wanted "
            f"at least {LEAST_MARGIN:g} % (0 would switch the protection off)"
        ]
    # Both are bandwidths of SCHED_DEADLINE, and the kernel admits no more than the sysctl says.
    if wish.runtime_us is not None and wish.bound_deadline:
        bound = 100 * wish.runtime_us / wish.period_us
    elif kernel.runtime_us is not None and kernel.period_us and kernel.runtime_us >= 0:
        bound = 100 * kernel.runtime_us / kernel.period_us
    else:
        return []
    if share > bound:
        return [
            f"fair server {share:g} % is more than SCHED_DEADLINE may be promised ({bound:g} % by "
            "kernel.sched_rt_runtime_us), and it counts as such: the kernel would answer EBUSY. "
            "Wanted a smaller share, or a larger runtime_us with bound_deadline"
        ]
    return []


def _partition_faults(partition: Partition, machine: Machine) -> list[str]:
    if partition.kind not in _PARTITION_KINDS:
        return [f"partition kind {partition.kind!r}: wanted isolated or root"]
    fault = name_fault(partition.slice)
    if fault:
        return [fault]
    if "-" in partition.slice:
        return [
            f"{partition.slice}: a partition must lie directly below the root group, and each dash "
            "nests a slice deeper; wanted a name without one, such as realtime.slice"
        ]
    if not partition.cpus:
        return ["partition without CPUs: wanted a list such as 2-3"]
    missing = set(partition.cpus) - machine.cpus
    if machine.cpus and missing:
        return [
            f"CPUs {format_indices(missing)} are not online here: online are "
            f"{format_indices(machine.cpus)}"
        ]
    if machine.cpus and not machine.cpus - set(partition.cpus):
        return [
            f"CPUs {format_indices(partition.cpus)} are all that this host has: a partition must "
            "leave at least one to everybody else"
        ]
    return []


def parse_cpus(text: str) -> tuple[int, ...]:
    """``2-3,8`` as numbers. Raises RealtimeError."""
    try:
        return parse_indices(text)
    except QuantityError as error:
        raise RealtimeError(f"partition_cpus {text!r}: wanted {error}") from error


def advice(wish: Wish, machine: Machine) -> list[str]:
    """What is allowed and still likely to hurt."""
    found = []
    if wish.rtprio is not None and wish.rtprio >= _INTERRUPTS:
        found.append(
            f"rtprio {wish.rtprio}: threaded interrupt handlers run with {_INTERRUPTS}, so a "
            "container may keep a device of its CPUs waiting; below it is enough to run before "
            "normal tasks"
        )
    if wish.partition is not None:
        taken = set(wish.partition.cpus)
        for node, cpus in sorted(machine.nodes.items()):
            if cpus and not cpus - taken and len(machine.nodes) > 1:
                found.append(
                    f"NUMA node {node} has no CPU left for anybody but {wish.partition.slice}: "
                    "what works with the GPUs and memory of that node runs on another one then"
                )
    return found


def sysctl_acts(wish: Wish, kind: str) -> tuple[str, str] | None:
    """("inert" or "unsupported", why) where the sysctls are not to be written, or None."""
    if kind == THROTTLING:
        return None
    if kind == FAIR_SERVER:
        if wish.bound_deadline:
            return None
        return "inert", (
            "from Linux 6.12 on it holds no SCHED_FIFO or SCHED_RR task back, it only bounds what "
            "SCHED_DEADLINE may be promised; set bound_deadline to write it for that, and fair "
            "servers to protect normal tasks"
        )
    if kind == GROUPS:
        return "unsupported", (
            "this kernel has real-time groups (CONFIG_RT_GROUP_SCHED), which keep real-time tasks "
            "out of every container"
        )
    return "unsupported", "what this kernel does with it is not known"


def margins(wish: Wish, kernel: Kernel) -> list[Margin]:
    """The true margins: the articles' arithmetic, and what it holds against on this kernel."""
    kind = classify(kernel).kind
    found = []
    if wish.runtime_us is not None:
        percent = margin_percent(wish.runtime_us, wish.period_us)
        if kind == THROTTLING:
            against: tuple[str, ...] = ("SCHED_FIFO", "SCHED_RR", "SCHED_DEADLINE")
            said = f"normal tasks have {percent:g} % of each period on each CPU"
        elif kind == FAIR_SERVER and wish.bound_deadline:
            against = ("SCHED_DEADLINE",)
            said = (
                f"{percent:g} % stay when SCHED_DEADLINE is promised all it may be; a task of "
                "SCHED_FIFO or SCHED_RR takes them, but for what the fair server holds"
            )
        else:
            against, said = (), "no margin: on this kernel the value is not written"
        found.append(Margin("sched_rt_runtime_us", percent, against, said))
    if wish.fair_runtime_us is not None or kernel.servers:
        shares = [100 * one.runtime_ns / one.period_ns for one in kernel.servers if one.period_ns]
        percent = min(shares, default=0.0)
        if wish.fair_runtime_us is not None and kernel.servers:
            percent = 100 * wish.fair_runtime_us / wish.fair_period_us
        against = ("SCHED_FIFO", "SCHED_RR") if kernel.servers else ()
        said = (
            f"normal tasks have {percent:g} % of each CPU, whatever real-time tasks do there"
            if kernel.servers
            else "no fair server is seen on this host"
        )
        found.append(Margin("fair_server", percent, against, said))
    return found


def margin_percent(runtime_us: int, period_us: int) -> float:
    """What runtime leaves of period, in percent, as the articles compute their safety margin."""
    return round(100 * (1 - runtime_us / period_us), 4)


def container_options(wish: Wish) -> list[str]:
    """What a container of real-time work is started with, for ``docker run``.

    A daemon-wide default of rtprio would let every container have real time, so there is none. Nor
    is there CAP_SYS_NICE: with it, no limit of rtprio holds (getrlimit(2), RLIMIT_RTPRIO).
    """
    options = []
    if wish.partition is not None:
        options += [f"--cgroup-parent={wish.partition.slice}"]
        options += [f"--cpuset-cpus={format_indices(wish.partition.cpus)}"]
    if wish.rtprio is not None:
        options.append(f"--ulimit=rtprio={wish.rtprio}")
    return options


def _share(period_us: int) -> int:
    return int(period_us * (100 - LEAST_MARGIN) / 100)
