# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a converged host keeps, and a proof that can fail."""

from __future__ import annotations

BUSYBOX = "tar -C /usr -c bin/busybox | docker import - busybox"


def test_gpus_and_their_spec_are_back_after_a_reboot(host):
    host.sh(BUSYBOX)
    host.reboot()
    assert (
        host.sh(
            "docker run --rm --cgroup-parent ai-workload.slice --device nvidia.com/gpu=7 busybox "
            "/bin/busybox ls /dev "
            "| grep -c '^nvidia[0-9]'"
        )
        == "1"
    )
    assert host.sh("cat /sys/fs/cgroup/ai.slice/ai-workload.slice/pids.max") == "512"


def test_the_proof_fails_when_a_device_brings_a_second_gpu(host):
    host.sh(
        r"sed -i '0,/path: .*nvidia0$/s//&\n        - path: \/dev\/nvidia1/' /run/cdi/nvidia.yaml"
    )
    result = host.module("gpu_verify", {"accept_simulated": True})
    assert result["failed"]
    assert any(check["ok"] is False for check in result["checks"])
    assert host.sh("docker ps -aq") == "", "the proof left a container behind"


def test_the_proof_leaves_foreign_containers_alone(host):
    host.sh(BUSYBOX)
    job = host.sh("docker run -d busybox /bin/busybox sleep 100000")
    pid = host.sh("docker inspect --format '{{.State.Pid}}' " + job)
    result = host.module("gpu_verify", {"accept_simulated": True, "slice": "ai-workload.slice"})
    assert not result.get("failed"), result
    assert host.sh("docker inspect --format '{{.State.Pid}}' " + job) == pid
    assert host.sh("docker ps -aq --no-trunc") == job


def test_check_mode_on_a_converged_host_changes_nothing(host):
    run = host.play("--check", "--diff")
    assert run.rc == 0, run.output
    assert run.tasks_changed(host.name) == 0
