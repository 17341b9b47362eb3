# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Limits of slices as the kernel enforces them, and a way back that leaves nothing."""

from __future__ import annotations

import re

import pytest

# Long, and not measured on a quiet machine yet.
pytestmark = pytest.mark.sweep

BUSYBOX = "tar -C /usr -c bin/busybox | docker import - busybox >/dev/null"
RUN = "systemd-run --quiet --wait --pipe --slice "
GROUP = "/sys/fs/cgroup/limits.slice/"
# Read from the disk itself, so that no cache answers.
READ = "dd if=/dev/vda of=/dev/null bs=1M count=20 iflag=direct 2>&1 | tail -1"
FORK = (
    "import os, time\n"
    "made = 0\n"
    "try:\n"
    "    while made < 100:\n"
    "        if not os.fork(): time.sleep(5); os._exit(0)\n"
    "        made += 1\n"
    "except BlockingIOError: print('refused after', made)\n"
)
SLICES = {
    "limits.slice": {},
    "limits-memory.slice": {"properties": {"MemoryMax": "64M", "MemorySwapMax": 0}},
    "limits-tasks.slice": {"properties": {"TasksMax": 50, "MemoryMax": "512M"}},
}
MORE_SLICES = {
    "limits.slice": {},
    "limits-cpu.slice": {"properties": {"CPUQuota": "20%"}},
    "limits-io.slice": {"properties": {"IOReadBandwidthMax": {"/dev/vda": "5M"}}},
}
MINE = "/etc/systemd/system/limits-tasks.slice.d/mine.conf"


def seconds(dd: str) -> float:
    """How long dd says that it took."""
    found = re.search(r"([0-9.]+) s,", dd)
    assert found, dd
    return float(found.group(1))


def test_memory_and_tasks_are_limited_a_drop_in_survives_and_nothing_is_left(host):
    host.sh(f"mkdir {MINE.rpartition('/')[0]}; printf '[Slice]\\nTasksMax=20\\n' >{MINE}")
    kept = host.module("systemd_slice", {"slices": SLICES, "drop_ins": "win"})
    verdicts = {one["name"]: one for one in kept["settings"]}
    drop_in = verdicts.pop("limits-tasks.slice TasksMax")
    assert drop_in["verdict"] == "inert"
    assert f"{MINE} sets TasksMax=20" in drop_in["reason"]
    assert drop_in["effective"] == "20"
    assert {one["verdict"] for one in verdicts.values()} == {"effective"}

    # Who needs too much dies inside; who has more outside does not notice.
    host.sh(
        "systemd-run --quiet --unit outside python3 -c "
        "'import time; held = bytearray(96 << 20); time.sleep(100000)'"
    )
    host.sh(RUN + "limits-memory.slice python3 -c 'bytearray(300 << 20)' || true")
    killed = host.sh(f"grep -w oom_kill {GROUP}limits-memory.slice/memory.events")
    assert int(killed.split()[1]) > 0
    assert host.sh("systemctl is-active outside") == "active"

    said = host.sh(RUN + f'limits-tasks.slice python3 -c "{FORK}"')
    assert re.search(r"refused after 1[0-9]\b", said), said

    gone = host.module("systemd_slice", {"slices": {}})
    assert gone["changed"]
    assert host.sh("ls /etc/systemd/system | grep -c '^limits.*slice$' || true") == "0"
    assert host.sh(f"cat {MINE}") == "[Slice]\nTasksMax=20"


def test_processors_and_reads_are_limited(host):
    kept = host.module("systemd_slice", {"slices": MORE_SLICES})
    assert {one["verdict"] for one in kept["settings"]} == {"effective"}

    host.sh(RUN + "limits-cpu.slice timeout 3 sh -c 'while :; do :; done' || true")
    throttled = host.sh(f"grep nr_throttled {GROUP}limits-cpu.slice/cpu.stat")
    assert int(throttled.split()[1]) > 0

    # 20 MiB at 5 MB/s are four seconds; outside the disk is not slowed down.
    slow, fast = seconds(host.sh(RUN + "limits-io.slice " + f"sh -c '{READ}'")), host.sh(READ)
    assert slow > 3.5
    assert seconds(fast) < slow / 2


def test_a_container_has_the_processors_and_memory_of_its_gpu(host):
    host.sh(BUSYBOX)
    facts = host.module("gpu_facts")["ansible_facts"]["gpu_host"]
    gpu = facts["gpu"]["devices"][7]
    assert gpu["numa_node"] == 1
    allowed = host.sh(
        f"docker run --rm --cpuset-cpus {gpu['cpus']} --cpuset-mems {gpu['numa_node']} "
        "--device nvidia.com/gpu=7 --cgroup-parent ai-workload.slice busybox "
        "/bin/busybox grep _allowed_list /proc/self/status"
    )
    found = dict(re.findall(r"(Cpus|Mems)_allowed_list:\s+(\S+)", allowed))
    assert found == {"Cpus": gpu["cpus"], "Mems": str(gpu["numa_node"])}
