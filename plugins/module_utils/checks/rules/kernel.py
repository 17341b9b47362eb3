# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rules on the kernel's command line, sysctl files and irqbalance. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...versions import at_least
from ..documents.kernel import IrqbalanceFile, KernelCmdline, SysctlFile
from ..host import HostView, cpu_list
from ..model import Given, Hit, Needs, Severity
from ..registry import rule

_PARAMETERS = "kernel Documentation/admin-guide/kernel-parameters.txt"
_CGROUP = "kernel Documentation/admin-guide/cgroup-v2.rst"
_RT = "kernel Documentation/scheduler/sched-rt-group.rst"
_FAIR_SERVER = "Linux commits 5f6bd380c7bd and d741f297bcea"


@rule(
    "cmdline-nomsi",
    "pci=nomsi switches off message-signalled interrupts for every device",
    Severity.FATAL,
    reads=KernelCmdline,
    reason="NVMe disks, network cards and GPUs then share the old interrupt lines or do not work "
    "at all; the host may not boot. It has nothing to do with ACS or IOMMU groups.",
    fix="Remove it. For peer-to-peer on bare metal switch ACS off per bridge with setpci, or "
    "virtualisation in the BIOS.",
    sources=(_PARAMETERS, "NCCL docs, GPU troubleshooting"),
    row="12",
)
def cmdline_nomsi(line: KernelCmdline, host: HostView) -> Iterator[Hit]:
    """First half."""
    for word, given in line.words("pci"):
        if word == "nomsi":
            yield Hit(given.at, f"The command line has pci={given.value}.")


@rule(
    "cmdline-memory-cgroup-off",
    "cgroup_disable=memory takes every memory limit away",
    Severity.FATAL,
    reads=KernelCmdline,
    reason="Without the memory controller -m, MemoryMax and Kubernetes' limits do nothing, and "
    "the kubelet does not start. It gives no GPU memory control: what limits GPU memory is MIG, "
    "or the driver's memory limits (R615).",
    fix="Remove it.",
    sources=(_PARAMETERS, _CGROUP),
    row="14",
)
def cmdline_memory_cgroup_off(line: KernelCmdline, host: HostView) -> Iterator[Hit]:
    """Second half."""
    for word, given in line.words("cgroup_disable"):
        if word == "memory":
            yield Hit(given.at, f"The command line has cgroup_disable={given.value}.")


@rule(
    "cmdline-cgroup-v1",
    "The host is told to use cgroup v1",
    Severity.INFO,
    reads=KernelCmdline,
    reason="Docker deprecates cgroup v1 from 29.0 on and systemd 258 no longer has it; memory "
    "protection, io.max for buffered writes and the driver's GPU memory limits need v2.",
    fix="Remove the parameter and reboot, after a look at what still needs v1.",
    sources=("docs.docker.com, Engine 29 release notes", "systemd NEWS 258"),
    row="P6",
)
def cmdline_cgroup_v1(line: KernelCmdline, host: HostView) -> Iterator[Hit]:
    """systemd.unified_cgroup_hierarchy=0."""
    for given in line.all("systemd.unified_cgroup_hierarchy"):
        if given.value.lower() in ("0", "no", "false", "off"):
            new = at_least(host.version("systemd"), "258")
            seen = f"systemd.unified_cgroup_hierarchy is {given.value}."
            yield Hit(given.at, seen, severity=Severity.WARNING if new else None)


@rule(
    "cmdline-swapaccount",
    "swapaccount= no longer does anything",
    Severity.INFO,
    reads=KernelCmdline,
    reason="With cgroup v2 swap is always accounted; the kernel has removed the parameter.",
    fix="Remove it; memory.swap.max limits swap.",
    sources=("Linux commit b25806dcd3d5", _CGROUP),
    row="154",
)
def cmdline_swapaccount(line: KernelCmdline, host: HostView) -> Iterator[Hit]:
    """Row 154."""
    for given in line.all("swapaccount"):
        yield Hit(given.at, f"The command line has swapaccount={given.value}.")


@rule(
    "sched-rt-unlimited",
    "sched_rt_runtime_us = -1 takes the limit off real-time tasks",
    Severity.ERROR,
    reads=SysctlFile,
    reason="-1 means no limit, not that real-time scheduling is off: one task of SCHED_FIFO that "
    "never sleeps can then hold a CPU for ever, with sshd and the engine waiting behind it.",
    fix="Keep 950000, and give real-time work CPUs of its own (a cpuset) instead.",
    sources=(_RT,),
    row="169",
)
def sched_rt_unlimited(file: SysctlFile, host: HostView) -> Iterator[Hit]:
    """sched_rt_runtime_us = -1 takes the limit off real-time tasks."""
    given = file.last("kernel.sched_rt_runtime_us")
    if given is not None and given.value == "-1":
        yield Hit(given.at, "kernel.sched_rt_runtime_us is -1.")


@rule(
    "sched-rt-no-protection",
    "sched_rt_runtime_us protects nothing on this kernel",
    Severity.WARNING,
    reads=SysctlFile,
    reason="From 6.12 on, without CONFIG_RT_GROUP_SCHED, the kernel no longer throttles real-time "
    "tasks by this value: the fair server gives the others their share (50 ms in a second), and "
    "the sysctl only bounds what SCHED_DEADLINE may be promised.",
    fix="Look at /sys/kernel/debug/sched/fair_server/cpu0/runtime instead, and give real-time "
    "work CPUs of its own.",
    sources=(_FAIR_SERVER, _RT),
    needs=(Needs("kernel", ">=6.12"),),
    unknown=Severity.INFO,
    row="169,171",
)
def sched_rt_no_protection(file: SysctlFile, host: HostView) -> Iterator[Hit]:
    """A value that somebody chose."""
    given = file.last("kernel.sched_rt_runtime_us")
    if given is not None and given.value not in ("-1", "950000") and given.value.isdigit():
        yield Hit(given.at, f"kernel.sched_rt_runtime_us is {given.value}.")


@rule(
    "sched-rt-above-period",
    "The real-time share is longer than its period",
    Severity.ERROR,
    reads=SysctlFile,
    reason="The kernel refuses a runtime above the period, and the old value stays.",
    fix="Write a runtime below kernel.sched_rt_period_us (1000000 by default).",
    sources=(_RT, "seen on Linux 6.12"),
)
def sched_rt_above_period(file: SysctlFile, host: HostView) -> Iterator[Hit]:
    """Runtime > period."""
    runtime = file.last("kernel.sched_rt_runtime_us")
    period = file.last("kernel.sched_rt_period_us")
    whole = _number(period) or 1000000
    share = _number(runtime)
    if runtime is not None and share is not None and share > whole:
        yield Hit(runtime.at, f"kernel.sched_rt_runtime_us is {share}, the period is {whole}.")


def _number(given: Given | None) -> int | None:
    digits = given is not None and given.value.isdigit() and len(given.value) < 20
    return int(given.value) if given is not None and digits else None


@rule(
    "sysctl-numa-balancing",
    "Automatic NUMA balancing is on",
    Severity.WARNING,
    reads=SysctlFile,
    reason="The kernel moves pages after the CPUs that use them; with buffers that are pinned for "
    "a GPU that only costs time, and RCCL warns of it.",
    fix="On hosts that only run GPU jobs: kernel.numa_balancing = 0.",
    sources=("ROCm/rccl PR 696", "awslabs/amazon-eks-ami PR 2741"),
    cases=("TP-013",),
)
def sysctl_numa_balancing(file: SysctlFile, host: HostView) -> Iterator[Hit]:
    """Set explicitly. Where the host's GPUs and nodes are not known it is only told."""
    given = file.last("kernel.numa_balancing")
    if given is None or given.value not in ("1", "2"):
        return
    known = host.gpus is not None and bool(host.nodes)
    if known and (len(host.nodes) < 2 or not host.gpus):
        return
    yield Hit(
        given.at,
        f"kernel.numa_balancing is {given.value}.",
        severity=None if known else Severity.INFO,
        assumed=() if known else ("GPUs on several NUMA nodes",),
    )


_GONE = re.compile(
    r"kernel\.sched_(min_granularity_ns|wakeup_granularity_ns|latency_ns|migration_cost_ns"
    r"|nr_migrate|tunable_scaling)$"
)


@rule(
    "sched-tunables-gone",
    "A scheduler setting that this kernel no longer has",
    Severity.WARNING,
    reads=SysctlFile,
    reason="These left sysctl with 5.13 and most left the kernel with 6.6: setting them fails, "
    "and what follows in the same run may not be set either.",
    fix="Remove the line; what is left is in /sys/kernel/debug/sched.",
    sources=("Linux commits 8a99b6833c88 and 5e963f2bd465", "seen on Linux 6.12"),
    needs=(Needs("kernel", ">=5.13"),),
    unknown=Severity.INFO,
)
def sched_tunables_gone(file: SysctlFile, host: HostView) -> Iterator[Hit]:
    """Tuning guides that outlived their kernel."""
    for given in file.settings:
        if _GONE.match(given.spelled):
            yield Hit(given.at, f"{given.spelled} is set.")


@rule(
    "irqbalance-ban-list",
    "A ban list switches off irqbalance's care for isolated CPUs",
    Severity.WARNING,
    reads=IrqbalanceFile,
    reason="Without a list irqbalance keeps away from CPUs of isolcpus and nohz_full; a list of "
    "one's own is taken in place of that, so isolated CPUs that are not in it get interrupts.",
    fix="Leave the list unset, or add the isolated CPUs to it.",
    sources=("Irqbalance/irqbalance PRs 19, 90, 356 and 358",),
    cases=("CP-001",),
)
def irqbalance_ban_list(file: IrqbalanceFile, host: HostView) -> Iterator[Hit]:
    """The list against the kernel's command line, where that is known."""
    for name, read in (("IRQBALANCE_BANNED_CPUS", _mask), ("IRQBALANCE_BANNED_CPULIST", _list)):
        given = file.variables.get(name)
        if given is None or not given.value:
            continue
        banned = read(given.value)
        cmdline = host.cmdline or file.noted or None
        if cmdline is None:
            seen = f"{name} is {given.value}."
            assumed = ("isolcpus= or nohz_full= on the kernel's command line",)
            yield Hit(given.at, seen, severity=Severity.INFO, assumed=assumed)
            continue
        left = sorted(isolated(cmdline) - banned) if banned is not None else []
        if left:
            seen = f"{name} is {given.value}; the isolated CPUs {_shown(left)} are not in it."
            noted = () if host.cmdline else (f"{file.noted}, as a comment says",)
            yield Hit(given.at, seen, assumed=noted)


def isolated(cmdline: str) -> frozenset[int]:
    """The CPUs of isolcpus= and nohz_full= on a command line."""
    found: frozenset[int] = frozenset()
    for word in cmdline.split():
        name, _equals, value = word.partition("=")
        if name in ("isolcpus", "nohz_full"):
            # isolcpus takes words before the list: isolcpus=domain,managed_irq,8-15
            parts = [part for part in value.split(",") if part[:1].isdigit()]
            found |= _list(",".join(parts)) or frozenset()
    return found


def _list(text: str) -> frozenset[int] | None:
    try:
        return cpu_list(text)
    except ValueError:
        return None


def _mask(text: str) -> frozenset[int] | None:
    """A hexadecimal mask in words of 32 bits, with or without commas."""
    digits = text.lower().replace("0x", "").replace(",", "")
    if not re.match(r"[0-9a-f]{1,4096}$", digits):
        return None
    number = int(digits, 16)
    return frozenset(place for place in range(number.bit_length()) if number >> place & 1)


def _shown(cpus: list[int]) -> str:
    """CPU numbers as a list of ranges."""
    ranges: list[tuple[int, int]] = []
    for cpu in cpus:
        if ranges and ranges[-1][1] == cpu - 1:
            ranges[-1] = (ranges[-1][0], cpu)
        else:
            ranges.append((cpu, cpu))
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in ranges)
