# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import gzip

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.realtime import (
    judge,
    reader,
    targets,
)
from ansible_collections.steadygpu.host.plugins.module_utils.realtime.model import (
    PRESETS,
    Kernel,
    Machine,
    Partition,
    RealtimeError,
    Server,
    Wish,
)

_OLD = Kernel("5.14.0-503.el9.x86_64", groups=False, runtime_us=950_000, period_us=1_000_000)
_NEW = Kernel(
    "6.12.94-amd64",
    groups=False,
    servers=(Server(0, 50_000_000, 1_000_000_000),),
    runtime_us=950_000,
    period_us=1_000_000,
)
_CPUS = Machine(frozenset(range(4)), {0: frozenset({0, 1}), 1: frozenset({2, 3})})


@pytest.mark.parametrize(
    ("kernel", "kind", "said"),
    [
        (_OLD, "throttling", "throttles SCHED_FIFO"),
        (_NEW, "fair_server", "fair server on each CPU"),
        # A distribution brought the fair server to an older kernel: behaviour counts.
        (Kernel("5.14.0-570.el9", servers=_NEW.servers), "fair_server", "fair server"),
        (Kernel("7.2.1-amd64", no_servers="debugfs is closed"), "fair_server", "debugfs is closed"),
        (Kernel("6.8.0-45-lowlatency", groups=True, groups_told="there"), "groups", "rt_group"),
        (Kernel("5.4.0", groups=True, cgroup_version=1), "groups", "wanted cgroup v2"),
        (Kernel("vendor"), "unknown", "cannot be understood"),
    ],
)
def test_row_169_a_kernel_is_classified_by_what_it_does(kernel, kind, said):
    seen = judge.classify(kernel)
    assert seen.kind == kind
    assert said in seen.sentence


@pytest.mark.parametrize(
    ("preset", "percent"), [("margin-60", 60), ("margin-30", 30), ("margin-5", 5)]
)
def test_row_171_the_margin_is_the_articles_arithmetic_and_says_against_whom(preset, percent):
    wish = Wish(runtime_us=PRESETS[preset])
    old, new = judge.margins(wish, _OLD), judge.margins(wish, _NEW)
    assert (old[0].percent, new[0].percent) == (percent, percent)
    assert "SCHED_FIFO" in old[0].holds_against
    assert new[0].holds_against == ()
    assert "no margin" in new[0].sentence
    bound = judge.margins(Wish(runtime_us=PRESETS[preset], bound_deadline=True), _NEW)
    assert bound[0].holds_against == ("SCHED_DEADLINE",)
    # The fair server's is the one that holds there.
    assert (new[1].percent, new[1].holds_against) == (5.0, ("SCHED_FIFO", "SCHED_RR"))


@pytest.mark.parametrize(
    ("wish", "said"),
    [
        (Wish(runtime_us=-1), "means no limit"),
        (Wish(runtime_us=950_001), "at least 5 %"),
        (Wish(runtime_us=1_000_000), "leaves normal tasks 0 %"),
        (Wish(runtime_us=-2), "at least 5 %"),
        (Wish(runtime_us=100, period_us=10), "wanted 1000 to"),
        (Wish(fair_runtime_us=0), "0 would switch the protection off"),
        (Wish(fair_runtime_us=49_999), "at least 5 %"),
        (Wish(fair_runtime_us=50, fair_period_us=10), "the kernel takes 100 to"),
        (Wish(fair_runtime_us=960_000), "would answer EBUSY"),
        (
            Wish(runtime_us=400_000, bound_deadline=True, fair_runtime_us=450_000),
            "would answer EBUSY",
        ),
        (Wish(rtprio=99), "migration and watchdog"),
        (Wish(rtprio=0), "wanted 1 to 98"),
        (Wish(partition=Partition((0, 1, 2, 3))), "all that this host has"),
        (Wish(partition=Partition((3, 4))), "CPUs 4 are not online"),
        (Wish(partition=Partition((2,), "ai-realtime.slice")), "each dash nests"),
        (Wish(partition=Partition((2,), "system.slice")), "belongs to systemd"),
        (Wish(partition=Partition((2,), kind="exclusive")), "wanted isolated or root"),
        (Wish(partition=Partition(())), "without CPUs"),
    ],
)
def test_what_would_starve_somebody_is_refused(wish, said):
    (fault,) = judge.faults(wish, _NEW, _CPUS)
    assert said in fault


def test_what_is_harmless_is_not_refused():
    wish = Wish(runtime_us=950_000, fair_runtime_us=100_000, rtprio=20, partition=Partition((2, 3)))
    assert judge.faults(wish, _NEW, _CPUS) == []
    assert judge.faults(Wish(), _NEW, _CPUS) == []


def test_a_node_without_cpus_and_a_priority_above_interrupts_are_warned_of():
    said = judge.advice(Wish(partition=Partition((2, 3)), rtprio=60), _CPUS)
    assert len(said) == 2
    assert "handlers run with 50" in said[0]
    assert "NUMA node 1 has no CPU left" in said[1]
    assert judge.advice(Wish(partition=Partition((3,)), rtprio=10), _CPUS) == []


@pytest.mark.parametrize(
    ("now", "wanted", "first"),
    [
        # (period now, runtime and period wanted): runtime <= period must hold at each step.
        (1_000_000, (95_000, 100_000), "kernel.sched_rt_runtime_us"),
        (100_000, (950_000, 1_000_000), "kernel.sched_rt_period_us"),
        (1_000_000, (700_000, 1_000_000), "kernel.sched_rt_runtime_us"),
    ],
)
def test_no_moment_has_the_runtime_above_the_period(now, wanted, first):
    kernel = Kernel("5.14.0", runtime_us=int(now * 0.95), period_us=now)
    made = targets.sysctl_targets(Wish(runtime_us=wanted[0], period_us=wanted[1]), kernel)
    assert made[0].path == first
    runtime, period = kernel.runtime_us, kernel.period_us
    for one in made:
        if one.path.endswith("runtime_us"):
            runtime = int(one.wanted)
        else:
            period = int(one.wanted)
        assert runtime <= period


def test_the_sysctl_file_is_in_an_order_that_holds_at_boot():
    short = targets.sysctl_text(Wish(runtime_us=95_000, period_us=100_000), _OLD)
    assert short.splitlines()[1:] == [
        "kernel.sched_rt_runtime_us = 95000",
        "kernel.sched_rt_period_us = 100000",
    ]
    long = targets.sysctl_text(Wish(runtime_us=1_900_000, period_us=2_000_000), _OLD)
    assert long.splitlines()[1] == "kernel.sched_rt_period_us = 2000000"
    assert targets.sysctl_text(Wish(runtime_us=700_000), _NEW) is None


def test_containers_get_a_limit_and_not_the_capability_that_would_lift_it():
    wish = Wish(rtprio=20, partition=Partition((2, 3)))
    assert judge.container_options(wish) == [
        "--cgroup-parent=realtime.slice",
        "--cpuset-cpus=2-3",
        "--ulimit=rtprio=20",
    ]


@pytest.mark.parametrize(
    ("config", "cmdline", "groups"),
    [
        ("CONFIG_RT_GROUP_SCHED=y", "", True),
        ("# CONFIG_RT_GROUP_SCHED is not set", "", False),
        ("CONFIG_RT_GROUP_SCHED=y", "ro rt_group_sched=0", False),
        ("CONFIG_RT_GROUP_SCHED=y\nCONFIG_RT_GROUP_SCHED_DEFAULT_DISABLED=y", "", False),
        (
            "CONFIG_RT_GROUP_SCHED=y\nCONFIG_RT_GROUP_SCHED_DEFAULT_DISABLED=y",
            "rt_group_sched=1",
            True,
        ),
    ],
)
def test_real_time_groups_are_known_from_the_configuration(host, config, cmdline, groups):
    host.kernel("6.16.0", config)
    host.write("proc/cmdline", cmdline)
    assert reader.kernel(host.root).groups is groups


def test_real_time_groups_are_known_from_a_packed_configuration_and_from_cgroup_v1(host):
    host.kernel("6.8.0", "# nothing of it")
    place = host.path / "proc/config.gz"
    with gzip.open(place, "wt") as handle:
        handle.write("CONFIG_SMP=y\nCONFIG_RT_GROUP_SCHED=y\n")
    assert reader.kernel(host.root).groups_told == "CONFIG_RT_GROUP_SCHED=y in /proc/config.gz"
    place.unlink()
    host.write("sys/fs/cgroup/cpu,cpuacct/cpu.rt_runtime_us", "950000")
    assert "cgroup v1" in reader.kernel(host.root).groups_told


def test_nothing_told_is_not_known(host):
    (host.path / "boot/config-6.12.94+deb13-cloud-amd64").unlink()
    assert reader.kernel(host.root).groups is None


def test_a_host_without_debugfs_says_how_to_get_it(host):
    host.kernel("6.14.0")
    for place in sorted((host.path / "sys/kernel/debug").rglob("*"), reverse=True):
        place.unlink() if place.is_file() else place.rmdir()
    assert "sys-kernel-debug.mount" in reader.kernel(host.root).no_servers


def test_lockdown_by_secure_boot_is_named(host, monkeypatch):
    host.write("sys/kernel/security/lockdown", "none [integrity] confidentiality")
    real = open

    def closed(path, *arguments, **options):
        if "fair_server" in str(path):
            raise PermissionError(1, "Operation not permitted", path)
        return real(path, *arguments, **options)

    monkeypatch.setattr("builtins.open", closed)
    kernel = reader.kernel(host.root)
    assert kernel.servers == ()
    assert "Operation not permitted" in kernel.no_servers
    assert "lockdown is integrity, as with Secure Boot" in kernel.no_servers


def test_cpus_that_are_no_list_are_refused():
    with pytest.raises(RealtimeError, match="numbers and ranges"):
        judge.parse_cpus("two")
