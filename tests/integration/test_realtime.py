# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A burst that is never in the way of a quota, and real-time work on CPUs of its own."""

from __future__ import annotations

import pytest

# Long, and not measured on a quiet machine yet.
pytestmark = pytest.mark.sweep

GROUP = "/sys/fs/cgroup/ai.slice/ai-workload.slice"
PARTITION = "/sys/fs/cgroup/realtime.slice/cpuset.cpus.partition"
SERVER = "/sys/kernel/debug/sched/fair_server/cpu1/runtime"
# The image needs no more than the host's own programs.
RUN = (
    "docker run --rm --network none -v /usr:/usr:ro -v /lib:/lib:ro -v /lib64:/lib64:ro "
    "--cgroup-parent=realtime.slice --cpuset-cpus=1 --user 1000 {} empty /usr/bin/chrt -f 20 "
    "/usr/bin/grep Cpus_allowed_list /proc/self/status"
)


def _wait(host, condition):
    """Until the service has done its work; in the lab it needs a while to start."""
    host.sh(f"for i in $(seq 240); do {condition} && exit 0; sleep 0.5; done; exit 1")


def test_a_lower_quota_reaches_the_kernel_although_the_burst_was_in_the_way(host):
    host.module("cpu_burst", {"slices": {"ai-workload.slice": "100%"}})
    assert host.sh(f"cat {GROUP}/cpu.max.burst") == "300000"
    host.sh("systemctl set-property ai-workload.slice CPUQuota=100%")
    _wait(host, f"grep -q '^100000 ' {GROUP}/cpu.max")
    _wait(host, f"grep -qx 100000 {GROUP}/cpu.max.burst")
    said = host.sh("journalctl -b -u steadygpu-burst.service -o cat --no-pager")
    assert "the kernel refuses a quota below the burst" in said


def test_row_170_real_time_containers_have_cpus_of_their_own_and_lose_them_again(host):
    wish = {"partition_cpus": "1", "fair_server_runtime_us": 100000, "container_rtprio": 20}
    done = host.module("rt_scheduling", wish)
    assert not done.get("failed"), done
    assert {one["verdict"] for one in done["settings"]} == {"effective"}
    assert host.sh("cat /sys/fs/cgroup/system.slice/cpuset.cpus.effective") == "0"
    host.sh("mkdir /tmp/empty && tar -C /tmp/empty -c . | docker import - empty")
    assert host.sh(RUN.format("--ulimit=rtprio=20")).split()[-1] == "1"
    assert "not permitted" in host.sh(RUN.format("") + " 2>&1 || true")
    host.reboot()
    _wait(host, f"grep -qx isolated {PARTITION}")
    assert host.sh(f"cat {SERVER}") == "100000000"
    again = host.module("rt_scheduling", wish)
    assert not again["changed"], again
    gone = host.module("rt_scheduling", {"state": "absent"})
    assert not gone.get("failed"), gone
    # The kernel's own value: that of the site was taken back with the rest.
    assert host.sh(f"cat {SERVER}") == "50000000"
    assert host.sh("cat /sys/fs/cgroup/system.slice/cpuset.cpus.effective") == "0-1"
    assert host.sh(f"test -e {PARTITION} || echo gone") == "gone"
