"""What the owner of an adopted engine would notice."""

from __future__ import annotations

import json


def test_the_running_job_was_not_touched(host):
    before = host.file("/root/job.pid").content_string.strip()
    assert host.check_output("docker inspect --format '{{.State.Pid}}' job") == before
    assert host.check_output("docker inspect --format '{{.RestartCount}}' job") == "0"
    assert host.file(f"/proc/{before}/cmdline").exists


def test_foreign_keys_kept_value_place_and_mode(host):
    daemon_json = host.file("/etc/docker/daemon.json")
    config = json.loads(daemon_json.content_string)
    assert config["log-driver"] == "journald"
    assert config["features"] == {"buildkit": True, "cdi": True}
    assert next(iter(config)) == "log-driver"
    assert daemon_json.mode == 0o640


def test_the_daemon_took_live_restore(host):
    assert host.check_output("docker info --format '{{.LiveRestoreEnabled}}'") == "true"


def test_a_slice_limit_kills_what_exceeds_it(host):
    """The article's promise of a limit, kept: 64 MiB of batch.slice against 200 MiB of writing."""
    run = host.run(
        "docker run --rm --cgroup-parent batch.slice busybox "
        "/bin/busybox dd if=/dev/zero of=/dev/null bs=200M count=1"
    )
    assert run.rc == 137
    events = host.file("/sys/fs/cgroup/batch.slice/memory.events").content_string
    assert int(dict(line.split() for line in events.splitlines())["oom_kill"]) >= 1


def test_a_container_with_one_device_sees_one_gpu(host):
    seen = host.check_output(
        "docker run --rm --device nvidia.com/gpu=5:0 busybox /bin/busybox ls /dev"
    ).split()
    assert [node for node in seen if node.removeprefix("nvidia").isdigit()] == ["nvidia5"]


def test_what_the_layout_names_is_cut_and_a_container_sees_its_slice_alone(host):
    gpus = json.loads(host.check_output("steadygpu facts --json --section gpu"))["gpu"]["devices"]
    cut = {at: gpu["mig"]["devices"] for at, gpu in enumerate(gpus) if gpu["mig"]["current"]}
    assert list(cut) == [1, 5], "GPU 0 is the running job's"
    for devices in cut.values():
        profiles = sorted(device["profile"] for device in devices)
        assert profiles == ["1g.10gb", "1g.10gb", "2g.20gb", "3g.40gb"]
    capabilities = host.check_output(
        "docker run --rm --device nvidia.com/gpu=5:2 busybox /bin/busybox ls /dev/nvidia-caps"
    ).split()
    assert len(capabilities) == 2, "one GPU instance and one compute instance, and no more"
