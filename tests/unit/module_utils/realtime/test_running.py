# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from ansible_collections.steadygpu.host.plugins.module_utils.realtime import running

CONTAINER = "system.slice/docker-" + "ab" * 32 + ".scope"
OURS = "/realtime.slice"


def test_threads_that_are_pinned_count_though_the_first_one_is_free(host):
    """As OpenMP, MPI and DPDK do it."""
    host.task(77, "dpdk", 0)
    host.thread(77, 77, "0-3")
    host.thread(77, 78, "2")
    host.thread(77, 79, "3")
    host.thread(77, 80, "1")
    seen = running.on_cpus([2, 3], OURS, host.root)
    assert seen.pinned == ["dpdk (pid 77, 2 of its threads, CPUs 2-3)"]
    assert running.on_cpus([0], OURS, host.root).pinned == []


def test_a_process_whose_threads_are_all_pinned_is_told_once(host):
    host.task(77, "solver", 0)
    host.thread(77, 77, "3")
    host.thread(77, 78, "3")
    assert running.on_cpus([3], OURS, host.root).pinned == ["solver (pid 77, CPUs 3)"]


def test_a_container_with_other_cpus_loses_nothing(host):
    host.group("system.slice")
    host.group(CONTAINER, "0-1")
    assert running.on_cpus([2, 3], OURS, host.root) == running.OnCpus()


def test_a_container_below_a_slice_with_other_cpus_loses_nothing(host):
    host.group("gpu.slice", "0-1")
    host.write("sys/fs/cgroup/gpu.slice/cpuset.cpus.effective", "0-1")
    host.group(CONTAINER.replace("system", "gpu"))
    assert running.on_cpus([2, 3], OURS, host.root) == running.OnCpus()


def test_a_container_whose_own_cpus_cannot_be_had_has_those_of_its_parent(host):
    """CPUs that are offline, say: then the kernel gives it what the group above has."""
    host.group("system.slice")
    host.group(CONTAINER, "8-9")
    host.write(f"sys/fs/cgroup/{CONTAINER}/cpuset.cpus.effective", "0-3")
    assert running.on_cpus([3], OURS, host.root).containers == ["ab" * 6]
