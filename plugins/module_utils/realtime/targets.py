# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A wish as settings that are written and read back, in an order that the kernel takes. Pure.

Runtime and period are two files, and the kernel refuses every moment at which the runtime is above
the period.
"""

from __future__ import annotations

from ..settings.files import header
from ..settings.model import FILE, NUMBER, SYSCTL, UNSUPPORTED, Target
from . import judge
from .model import DEFAULT_PERIOD_US, FAIR_SERVER, GROUPS, THROTTLING, Kernel, Partition, Wish
from .reader import PERIOD, RUNTIME, SERVERS

SYSCTL_FILE = "/etc/sysctl.d/60-steadygpu-realtime.conf"
_SYSCTL_NOTE = "the kernel holds another value: was it set by another file of sysctl.d, or by hand?"
_SERVER_NOTE = "steadygpu-realtime.service sets it at boot; somebody has changed it since"


def all_targets(wish: Wish, kernel: Kernel) -> list[Target]:
    """Sysctls and fair servers; the partition is apart, since it needs its slice first."""
    sysctls = sysctl_targets(wish, kernel)
    servers = server_targets(wish, kernel)
    # The sysctl is what the servers are admitted by: first the larger room, last the smaller one.
    if _narrows(wish, kernel):
        return [*servers, *sysctls]
    return [*sysctls, *servers]


def sysctl_targets(wish: Wish, kernel: Kernel) -> list[Target]:
    """The two sysctls, or why they are not written."""
    if wish.runtime_us is None:
        return []
    given = [
        (RUNTIME, wish.runtime_us, kernel.runtime_us),
        (PERIOD, wish.period_us, kernel.period_us),
    ]
    why = judge.sysctl_acts(wish, judge.classify(kernel).kind)
    if why is not None:
        verdict, reason = why
        return [
            Target(name, verdict, "" if now is None else str(now), str(wanted), reason)
            for name, wanted, now in given
        ]
    pair = [Target(name, SYSCTL, name, str(wanted), _SYSCTL_NOTE) for name, wanted, _now in given]
    return pair if runtime_first(wish.runtime_us, kernel.period_us) else pair[::-1]


def sysctl_text(wish: Wish, kernel: Kernel) -> str | None:
    """What the sysctls are at boot; None where they are not written."""
    if wish.runtime_us is None or judge.sysctl_acts(wish, judge.classify(kernel).kind):
        return None
    lines = [f"{RUNTIME} = {wish.runtime_us}\n", f"{PERIOD} = {wish.period_us}\n"]
    # At boot the period is the kernel's own.
    if not runtime_first(wish.runtime_us, DEFAULT_PERIOD_US):
        lines.reverse()
    return header("realtime") + "".join(lines)


def server_targets(wish: Wish, kernel: Kernel) -> list[Target]:
    """Runtime and period of each CPU's fair server, under one name, or why there are none."""
    if wish.fair_runtime_us is None:
        return []
    wanted = {"runtime": wish.fair_runtime_us * 1000, "period": wish.fair_period_us * 1000}
    if not kernel.servers:
        why = _no_servers(kernel)
        return [
            Target(f"fair_server {key} (ns)", UNSUPPORTED, "", str(value), why)
            for key, value in wanted.items()
        ]
    found = []
    for server in kernel.servers:
        pair = [
            Target(
                f"fair_server {key} (ns, each CPU)",
                NUMBER,
                f"{SERVERS}/cpu{server.cpu}/{key}",
                str(value),
                _SERVER_NOTE,
            )
            for key, value in wanted.items()
        ]
        first = runtime_first(wanted["runtime"], server.period_ns)
        found += pair if first else pair[::-1]
    return found


def partition_target(partition: Partition, kernel: Kernel, fault: str | None) -> Target:
    """The slice as a partition; ``fault`` says why this host's cgroups cannot have one."""
    name = f"{partition.slice} cpuset.cpus.partition"
    if judge.classify(kernel).kind == GROUPS:
        why = judge.classify(kernel).sentence
        return Target(name, UNSUPPORTED, "", partition.kind, why)
    if fault:
        return Target(name, UNSUPPORTED, "", partition.kind, fault)
    return Target(
        name,
        FILE,
        partition_path(partition.slice),
        partition.kind,
        "the kernel keeps these CPUs for the slice only while nobody else claims one of them",
        "member",
    )


def partition_path(name: str) -> str:
    """Where the kernel says whether a slice is a partition."""
    return f"/sys/fs/cgroup/{name}/cpuset.cpus.partition"


def runtime_first(runtime: int, period_now: int | None) -> bool:
    """May the runtime be written before the period? Else the period goes first."""
    return period_now is None or runtime <= period_now


def takes_from_real_time(wish: Wish, kernel: Kernel) -> bool:
    """Would real-time tasks have less than now?"""
    if wish.runtime_us is not None and judge.classify(kernel).kind == THROTTLING:
        now, period = kernel.runtime_us, kernel.period_us
        # -1 is no limit.
        if now is None or not period or now < 0:
            return True
        if wish.runtime_us / wish.period_us < now / period:
            return True
    if wish.fair_runtime_us is None:
        return False
    share = wish.fair_runtime_us / wish.fair_period_us
    return any(one.runtime_ns < share * one.period_ns for one in kernel.servers)


def _narrows(wish: Wish, kernel: Kernel) -> bool:
    if wish.runtime_us is None or not kernel.period_us or kernel.runtime_us is None:
        return False
    if kernel.runtime_us < 0:
        return True
    return wish.runtime_us / wish.period_us < kernel.runtime_us / kernel.period_us


def _no_servers(kernel: Kernel) -> str:
    kind = judge.classify(kernel).kind
    if kind == THROTTLING:
        return (
            "this kernel has no fair server (there from Linux 6.12 on): here "
            "kernel.sched_rt_runtime_us holds real-time tasks back"
        )
    if kind == FAIR_SERVER:
        return f"no fair server can be set on this host: {kernel.no_servers}"
    return kernel.no_servers or judge.classify(kernel).sentence
