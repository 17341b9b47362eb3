# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A second runtime beside runc, on a host with a job that must not notice."""

from __future__ import annotations

import json
import re

PLAY = """\
- hosts: gpu_hosts
  gather_facts: false
  become: true
  roles:
    - role: steadygpu.host.runtimes
"""
JOB = "docker run --detach --name job --label tier=untrusted --device nvidia.com/gpu=0 busybox "
PID = "docker inspect --format '{{.State.Pid}}' job"
RUNTIMES = "docker info --format '{{json .Runtimes}} {{.DefaultRuntime}}'"
# A program that says it is an old runc; the other is the host's own, put there by hand.
OLD = (
    "printf '#!/bin/sh\\necho runc version 1.1.12\\n' >/usr/local/bin/runc-1.1.12 && "
    "chmod 755 /usr/local/bin/runc-1.1.12"
)
SECOND = "cp $(command -v runc) /usr/local/bin/runc-second"


def test_runtimes_side_by_side_and_containers_off_their_route(host, tmp_path):
    host.sh("tar -C /usr -c bin/busybox | docker import - busybox")
    host.sh(JOB + "/bin/busybox sleep 1000000")
    host.sh(f"{OLD}; {SECOND}")
    pid, before = host.sh(PID), host.sh("cat /etc/docker/daemon.json")
    play = tmp_path / "runtimes.yml"
    play.write_text(PLAY)
    second = {"path": "/usr/local/bin/runc-second"}

    # Row 56: an old runc by hand is refused, and with it the whole change.
    wanted = {"second": second, "stable": {"path": "/usr/local/bin/runc-1.1.12"}}
    extra = json.dumps({"runtimes_config": wanted})
    refused = host.play("-e", extra, playbook=str(play))
    assert refused.rc != 0
    assert "CVE-2025-31133" in refused.output
    assert host.sh("cat /etc/docker/daemon.json") == before

    # Docker reloads; the job, which the policy would have elsewhere, is named and left alone.
    route = {"match": {"label": {"tier": "untrusted"}}, "runtime": "second"}
    # Which build of Debian the copy is nobody knows, so it must be allowed by name.
    wanted = {"runtimes_config": {"second": second}, "runtimes_unsafe_allowed": ["second"]}
    extra = json.dumps({**wanted, "runtimes_routes": [route]})
    done = host.play("-e", extra, playbook=str(play))
    assert done.rc == 0, done.output
    assert "job: it has the runtime runc, routes[0] wants second" in " ".join(done.output.split())
    assert host.sh(PID) == pid
    runtimes, default = host.sh(RUNTIMES).rsplit(" ", 1)
    assert ("second" in json.loads(runtimes), default) == (True, "runc")
    host.sh(
        "docker run --name made --label tier=untrusted --runtime second busybox /bin/busybox true"
    )
    audit = host.module("runtime_routes_info")
    standings = {one["name"]: one["standing"] for one in audit["containers"]}
    assert standings == {"job": "off", "made": "on"}

    # A stopped container carries the name: without the runtime it could not start again.
    gone = {"absent": ["second"]}
    assert "made" in host.module("oci_runtimes_info", gone)["refusals"][0]
    host.sh("docker start --attach made && docker rm made")
    # The policy that the play before has left names it still.
    assert "routing policy" in host.module("oci_runtimes_info", gone)["refusals"][0]
    host.sh("rm /etc/steadygpu/routes.json")
    free = host.module("oci_runtimes_info", gone)
    assert free["refusals"] == []
    away = host.module("docker_daemon", {"config": free["absent"], "state": "absent"})
    assert away["applied"] == "reload", away
    assert "second" not in json.loads(host.sh(RUNTIMES).rsplit(" ", 1)[0])
    assert host.sh(PID) == pid
    assert re.search("nvidia0", host.sh("docker exec job /bin/busybox ls /dev"))
