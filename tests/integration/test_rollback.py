# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The way back on a real host: with people's own changes in it, and with containers that live on.

Molecule (forky) shows that ``rollback.yml`` brings back the whole state of before ``site.yml``.
"""

from __future__ import annotations

import json

from conftest import LabHost

DAEMON_JSON = "/etc/docker/daemon.json"
IMAGE = "tar -C /usr -c bin/busybox | docker import - busybox"
JOB = "docker run --detach --name job --device nvidia.com/gpu=0 busybox /bin/busybox sleep 1000000"
PID = "docker inspect --format '{{.State.Pid}}' job"


def told(host: LabHost, command: str) -> dict[str, object]:
    """What the command ``steadygpu checkpoint …`` prints as JSON."""
    answer = json.loads(host.sh("steadygpu checkpoint " + command, check=False))
    assert isinstance(answer, dict)
    return answer


def test_a_play_that_fails_leaves_the_host_as_it_was(host: LabHost) -> None:
    host.sh(f"{IMAGE}; {JOB}")
    pid, before = host.sh(PID), host.sh("cat " + DAEMON_JSON)
    changes = {
        "engine_config": {"live-restore": True, "features": {"cdi": True}, "debug": True},
        "slices_units": {"ai-workload.slice": {"properties": {"TasksMax": 256}}},
        # The proof fails: there is no such device.
        "verify_device": "nvidia.com/gpu=99",
    }
    run = host.play("-e", json.dumps(changes), "--tags", "engine_configure,slices,verify")
    assert run.rc != 0
    assert "set debug = true" in run.output, "something must have been changed"
    assert "The host was put back to checkpoint" in run.output
    assert host.sh("cat " + DAEMON_JSON) == before
    assert host.sh("docker info --format '{{.Debug}}'") == "false"
    assert host.sh("cat /sys/fs/cgroup/ai.slice/ai-workload.slice/pids.max") == "512"
    assert host.sh(PID) == pid
    assert told(host, "list --json")["window"] is None


def test_what_people_changed_is_kept_and_containers_keep_their_runtime(host: LabHost) -> None:
    host.sh(f"{IMAGE}; {JOB}; steadygpu checkpoint take --label mine")
    pid, before = host.sh(PID), host.sh("cat " + DAEMON_JSON)
    runtime = {"runtimes": {"traced": {"path": "/usr/sbin/runc"}}, "debug": True}
    assert host.module("docker_daemon", {"config": runtime})["changed"]
    host.sh("docker create --runtime traced --name carrier busybox /bin/busybox true")
    # Two people: one adds a key to our file, one has a file that this collection never wrote.
    host.sh(f'sed -i \'0,/{{/s//{{ "log-level": "warn",/\' {DAEMON_JSON}')
    host.sh("echo vm.swappiness=11 > /etc/sysctl.d/99-mine.conf")

    restored = host.module("checkpoint", {"state": "restore", "checkpoint": "mine"})
    assert restored["conflicts"] == [DAEMON_JSON]
    assert "log-level" in host.sh(f"cat {DAEMON_JSON}.steadygpu-conflict")
    assert host.sh("cat /etc/sysctl.d/99-mine.conf") == "vm.swappiness=11"
    kept = next(left for left in restored["left"] if left["pending"])
    assert "carrier" in kept["reason"]
    assert host.sh("docker info --format '{{.Debug}}'") == "false"
    host.sh("docker start carrier")
    assert json.loads(host.sh("cat " + DAEMON_JSON))["runtimes"].keys() == {"traced"}
    assert told(host, "list --json")["pending"]

    # Nobody carries the name any more: the same way back now goes to its end.
    host.sh("docker rm -f carrier; rm /etc/sysctl.d/99-mine.conf")
    again = host.module("checkpoint", {"state": "restore", "checkpoint": "mine"})
    assert again["left"] == []
    assert host.sh("cat " + DAEMON_JSON) == before
    assert "traced" not in host.sh("docker info --format '{{.Runtimes}}'")
    assert told(host, "diff mine now --json")["empty"] is True
    assert host.sh(PID) == pid
