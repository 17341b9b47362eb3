# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A host with two nodes of two CPUs: files of the kernel in a scratch tree, and fake slices."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.realtime import manage
from ansible_collections.steadygpu.host.plugins.module_utils.slices import model

NEW = "6.12.94+deb13-cloud-amd64"
_STAT = "{pid} ({name}) S 1 1 1 0 -1 {flags} " + "0 " * 29 + "0 {priority} {policy} 0 0 0\n"


class RealtimeHost:
    """Files are written below ``root``; ``slices`` are those that were made, with their CPUs."""

    def __init__(self, root: Path) -> None:
        self.path = root
        self.root = str(root)
        self.slices: list[tuple[str, str]] = []
        self.write("sys/devices/system/cpu/online", "0-3")
        self.write("sys/devices/system/node/node0/cpulist", "0-1")
        self.write("sys/devices/system/node/node1/cpulist", "2-3")
        self.write("sys/fs/cgroup/cgroup.controllers", "cpuset cpu io memory pids")
        self.write("proc/sys/kernel/sched_rt_runtime_us", "950000")
        self.write("proc/sys/kernel/sched_rt_period_us", "1000000")
        self.write("proc/cmdline", "root=/dev/vda ro")
        self.write("usr/local/bin/steadygpu", "")
        (root / "run/systemd/system").mkdir(parents=True)

    def write(self, path: str, text: str) -> None:
        """Make a file below the root."""
        place = self.path / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text + "\n", encoding="ascii")

    def has(self, path: str) -> str:
        """What a file holds."""
        return (self.path / path).read_text(encoding="ascii").strip()

    def there(self, path: str) -> bool:
        """Is there such a file?"""
        return (self.path / path).exists()

    def kernel(self, release: str, config: str = "# CONFIG_RT_GROUP_SCHED is not set") -> None:
        """The running kernel and its configuration."""
        self.write("proc/sys/kernel/osrelease", release)
        self.write(f"boot/config-{release}", config)

    def servers(self, cpus: int = 4, runtime: int = 50_000_000) -> None:
        """A fair server for each CPU."""
        for cpu in range(cpus):
            self.write(f"sys/kernel/debug/sched/fair_server/cpu{cpu}/runtime", str(runtime))
            self.write(f"sys/kernel/debug/sched/fair_server/cpu{cpu}/period", "1000000000")

    def task(self, pid: int, name: str, policy: int, priority: int = 0, flags: int = 0) -> None:
        """A process with one task."""
        text = _STAT.format(pid=pid, name=name, flags=flags, priority=priority, policy=policy)
        self.write(f"proc/{pid}/stat", text)
        self.write(f"proc/{pid}/task/{pid}/stat", text)
        self.write(f"proc/{pid}/comm", name)

    def thread(self, pid: int, thread: int, cpus: str) -> None:
        """The CPUs that one thread of a process may run on."""
        self.write(f"proc/{pid}/task/{thread}/status", f"Name:\tt\nCpus_allowed_list:\t{cpus}")

    def group(self, path: str, cpus: str = "", populated: bool = True) -> None:
        """A control group with its cpuset."""
        self.write(f"sys/fs/cgroup/{path}/cpuset.cpus", cpus)
        self.write(f"sys/fs/cgroup/{path}/cgroup.events", f"populated {int(populated)}")

    def make(self, wish: model.Wish, check_mode: bool, verified: bool = False) -> model.Outcome:
        """What ``slices.manage.ensure_present`` does."""
        cpus = wish.settings["AllowedCPUs"].lines[0]
        if self.slices == [(wish.name, cpus)]:
            return model.Outcome()
        if not check_mode:
            self.slices = [(wish.name, cpus)]
            self.write(f"sys/fs/cgroup/{wish.name}/cpuset.cpus", cpus)
            self.write(f"sys/fs/cgroup/{wish.name}/cpuset.cpus.effective", cpus)
            partition = f"sys/fs/cgroup/{wish.name}/cpuset.cpus.partition"
            if not self.there(partition):
                self.write(partition, "member")
        return model.Outcome(actions=[f"write {wish.unit_path}"])

    def unmake(self, wish: model.Wish, check_mode: bool) -> model.Outcome:
        """What ``slices.manage.ensure_absent`` does."""
        if not check_mode:
            self.slices = []
            for name in ("cpuset.cpus", "cpuset.cpus.effective", "cpuset.cpus.partition"):
                (self.path / "sys/fs/cgroup" / wish.name / name).unlink()
        return model.Outcome(actions=[f"delete {wish.unit_path}"])


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RealtimeHost:
    """Linux 6.12 with fair servers and nothing set."""
    made = RealtimeHost(tmp_path)
    made.kernel(NEW)
    made.servers()
    monkeypatch.setattr(manage.slices, "ensure_present", made.make)
    monkeypatch.setattr(manage.slices, "ensure_absent", made.unmake)
    return made
