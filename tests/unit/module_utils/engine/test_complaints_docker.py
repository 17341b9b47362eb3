# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What users of other collections complained of, as tests of docker_daemon.

The numbers are those of the design notes' list of complaints.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.engine.daemon_apply import (
    DaemonFailedError,
)
from ansible_collections.steadygpu.host.plugins.module_utils.engine.daemon_plan import (
    DaemonRefusedError,
)
from ansible_collections.steadygpu.host.tests.unit.module_utils.engine.fake_docker import (
    CDI,
    NVIDIA,
    Host,
)

FOREIGN = """{
   "log-opts": {"max-size": "10m", "max-file": "3"},
   "insecure-registries": ["registry.example.com:5000"],

   "features": {"buildkit": true},
   "runtimes": {"kata": {"runtimeType": "io.containerd.kata.v2"}},
   "data-root": "/srv/docker"
}
"""


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


def test_complaint_01_foreign_keys_stay_in_order_and_removal_takes_back_only_ours(
    host: Host,
) -> None:
    host.write(FOREIGN)
    docker = host.docker()
    host.run(docker, {**NVIDIA, **CDI, "live-restore": True})
    text = host.text() or ""
    assert list(json.loads(text))[:5] == list(json.loads(FOREIGN))
    untouched = FOREIGN.splitlines()[1:4]
    assert text.splitlines()[1:4] == untouched
    assert json.loads(text)["runtimes"] == {
        **json.loads(FOREIGN)["runtimes"],
        **NVIDIA["runtimes"],
    }
    host.run(docker, {}, present=False)
    assert host.text() == FOREIGN


@pytest.mark.parametrize("text", [FOREIGN, "{ broken", ""])
def test_complaint_02_without_options_the_file_is_not_touched(host: Host, text: str) -> None:
    docker = host.docker()
    host.write(text)
    before = os.stat(host.path).st_mtime_ns
    assert host.run(docker, {}).applied == "none"
    assert (host.text(), os.stat(host.path).st_mtime_ns, docker.done) == (text, before, [])


@pytest.mark.parametrize("flag", ["--default-shm-size", "--live-restore"])
def test_complaint_03_flag_and_file(host: Host, flag: str) -> None:
    host.write(FOREIGN)
    docker = host.docker(running=("train",), flags={flag: "1g"})
    key = flag[2:]
    with pytest.raises(DaemonRefusedError, match=f"{key} is a flag of docker.service"):
        host.run(docker, {key: True if key == "live-restore" else "1g"})
    assert (host.text(), docker.done, docker.killed) == (FOREIGN, [], [])


def test_complaint_03_a_start_that_fails_brings_the_former_file_back(host: Host) -> None:
    host.write(FOREIGN)
    docker = host.docker(refuses="default-shm-size")
    with pytest.raises(DaemonFailedError, match="former file was put back"):
        host.run(docker, {**CDI, "default-shm-size": "1g"})
    assert (host.text(), docker.status) == (FOREIGN, "running")


def test_complaint_07_the_daemon_is_asked_and_not_the_file(host: Host) -> None:
    host.write(json.dumps(NVIDIA))
    docker = host.docker()
    docker.live = {}  # an update of Docker has forgotten it, the file still has it
    plan = host.plan(docker, NVIDIA)
    assert (plan.changed, plan.how) == (True, "reload")
    host.run(docker, NVIDIA)
    assert "nvidia" in docker.live["runtimes"]


def test_complaint_39_hot_keys_are_reloaded_and_a_restart_is_guarded(host: Host) -> None:
    docker = host.docker(running=("train",))
    host.run(docker, {"live-restore": True, "labels": ["a=1"]})
    host.run(docker, CDI)
    assert (docker.done, docker.killed, docker.running) == (
        ["reload", "restart"],
        [],
        ("train",),
    )
    without = host.docker(running=("train",))
    without.live = {}
    host.write("{}")
    with pytest.raises(DaemonRefusedError, match="would end 1 running container"):
        host.run(without, CDI)
    assert without.killed == []
