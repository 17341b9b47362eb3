# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""containerd is configured and restarted under a container that runs on."""

from __future__ import annotations

RUN = (
    "tar -C /usr -c bin/busybox | docker import - busybox >/dev/null; "
    "docker run -d --name job busybox /bin/busybox sleep 100000 >/dev/null"
)
PID = "docker inspect --format '{{.State.Pid}}' job"
NOT_KEEPING = (
    "mkdir -p /etc/systemd/system/containerd.service.d; "
    "printf '[Service]\\nKillMode=mixed\\n' > /etc/systemd/system/containerd.service.d/mixed.conf; "
    "systemctl daemon-reload"
)
ASKED = {
    "nri": True,
    "cdi": True,
    "runtimes": {"second": {"path": "/usr/sbin/runc", "systemd_cgroup": True}},
}


def test_complaint_04_containerd_is_restarted_under_a_container_that_runs_on(host):
    host.sh(RUN)
    pid, before = host.sh(PID), host.sh("sha256sum /etc/containerd/config.toml")
    done = host.module("containerd_config", ASKED)
    assert (done["changed"], done["applied"]) == (True, "restart"), done
    assert host.sh(PID) == pid
    assert host.sh("docker exec job /bin/busybox echo alive") == "alive"
    host.sh("test -S /var/run/nri/nri.sock")
    assert not host.module("containerd_config", ASKED)["changed"]

    host.sh(NOT_KEEPING)
    refused = host.module("containerd_config", {"state": "absent"})
    assert refused["failed"]
    assert "KillMode=mixed" in refused["msg"]
    assert host.sh("docker inspect --format '{{slice .Id 0 12}}' job") in refused["msg"]

    host.sh("rm /etc/systemd/system/containerd.service.d/mixed.conf; systemctl daemon-reload")
    assert host.module("containerd_config", {"state": "absent"})["changed"]
    assert host.sh("sha256sum /etc/containerd/config.toml") == before
    assert host.sh(PID) == pid
