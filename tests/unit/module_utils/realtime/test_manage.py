# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.realtime import apply, manage
from ansible_collections.steadygpu.host.plugins.module_utils.realtime.model import (
    Partition,
    RealtimeError,
    Wish,
)
from ansible_collections.steadygpu.host.plugins.module_utils.settings import apply as keeper
from ansible_collections.steadygpu.host.plugins.module_utils.settings import record as records
from ansible_collections.steadygpu.host.plugins.module_utils.settings.model import SettingsError

RUNTIME = "proc/sys/kernel/sched_rt_runtime_us"
PERIOD = "proc/sys/kernel/sched_rt_period_us"
SYSCTL = "etc/sysctl.d/60-steadygpu-realtime.conf"
UNIT = "etc/systemd/system/steadygpu-realtime.service"
SERVER = "sys/kernel/debug/sched/fair_server/cpu3/runtime"
PARTITION = "sys/fs/cgroup/realtime.slice/cpuset.cpus.partition"
CONTAINER = "system.slice/docker-" + "ab" * 32 + ".scope"
KERNEL_THREAD = 0x00200000


def _verdicts(result):
    return {one.name: one.verdict for one in result.outcome.settings}


def test_row_169_a_preset_is_not_written_where_it_protects_nothing(host):
    done = manage.ensure_present(Wish(runtime_us=700_000), False, host.root)
    assert _verdicts(done) == {
        "kernel.sched_rt_runtime_us": "inert",
        "kernel.sched_rt_period_us": "inert",
    }
    assert done.outcome.settings[0].effective == "950000"
    assert host.has(RUNTIME) == "950000"
    assert not host.there(SYSCTL)


def test_a_preset_is_written_and_read_back_where_the_kernel_throttles(host):
    host.kernel("5.14.0-503.el9")
    (host.path / "sys/kernel/debug/sched").rename(host.path / "sys/kernel/debug/other")
    done = manage.ensure_present(Wish(runtime_us=700_000), False, host.root)
    assert set(_verdicts(done).values()) == {"effective"}
    assert host.has(RUNTIME) == "700000"
    assert "kernel.sched_rt_runtime_us = 700000" in host.has(SYSCTL)
    assert manage.ensure_present(Wish(runtime_us=700_000), False, host.root).outcome.actions == []
    assert not host.there(UNIT), "sysctl.d needs no unit of ours"
    manage.ensure_absent(False, host.root)
    assert host.has(RUNTIME) == "950000"
    assert not host.there(SYSCTL)
    assert records.owners(host.root) == []


def test_a_kernel_with_real_time_groups_is_unsupported_and_left_alone(host):
    host.kernel("6.8.0-45-lowlatency", "CONFIG_RT_GROUP_SCHED=y")
    wish = Wish(runtime_us=700_000, partition=Partition((3,)))
    done = manage.ensure_present(wish, False, host.root)
    assert set(_verdicts(done).values()) == {"unsupported"}
    assert "can only live in the root group" in done.kind.sentence
    assert host.has(RUNTIME) == "950000"
    assert host.slices == []
    assert not host.there(UNIT)


def test_cgroup_v1_has_no_partition_and_says_so(host):
    (host.path / "sys/fs/cgroup/cgroup.controllers").unlink()
    done = manage.ensure_present(Wish(partition=Partition((3,))), False, host.root)
    assert set(_verdicts(done).values()) == {"unsupported"}
    assert "does not use cgroup v2 alone" in done.outcome.settings[0].reason
    assert host.slices == []


def test_the_fair_server_of_each_cpu_is_set_and_told_once(host):
    done = manage.ensure_present(Wish(fair_runtime_us=100_000), False, host.root)
    assert _verdicts(done) == {
        "fair_server runtime (ns, each CPU)": "effective",
        "fair_server period (ns, each CPU)": "effective",
    }
    assert len(done.outcome.settings) == 2
    assert host.has(SERVER) == "100000000"
    assert "realtime apply" in host.has(UNIT)
    manage.ensure_absent(False, host.root)
    assert host.has(SERVER) == "50000000"
    assert not host.there(UNIT)


def test_the_fair_server_is_unsupported_before_6_12_with_what_is_there_instead(host):
    host.kernel("5.14.0-503.el9")
    (host.path / "sys/kernel/debug/sched").rename(host.path / "sys/kernel/debug/other")
    done = manage.ensure_present(Wish(fair_runtime_us=100_000), False, host.root)
    assert set(_verdicts(done).values()) == {"unsupported"}
    assert "kernel.sched_rt_runtime_us holds" in done.outcome.settings[0].reason


def test_what_a_boot_forgot_is_set_again(host):
    manage.ensure_present(
        Wish(fair_runtime_us=100_000, partition=Partition((3,))), False, host.root
    )
    host.servers()
    host.write(PARTITION, "member")
    done = apply.apply(host.root)
    assert (done.faults, host.has(SERVER), host.has(PARTITION)) == ([], "100000000", "isolated")
    assert {one.verdict for one in done.settings} == {"effective"}
    assert apply.apply(host.root).actions == []


def test_a_pair_that_only_goes_in_the_other_order_is_set_at_boot_all_the_same(host, monkeypatch):
    wish = Wish(fair_runtime_us=190_000, fair_period_us=200_000)
    host.write(RUNTIME, "990000")
    manage.ensure_present(wish, False, host.root)
    host.servers(runtime=5_000_000)
    for cpu in range(4):
        host.write(f"sys/kernel/debug/sched/fair_server/cpu{cpu}/period", "10000000")
    real = apply.write_live

    def kernel(target, value, root):
        place = str(host.path / target.path.lstrip("/")).rsplit("/", 1)[0]
        other = "period" if target.path.endswith("runtime") else "runtime"
        with open(f"{place}/{other}") as handle:
            beside = int(handle.read())
        runtime, period = (int(value), beside) if other == "period" else (beside, int(value))
        if runtime > period:
            raise OSError(22, "Invalid argument")
        real(target, value, root)

    monkeypatch.setattr(apply, "write_live", kernel)
    assert apply.apply(host.root).faults == []
    assert host.has(SERVER) == "190000000"


def test_row_170_real_time_work_gets_cpus_of_its_own(host):
    wish = Wish(partition=Partition((3,)), rtprio=20)
    done = manage.ensure_present(wish, False, host.root)
    assert host.slices == [("realtime.slice", "3")]
    assert host.has(PARTITION) == "isolated"
    assert _verdicts(done) == {"realtime.slice cpuset.cpus.partition": "effective"}
    assert done.container_options[0] == "--cgroup-parent=realtime.slice"
    assert "After=local-fs.target sys-kernel-debug.mount realtime.slice\n" in host.has(UNIT)
    assert manage.ensure_present(wish, False, host.root).outcome.actions == []


def test_a_partition_in_check_mode_is_foreseen_before_its_slice_is_there(host):
    done = manage.ensure_present(Wish(partition=Partition((3,))), True, host.root)
    assert "set realtime.slice cpuset.cpus.partition to isolated" in done.outcome.actions
    assert set(_verdicts(done).values()) == {"pending"}
    assert host.slices == []


def test_a_partition_that_is_not_wanted_any_more_is_taken_apart(host):
    manage.ensure_present(
        Wish(partition=Partition((3,)), fair_runtime_us=100_000), False, host.root
    )
    manage.ensure_present(Wish(fair_runtime_us=100_000), False, host.root)
    assert host.slices == []
    assert host.has(SERVER) == "100000000"
    assert "realtime.slice" not in host.has(UNIT)


def test_a_partition_that_the_kernel_calls_invalid_is_an_error_and_undone(host, monkeypatch):
    real = keeper.write_live

    def kernel(target, value, root):
        word = f"{value} invalid (Cpu list in cpuset.cpus not exclusive)"
        real(target, word if value == "isolated" else value, root)

    monkeypatch.setattr(keeper, "write_live", kernel)
    with pytest.raises(SettingsError, match=r"isolated invalid \(Cpu list in cpuset"):
        manage.ensure_present(
            Wish(partition=Partition((3,)), fair_runtime_us=100_000), False, host.root
        )
    assert host.slices == []
    assert not host.there(UNIT)


def test_a_run_that_was_killed_after_its_slice_is_finished_by_the_next(host, monkeypatch):
    real = host.make

    def killed(wish, check_mode, verified=False):
        real(wish, check_mode, verified)
        host.write("etc/systemd/system/realtime.slice", "[Slice]")
        raise KeyboardInterrupt

    wish = Wish(partition=Partition((3,)))
    monkeypatch.setattr(manage.slices, "ensure_present", killed)
    with pytest.raises(KeyboardInterrupt):
        manage.ensure_present(wish, False, host.root)
    monkeypatch.setattr(manage.slices, "ensure_present", real)
    manage.ensure_present(wish, False, host.root)
    assert host.has(PARTITION) == "isolated"
    manage.ensure_absent(False, host.root)
    assert host.slices == []
    assert records.owners(host.root) == []


def test_another_slice_takes_the_place_of_the_first(host, monkeypatch):
    gone = []

    def unmake(wish, check_mode):
        gone.append(wish.name)
        return host.unmake(wish, check_mode)

    monkeypatch.setattr(manage.slices, "ensure_absent", unmake)
    manage.ensure_present(Wish(partition=Partition((3,))), False, host.root)
    manage.ensure_present(Wish(partition=Partition((2,), "fast.slice")), False, host.root)
    assert gone == ["realtime.slice"]
    record = records.load("realtime", host.root)
    assert record.extra == {"partition_slices": ["fast.slice"]}
    assert [one.target.path for one in record.formers] == [
        "/sys/fs/cgroup/fast.slice/cpuset.cpus.partition"
    ]


def test_cpus_that_another_group_claims_are_refused_whatever_is_said(host):
    host.group("system.slice")
    host.group(CONTAINER, "2-3")
    wish = Wish(partition=Partition((3,)), take_from_running=True)
    with pytest.raises(RealtimeError, match=r"given to /system.slice/docker-abab.* 2-3\)"):
        manage.ensure_present(wish, False, host.root)
    assert host.slices == []


def test_running_containers_and_pinned_processes_are_named_before_they_lose_cpus(host):
    host.group("system.slice")
    host.group(CONTAINER)
    host.task(77, "pinned", 0)
    host.thread(77, 77, "3")
    host.task(5, "migration/3", 1, 99, KERNEL_THREAD)
    host.thread(5, 5, "3")
    wish = Wish(partition=Partition((3,)))
    with pytest.raises(RealtimeError) as refused:
        manage.ensure_present(wish, False, host.root)
    assert "pinned (pid 77, CPUs 3)" in str(refused.value)
    assert "abababababab" in str(refused.value)
    assert "migration" not in str(refused.value)
    assert host.slices == []
    manage.ensure_present(Wish(partition=Partition((3,)), take_from_running=True), False, host.root)
    # What it has already takes nothing from anybody.
    assert manage.ensure_present(wish, False, host.root).outcome.actions == []


def test_running_real_time_tasks_are_named_before_they_get_less(host):
    host.task(88, "jackd (main)", 1, 70)
    host.task(6, "ksoftirqd/0", 0, 0, KERNEL_THREAD)
    host.task(7, "migration/0", 1, 99, KERNEL_THREAD)
    with pytest.raises(RealtimeError, match=r"jackd \(main\) \(pid 88, SCHED_FIFO 70\)\. Run"):
        manage.ensure_present(Wish(fair_runtime_us=100_000), False, host.root)
    assert host.has(SERVER) == "50000000"
    manage.ensure_present(Wish(fair_runtime_us=50_000), False, host.root)
    manage.ensure_present(Wish(fair_runtime_us=100_000, take_from_running=True), False, host.root)
    assert host.has(SERVER) == "100000000"


def test_ebusy_is_explained_and_everything_is_as_it_was(host, monkeypatch):
    real = keeper.write_live

    def kernel(target, value, root):
        if (
            target.path == "/sys/kernel/debug/sched/fair_server/cpu2/runtime"
            and value != "50000000"
        ):
            raise OSError(16, "Device or resource busy")
        real(target, value, root)

    monkeypatch.setattr(keeper, "write_live", kernel)
    with pytest.raises(SettingsError, match="promised more than would be left"):
        manage.ensure_present(Wish(fair_runtime_us=100_000), False, host.root)
    assert host.has("sys/kernel/debug/sched/fair_server/cpu0/runtime") == "50000000"
    assert records.owners(host.root) == []


def test_a_kernel_without_isolated_partitions_is_told_what_it_has(host, monkeypatch):
    real = keeper.write_live

    def kernel(target, value, root):
        if value == "isolated":
            raise OSError(22, "Invalid argument")
        real(target, value, root)

    monkeypatch.setattr(keeper, "write_live", kernel)
    with pytest.raises(
        SettingsError, match=r"Linux 6\.1 and later do\): wanted partition_kind root"
    ):
        manage.ensure_present(Wish(partition=Partition((3,))), False, host.root)
    assert (host.slices, records.owners(host.root)) == ([], [])
    manage.ensure_present(Wish(partition=Partition((3,), kind="root")), False, host.root)
    assert host.has(PARTITION) == "root"


def test_a_value_that_waits_to_be_put_back_outlives_its_partition(host, monkeypatch):
    real = keeper.write_live

    def kernel(target, value, root):
        if target.path.endswith("cpu2/runtime") and value == "50000000":
            raise OSError(16, "Device or resource busy")
        real(target, value, root)

    wish = Wish(partition=Partition((3,)), fair_runtime_us=100_000)
    manage.ensure_present(wish, False, host.root)
    monkeypatch.setattr(keeper, "write_live", kernel)
    done = manage.ensure_present(Wish(), False, host.root).outcome
    assert "could not be put back" in done.warnings[0]
    (waiting,) = records.load("realtime", host.root).returning
    assert waiting.value == "50000000"


def test_hundreds_of_cpus_are_told_once(host):
    host.write("sys/devices/system/cpu/online", "0-255")
    host.servers(256)
    done = manage.ensure_present(Wish(fair_runtime_us=100_000), False, host.root)
    assert sum("fair_server" in one for one in done.outcome.actions) == 1
    (live,) = [one for one in done.outcome.diff if one["before_header"] == "live values"]
    assert live["after"] == "fair_server runtime (ns, each CPU) = 100000000\n"


def test_minus_one_is_refused_before_anything_is_written(host):
    with pytest.raises(RealtimeError, match="means no limit"):
        manage.ensure_present(Wish(runtime_us=-1, bound_deadline=True), False, host.root)
    assert not host.there("var/lib/steadygpu")


def test_a_slice_of_that_name_that_is_somebody_elses_is_refused(host):
    host.write("etc/systemd/system/realtime.slice", "[Slice]")
    with pytest.raises(RealtimeError, match="is there already"):
        manage.ensure_present(Wish(partition=Partition((3,))), False, host.root)


@pytest.mark.parametrize("runs_before", [0, 1])
def test_a_slice_that_the_role_slices_has_too_is_refused_at_each_run(host, runs_before):
    wish = Wish(partition=Partition((3,)))
    for _run in range(runs_before):
        manage.ensure_present(wish, False, host.root)
    shared = records.Record("slices", files=("/etc/systemd/system/realtime.slice",))
    records.save(shared, host.root)
    with pytest.raises(RealtimeError, match="take it out of slices_units"):
        manage.ensure_present(wish, False, host.root)
    other = Wish(partition=Partition((2,), "fast.slice"))
    assert manage.ensure_present(other, True, host.root).outcome.actions


def test_nothing_asked_on_a_fresh_host_does_nothing(host):
    assert manage.ensure_present(Wish(), False, host.root).outcome.actions == []
    assert manage.ensure_absent(False, host.root).outcome.actions == []
    assert not host.there("var/lib/steadygpu")
