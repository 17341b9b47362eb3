# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""MIG layouts as users meet them: the playbook, a running job in the way, a reboot, an undo."""

from __future__ import annotations

import json

import pytest
from conftest import LabHost, Run

LAYOUT = [
    {"devices": [0], "mig-enabled": True, "mig-devices": {"3g.20gb": 1, "1g.5gb": 2}},
    {"devices": [7], "mig-enabled": True, "mig-devices": {"7g.40gb": 1}},
]
SLICES = {0: ["1g.5gb", "1g.5gb", "3g.20gb"], 7: ["7g.40gb"]}

# An image of links into the host's /usr, so that a job can be a Python program without a registry.
IMAGE = (
    "mkdir -p /root/image && cd /root/image && mkdir dev proc sys usr && "
    "ln -sf usr/bin bin && ln -sf usr/lib lib && ln -sf usr/lib64 lib64 && "
    "tar -c . | docker import - job"
)
RUN = "docker run --detach --volume /usr:/usr:ro --name"
IDLE = "job python3 -c 'import time; time.sleep(100000)'"
# A job holds its GPU as a CUDA program does: the node stays open for as long as it runs.
BUSY = "job python3 -c 'import os, time; os.open(\"/dev/nvidia0\", os.O_PATH); time.sleep(100000)'"


def mig(host: LabHost, *arguments: str, layout: object = None) -> Run:
    """Run the playbook, with ``layout`` as ``mig_layout``."""
    variables = ("-e", json.dumps({"mig_layout": layout})) if layout is not None else ()
    return host.play(*variables, *arguments, playbook="playbooks/mig.yml")


def slices(host: LabHost) -> dict[int, list[str]]:
    """Profiles of the MIG devices by GPU index; only GPUs in MIG mode."""
    gpus = json.loads(host.sh("steadygpu facts --json --section gpu"))["gpu"]["devices"]
    return {
        gpu["index"]: sorted(device["profile"] for device in gpu["mig"]["devices"])
        for gpu in gpus
        if gpu["mig"]["current"]
    }


def pid(host: LabHost, container: str) -> str:
    """The container's first process as the host counts; 0 when it does not run."""
    return host.sh("docker inspect --format '{{.State.Pid}}' " + container)


def test_a_layout_is_made_kept_over_a_reboot_and_undone(host: LabHost) -> None:
    made = mig(host, "--diff", layout=LAYOUT)
    assert made.rc == 0, made.output
    assert "+  3g.20gb@" in made.output
    assert slices(host) == SLICES

    # MG-001: instances do not survive a reboot; MG-008: the specification must know the new ones.
    host.sh(IMAGE)
    host.sh(f"{RUN} sliced --device nvidia.com/gpu=0:1 {IDLE}")
    host.reboot()
    assert slices(host) == SLICES
    ready, started = (
        int(host.sh(f"systemctl show -P {moment} {unit}"))
        for moment, unit in (
            ("ActiveEnterTimestampMonotonic", "steadygpu-mig.service"),
            ("ExecMainStartTimestampMonotonic", "docker.service"),
        )
    )
    assert ready < started, "Docker started before the layout was back"
    host.sh("docker start sliced")

    # An idle container that was given the device is in the way as well.
    refused = host.sh("steadygpu mig undo 2>&1; echo status $?")
    assert "sliced" in refused
    assert refused.endswith("status 1")
    assert slices(host) == SLICES
    assert pid(host, "sliced") != "0"

    host.sh("docker rm --force sliced")
    undone = mig(host, "-e", "mig_undo=true")
    assert undone.rc == 0, undone.output
    assert slices(host) == {}


def test_a_job_on_a_gpu_is_named_and_left_alone(host: LabHost) -> None:
    host.sh(IMAGE)
    host.sh(f"{RUN} training --device nvidia.com/gpu=0 {BUSY}")
    job = pid(host, "training")

    refused = mig(host, layout="all-1g.5gb")
    assert refused.rc != 0
    assert "training" in refused.output
    assert slices(host) == {}, "another GPU was changed before the refusal"
    assert pid(host, "training") == job

    # GPUs that nobody holds can still be cut, and the monitor on them is stopped and started again.
    unit = "[Service]\\nExecStart=/usr/local/sbin/simgpu hold 5 --name nv-hostengine\\n"
    host.sh(f"printf '{unit}' > /etc/systemd/system/monitor.service && systemctl start monitor")
    layout = [{"devices": [5], "mig-enabled": True, "mig-devices": {"2g.10gb": 3}}]
    assert "nv-hostengine" in host.sh("steadygpu mig show")
    allowed = mig(host, "-e", '{"mig_stop": ["monitor.service"]}', layout=layout)
    assert allowed.rc == 0, allowed.output
    assert slices(host) == {5: ["2g.10gb"] * 3}
    assert host.sh("systemctl is-active monitor") == "active"
    assert pid(host, "training") == job


@pytest.mark.sweep
def test_a_mode_that_waits_for_a_reboot_is_never_forced(host: LabHost) -> None:
    """MG-002 on a GPU that only a reboot resets, as one that is passed through to a VM."""
    host.sh("simgpu set gpu.3.mig_reset reboot")
    layout = [{"devices": [3], "mig-enabled": True, "mig-devices": {"2g.10gb": 3}}]

    stopped = mig(host, layout=layout)
    assert stopped.rc != 0
    assert "mig_reboot: true" in stopped.output
    left = mig(host, "-e", '{"mig_reboot": false}', layout=layout)
    assert left.rc == 0, left.output
    assert slices(host) == {}

    boot = host.sh("cat /proc/sys/kernel/random/boot_id")
    rebooted = mig(host, "-e", '{"mig_reboot": true}', layout=layout)
    assert rebooted.rc == 0, rebooted.output
    assert host.sh("cat /proc/sys/kernel/random/boot_id") != boot
    assert slices(host) == {3: ["2g.10gb"] * 3}


@pytest.mark.sweep
def test_a_hopper_forgets_its_mode_at_a_reboot_and_gets_it_back(host: LabHost) -> None:
    host.sh("simgpu load hgx-h100")
    made = mig(host, layout="all-balanced")
    assert made.rc == 0, made.output
    cut = slices(host)
    assert cut == {gpu: ["1g.10gb", "1g.10gb", "2g.20gb", "3g.40gb"] for gpu in range(8)}
    host.reboot()
    assert slices(host) == cut
