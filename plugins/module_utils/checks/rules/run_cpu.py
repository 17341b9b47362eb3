# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rules on a container's CPUs: shares of time, sets, real time. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..documents.container import ContainerSpec
from ..host import HostView, cpu_list
from ..model import Given, Hit, Needs, Severity
from ..registry import rule
from .run_values import capabilities, needs_host, number, shown, ulimit, unsettled, write

_MOBY = "moby daemon/daemon_unix.go verifyPlatformContainerResources"


@rule(
    "cpus-conflict",
    "cpus together with cpu-period or cpu-quota",
    Severity.ERROR,
    reads=ContainerSpec,
    reason="Both describe the same limit: cpus is quota divided by period. The engine refuses the "
    "container with 'Conflicting options'.",
    fix="Keep cpus and drop the others. To bind to the CPUs of a NUMA node use cpuset-cpus and "
    "cpuset-mems.",
    sources=(_MOBY, "seen on Docker 26.1.5 and 28.5.2"),
    row="139, 155",
    cases=("CP-009",),
)
def cpus_conflict(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """Cpus together with cpu-period or cpu-quota."""
    cpus = spec.last("cpus")
    limits = [spec.last("cpu-period"), spec.last("cpu-quota")]
    others = [given for given in limits if given and _positive(given)]
    if cpus and others and _positive(cpus):
        with_ = " and ".join(shown(given) for given in others)
        fix = f"Keep {write(spec, 'cpus', cpus.value)} and drop {with_}, or the other way round."
        yield Hit(others[0].at, f"{shown(cpus)} stands beside {with_}.", fix)


@rule(
    "cpus-above-host",
    "More CPUs than the host has",
    Severity.ERROR,
    reads=ContainerSpec,
    reason="The engine refuses a cpus value above the number of the host's CPUs.",
    fix="Give at most the number of CPUs the host has.",
    sources=(_MOBY,),
    cases=("CP-010",),
)
def cpus_above_host(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """A hard check of the engine against its host."""
    cpus, have = spec.last("cpus"), host.cpu_count
    wanted = number(cpus)
    if cpus is None or wanted is None or (have is not None and wanted <= have):
        return
    if have is None and wanted < 8:  # what nearly every machine with a GPU has
        return
    yield needs_host(
        cpus.at,
        have is not None,
        f"{shown(cpus)}, and the host has {have} CPUs.",
        f"{shown(cpus)}: the host must have at least {wanted:g} CPUs.",
        Severity.ERROR,
    )


@rule(
    "cpu-period-range",
    "cpu-period or cpu-quota out of range",
    Severity.ERROR,
    reads=ContainerSpec,
    reason="A period is from 1000 to 1000000 microseconds, a quota at least 1000; the engine "
    "refuses others.",
    fix="Use cpus, which sets both.",
    sources=(_MOBY,),
)
def cpu_period_range(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """The kernel's bounds."""
    period, quota = spec.last("cpu-period"), spec.last("cpu-quota")
    length, part = number(period), number(quota)
    if period and length and not 1000 <= length <= 1000000:
        yield Hit(period.at, f"{shown(period)} is not between 1000 and 1000000 microseconds.")
    if quota and part is not None and 0 < part < 1000:
        yield Hit(quota.at, f"{shown(quota)} is below 1000 microseconds.")


@rule(
    "cpuset-not-available",
    "The CPUs or memory nodes asked for are not there",
    Severity.ERROR,
    reads=ContainerSpec,
    reason="The set must be part of what the host has; the engine refuses the container with "
    "'Requested CPUs are not available' or 'Requested memory nodes are not available'.",
    fix="Take the numbers from the host: lscpu, or steadygpu facts.",
    sources=(_MOBY, "docker/compose#3306"),
    cases=("CP-003",),
)
def cpuset_not_available(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """Numbers of another machine."""
    cpus, mems = spec.last("cpuset-cpus"), spec.last("cpuset-mems")
    online = None if host.cpus is None else cpu_list(host.cpus)
    nodes = frozenset(host.nodes) if host.nodes else None
    for given, have, what in ((cpus, online, "CPU"), (mems, nodes, "memory node")):
        wanted = _set(given)
        if given is None or not wanted or (have is not None and wanted <= have):
            continue
        missing = ", ".join(str(n) for n in sorted(wanted - (have or frozenset())))
        yield needs_host(
            given.at,
            have is not None,
            f"{shown(given)}, and the host has no {what} {missing}.",
            f"{shown(given)}: the host must have a {what} {max(wanted)}.",
            Severity.ERROR,
        )


@rule(
    "cpuset-malformed",
    "A set that the kernel cannot read",
    Severity.ERROR,
    reads=ContainerSpec,
    reason="A set is a list of numbers and ranges, 0-3,8; the engine refuses anything else.",
    fix="Write it as 0-3,8.",
    sources=(_MOBY, "moby pkg/parsers ParseUintList"),
)
def cpuset_malformed(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """Not a list of numbers."""
    for flag in ("cpuset-cpus", "cpuset-mems"):
        given = spec.last(flag)
        if given and given.value.strip() and not unsettled(given.value) and _set(given) is None:
            yield Hit(given.at, f"{shown(given)} is not a list of numbers and ranges.")


@rule(
    "cpu-rt-on-cgroup-v2",
    "Real-time CPU time cannot be limited on cgroup v2",
    Severity.ERROR,
    reads=ContainerSpec,
    reason="The CPU controller of cgroup v2 has no real-time budget, so there is nothing that "
    "cpu-rt-runtime and cpu-rt-period could set.",
    fix="For a real-time thread give the container cap-add SYS_NICE, a ulimit rtprio and CPUs of "
    "its own with cpuset-cpus.",
    sources=("kernel admin-guide/cgroup-v2.rst", "moby/moby#31411"),
    needs=(Needs("cgroup", ">=2"),),
    unknown=Severity.WARNING,
    row="169",
)
def cpu_rt_on_cgroup_v2(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """On the container's side."""
    for flag in ("cpu-rt-runtime", "cpu-rt-period"):
        given = spec.last(flag)
        if given and number(given):
            yield Hit(given.at, f"{shown(given)} has nothing to act on.")


@rule(
    "cpu-rt-runtime-above-period",
    "cpu-rt-runtime is more than cpu-rt-period",
    Severity.ERROR,
    reads=ContainerSpec,
    reason="The runtime is the part of each period that real-time threads may use; the engine "
    "refuses a part that is larger than the whole.",
    fix="Give a runtime below the period, such as 950000 of 1000000 microseconds.",
    sources=("moby runconfig/hostconfig_unix.go validateResources",),
)
def cpu_rt_runtime_above_period(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """Both are given."""
    runtime, period = spec.last("cpu-rt-runtime"), spec.last("cpu-rt-period")
    part, whole = number(runtime), number(period)
    if runtime and period and part and whole and part > whole:
        yield Hit(runtime.at, f"{shown(runtime)} is more than {shown(period)}.")


@rule(
    "cpu-rt-parent-budget",
    "A real-time budget that the engine's own group does not have",
    Severity.WARNING,
    reads=ContainerSpec,
    reason="On cgroup v1 a group gets at most what its parent has, and docker's group starts "
    "with 0: the start fails when cpu.rt_runtime_us is written.",
    fix="Start dockerd with --cpu-rt-runtime too.",
    sources=("moby/moby#31411",),
    needs=(Needs("cgroup", "<2"),),
    unknown=Severity.INFO,
    cases=("CP-006",),
)
def cpu_rt_parent_budget(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """The parent's budget is 0 until dockerd is told otherwise."""
    given = spec.last("cpu-rt-runtime")
    if given and number(given):
        yield Hit(given.at, f"{shown(given)} needs a budget in docker's own group.")


@rule(
    "rtprio-without-cpuset",
    "Real-time priority without CPUs of its own",
    Severity.WARNING,
    reads=ContainerSpec,
    reason="A FIFO or RR thread that does not sleep takes its CPU from everything else on it; "
    "cpu.max does not bound it, and from kernel 6.12 on sched_rt_runtime_us does not either.",
    fix="Give the container CPUs of its own with cpuset-cpus and leave at least one CPU of each "
    "node to the rest of the host.",
    sources=("kernel commits 5f6bd380c7bd, d741f297bcea", "kernel sched-rt-group.rst"),
    row="169, 170",
)
def rtprio_without_cpuset(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """Worth a warning where real time is used for certain, else a note."""
    given = ulimit(spec, "rtprio")
    if given is None or spec.last("cpuset-cpus") or given.value.partition("=")[2] in ("", "0"):
        return
    used = any(word.value.rpartition("/")[2] == "chrt" for word in spec.command)
    sure = used or ("SYS_NICE" in capabilities(spec) and spec.asks_nvidia)
    severity = Severity.WARNING if sure else Severity.INFO
    yield Hit(given.at, f"{shown(given)} and no cpuset-cpus.", severity=severity)


@rule(
    "container-cgroup-parent",
    "cgroup-parent is not a slice",
    Severity.ERROR,
    reads=ContainerSpec,
    reason="With the systemd cgroup driver, the default on cgroup v2, the parent must be the name "
    "of a slice unit; the engine refuses paths, scopes and services.",
    fix="Define a slice unit and write its name, such as gpu-batch.slice.",
    sources=("moby daemon/daemon_unix.go verifyPlatformContainerSettings", "moby/moby#17126"),
    row="164, P23",
    cases=("CG-013",),
)
def cgroup_parent_not_slice(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """Fine under the cgroupfs driver only."""
    given = spec.last("cgroup-parent")
    if given is None or spec.engine != "docker" or host.cgroup_driver == "cgroupfs":
        return
    value = given.value.strip()
    if not value or unsettled(value) or (len(value) > 6 and value.endswith(".slice")):
        return
    known = host.cgroup_driver == "systemd"
    name = re.sub(r"[^a-zA-Z0-9_]+", "", value.rpartition("/")[2].partition(".")[0]) or "gpu"
    yield Hit(
        given.at,
        f"{shown(given)} is not the name of a slice.",
        f"Write {write(spec, 'cgroup-parent', name + '.slice')}.",
        severity=None if known else Severity.WARNING,
        assumed=() if known else ("the cgroup driver is systemd",),
    )


def _positive(given: Given | None) -> bool:
    value = number(given)
    return value is not None and value > 0


def _set(given: Given | None) -> frozenset[int] | None:
    """The numbers of a set; None when there is none or it cannot be read."""
    if given is None or not re.fullmatch(r"[\d,\s-]*\d[\d,\s-]*", given.value):
        return None
    try:
        return cpu_list(given.value)
    except ValueError:
        return None
