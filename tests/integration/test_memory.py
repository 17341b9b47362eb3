# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Memory near GPUs and what GPU containers may do, on a real kernel and a real engine."""

from __future__ import annotations

import json

import pytest

# Long, and not measured on a quiet machine yet.
pytestmark = pytest.mark.sweep

BUSYBOX = "tar -C /usr -c bin/busybox | docker import - busybox"
PAGES = "/sys/devices/system/node/node1/hugepages/hugepages-2048kB/nr_hugepages"
LIMIT = "/sys/fs/cgroup/ai.slice/ai-workload.slice/hugetlb.2MB.max"
WISH = {
    "hugepages": [{"node": "1", "size": "2M", "count": 16}],
    "slice_limits": {"ai-workload.slice": {"2M": "16M"}},
    "numa_balancing": False,
    "banned_cpus": "1",
    "memory_bandwidth": {"half": 50},
}


def test_huge_pages_limits_and_balancing_hold_and_come_back(host):
    host.module("numa_memory", {"state": "absent"})
    balancing = host.sh("cat /proc/sys/kernel/numa_balancing")
    assert host.sh(f"cat {PAGES}") == "0"
    kept = host.module("numa_memory", WISH)
    verdicts = {one["name"]: one["verdict"] for one in kept["settings"]}
    assert verdicts == {
        "hugepages-2048kB node 1": "effective",
        "kernel.numa_balancing": "effective",
        "ai-workload.slice hugetlb.2MB.max": "effective",
        "irqbalance banned CPUs": "inert",
        "memory bandwidth half": "unsupported",
    }
    assert host.sh(f"cat {PAGES} {LIMIT} /proc/sys/kernel/numa_balancing").split() == [
        "16",
        str(16 << 20),
        "0",
    ]
    assert not host.module("numa_memory", WISH)["changed"]
    # More than the node has: refused, and nothing is touched.
    greedy = host.module("numa_memory", {**WISH, "hugepages": [{"node": "1", "count": 4000}]})
    assert greedy["failed"]
    assert "NUMA node 1: the huge pages would take" in greedy["msg"]
    assert host.sh(f"cat {PAGES}") == "16"
    host.reboot()
    host.sh("systemctl start ai-workload.slice steadygpu-hugetlb.service")
    assert host.sh(f"cat {PAGES} {LIMIT} /proc/sys/kernel/numa_balancing").split() == [
        "16",
        str(16 << 20),
        "0",
    ]
    host.module("numa_memory", {"state": "absent"})
    assert host.sh(f"cat {PAGES} {LIMIT}").split() == ["0", "max"]
    assert host.sh("cat /proc/sys/kernel/numa_balancing") == balancing
    assert host.sh("ls /etc/tmpfiles.d | grep -c steadygpu", check=False) == "0"


def test_a_container_lies_beside_its_gpu_and_the_privileged_one_is_named(host):
    host.sh(BUSYBOX)
    flags = host.sh("steadygpu cpuset 7")
    assert flags == "--cpuset-cpus=1 --cpuset-mems=1"
    seen = host.sh(
        f"docker run --rm {flags} --device nvidia.com/gpu=7 busybox /bin/busybox grep allowed_list "
        "/proc/self/status"
    )
    assert [line.split()[-1] for line in seen.splitlines()] == ["1", "1"]
    host.sh("docker run -d --name big --privileged busybox /bin/busybox sleep 100000")
    host.sh(
        "docker run -d --name dcgm --cap-add SYS_ADMIN --device nvidia.com/gpu=0 busybox "
        "/bin/busybox sleep 100000"
    )
    host.sh("docker run -d --name good --device nvidia.com/gpu=1 busybox /bin/busybox sleep 100000")
    told = host.module("container_hardening", {"accepted": ["dcgm"]})
    found = [(one["container"], one["rule"], one["accepted"]) for one in told["findings"]]
    assert found == [("big", "privileged", False), ("dcgm", "cap-sys-admin", True)]
    refused = host.module("container_hardening", {"accepted": ["dcgm"], "audit": "refuse"})
    assert refused["failed"]
    assert "container big" in refused["msg"]
    assert json.loads(host.sh("docker info --format '{{json .SecurityOptions}}'"))
