"""What the owner of a host would notice who has his own mind about it."""

from __future__ import annotations

import json
from pathlib import Path

OWNERS = (Path(__file__).parents[1] / "files" / "daemon.json").read_text(encoding="utf-8")


def test_the_running_job_was_not_touched(host):
    before = host.file("/root/job.pid").content_string.strip()
    assert host.check_output("docker inspect --format '{{.State.Pid}}' job") == before


def test_complaint_01_the_owners_keys_stay_in_their_order(host):
    text = host.file("/etc/docker/daemon.json").content_string
    assert text.splitlines()[:5] == OWNERS.splitlines()[:5]
    config, owners = json.loads(text), json.loads(OWNERS)
    assert list(config)[: len(owners)] == list(owners)
    assert config.pop("live-restore") is True
    assert config["features"].pop("cdi") is True
    assert config == owners
    assert host.file("/etc/docker/daemon.json").mode == 0o640


def test_complaint_03_the_owners_flag_is_still_in_force(host):
    assert "--default-shm-size=128m" in host.check_output("systemctl show -P ExecStart docker")
    run = "docker run --rm busybox /bin/busybox df -k /dev/shm"
    assert host.check_output(run).split()[-5] == "131072"


def test_complaint_39_dockerd_was_restarted_and_nobody_died(host):
    daemons = host.file("/root/daemons").content_string.split()
    now = host.check_output("systemctl show --property MainPID docker containerd").split()
    assert now[0] != daemons[0], "dockerd was not restarted: nothing was proved"
    assert host.check_output("docker inspect --format '{{.RestartCount}}' job") == "0"


def test_complaint_05_a_drop_in_that_nothing_imports_stays_without_effect(host):
    assert host.file("/etc/containerd/config.d/99-nvidia.toml").exists
    dump = host.check_output("containerd config dump")
    assert "-999" in dump, "our own drop-in has no effect either"
    assert 'default_runtime_name = "nvidia"' not in dump


def test_the_daemon_took_what_it_was_to_take(host):
    info = json.loads(host.check_output("docker info --format '{{json .}}'"))
    assert info["LiveRestoreEnabled"] is True
    assert info["CDISpecDirs"]
    assert {"slow", "runc"} <= set(info["Runtimes"])


def test_gpu_access_survives_reload_a_new_container_and_an_update(host):
    host.check_output(
        "systemctl daemon-reload; docker run --rm busybox /bin/busybox true; "
        "docker update --cpus 1 job >/dev/null"
    )
    # Simulated nodes have no driver: what the control group allows says ENXIO, not EPERM.
    said = host.run("docker exec job /bin/busybox head -c1 /dev/nvidia0").stderr
    assert "No such device or address" in said
