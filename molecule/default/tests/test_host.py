"""What a user of the converged Debian 13 host would notice."""

from __future__ import annotations

import json

import pytest

BUSYBOX = "tar -C /usr -c bin/busybox | docker import - busybox"
ONE_GPU = "docker run --rm --device nvidia.com/gpu=0 busybox /bin/busybox ls /dev"


def test_a_container_with_one_device_sees_one_gpu(host):
    host.run_test("docker image inspect busybox || " + BUSYBOX)
    seen = host.check_output(ONE_GPU).split()
    assert [node for node in seen if node.removeprefix("nvidia").isdigit()] == ["nvidia0"]
    assert "nvidiactl" in seen


def test_daemon_json_is_ours_and_the_daemon_took_it(host):
    assert json.loads(host.file("/etc/docker/daemon.json").content_string) == {
        "live-restore": True,
        "features": {"cdi": True},
    }
    assert host.check_output("docker info --format '{{.LiveRestoreEnabled}}'") == "true"


def test_the_slice_has_its_limits_at_its_real_place(host):
    group = "/sys/fs/cgroup/ai.slice/ai-workload.slice/"
    read = host.check_output(
        f"cd {group} && cat memory.max pids.max cpu.max io.weight"
    ).splitlines()
    assert read == ["8589934592", "512", "300000 100000", "default 50"]


def test_tk_018_cg_010_the_toolkit_is_pinned_held_and_stays(host):
    held = host.check_output("apt-mark showhold").split()
    assert set(held) >= {
        "nvidia-container-toolkit",
        "nvidia-container-toolkit-base",
        "libnvidia-container-tools",
        "libnvidia-container1",
    }
    policy = host.check_output("apt-cache policy nvidia-container-toolkit")
    assert "1.20.0-1" in policy, "the repository must offer a newer one, or this proves nothing"
    assert "Candidate: 1.19.1-1" in policy
    assert "nvidia-container-toolkit" not in host.check_output("apt-get -s dist-upgrade")


@pytest.fixture
def job(host):
    """The process of a job that began before the second run of site.yml; it ends with its test."""
    yield host.check_output("cat /root/job.pid")
    host.check_output("docker rm --force job && rm /root/job.pid")


def test_gpu_access_survives_reload_a_new_container_and_an_update(host, job):
    host.check_output(
        "systemctl daemon-reload; docker run --rm busybox /bin/busybox true; "
        "docker update --cpus 1 job >/dev/null"
    )
    # Simulated nodes have no driver: what the control group allows says ENXIO, not EPERM.
    said = host.run("docker exec job /bin/busybox head -c1 /dev/nvidia1").stderr
    assert "No such device or address" in said
    state = host.check_output("docker inspect --format '{{.State.Pid}} {{.RestartCount}}' job")
    assert state == f"{job} 0"


def test_the_agent_tells_the_same_facts(host):
    facts = json.loads(host.check_output("steadygpu facts --json"))
    devices = facts["gpu"]["devices"]
    assert facts["gpu"]["driver"]["status"] == "loaded"
    assert facts["gpu"]["source"] == "nvml"
    assert [device["numa_node"] for device in devices] == [0, 0, 0, 0, 1, 1, 1, 1]
    assert all(device["name"] == "NVIDIA A100-SXM4-40GB" for device in devices)
    assert facts["gpu"]["links"][0][1] == "NV12"
    assert facts["docker"]["containers"]["total"] == 0, "the proof left a container behind"
