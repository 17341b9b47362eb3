"""What the owner of the job would notice of another release under it: nothing but the release."""

from __future__ import annotations

import json


def test_the_job_has_its_process_and_its_gpu(host):
    before = host.file("/root/job.pid").content_string.strip()
    assert host.check_output("docker inspect --format '{{.State.Pid}}' job") == before
    assert host.check_output("docker inspect --format '{{.RestartCount}}' job") == "0"
    opened = host.run("docker exec job /bin/busybox cat /dev/nvidia0")
    assert "No such device or address" in opened.stderr, "the device rule is gone"


def test_the_daemons_that_run_are_those_that_are_installed(host):
    former = host.file("/root/former").content_string
    server = host.check_output("docker version --format '{{.Server.Version}}'")
    assert not former.startswith(server)
    assert host.check_output("dpkg-query -W -f '${Version}' docker.io").startswith(server)
    for unit in ("docker", "containerd"):
        pid = host.check_output(f"systemctl show -P MainPID {unit}")
        assert not host.check_output(f"readlink /proc/{pid}/exe").endswith("(deleted)")


def test_the_set_is_held_and_the_files_of_others_are_as_they_were(host):
    held = set(host.check_output("apt-mark showhold").split())
    assert {"docker.io", "docker-cli", "containerd", "runc"} <= held
    config = json.loads(host.file("/etc/docker/daemon.json").content_string)
    assert config["log-driver"] == "journald"


def test_a_new_container_gets_its_gpu(host):
    seen = host.check_output(
        "docker run --rm --device nvidia.com/gpu=0 busybox /bin/busybox ls /dev"
    )
    assert "nvidia0" in seen.split()


def test_complaint_11_cg_001_cg_003_gpu_access_survives_reload_a_new_container_and_an_update(host):
    host.check_output(
        "systemctl daemon-reload; docker run --rm busybox /bin/busybox true; "
        "docker update --cpus 1 job >/dev/null"
    )
    # Simulated nodes have no driver: what the control group allows says ENXIO, not EPERM.
    said = host.run("docker exec job /bin/busybox head -c1 /dev/nvidia0").stderr
    assert "No such device or address" in said
