# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A host that was provisioned from files, and that nobody upgrades behind its jobs."""

from __future__ import annotations

TOOLKIT = (
    "nvidia-container-toolkit",
    "nvidia-container-toolkit-base",
    "libnvidia-container-tools",
    "libnvidia-container1",
)


def test_complaint_33_engine_and_toolkit_came_from_files(host):
    versions = dict(
        line.split("\t")
        for line in host.check_output(
            "dpkg-query -W -f '${Package}\\t${Version}\\n' docker.io runc " + " ".join(TOOLKIT)
        ).splitlines()
    )
    assert versions["docker.io"].startswith("26.1.")
    assert {versions[name] for name in TOOLKIT} == {"1.20.0-1"}
    assert host.file("/etc/apt/sources.list.d/steadygpu-toolkit.sources").exists is False
    # Neither source nor cache: the lists are as empty as they were.
    assert "docker" not in host.check_output("ls /var/lib/apt/lists")


def test_complaint_29_rt_028_what_runs_containers_is_held_and_guarded(host):
    held = set(host.check_output("apt-mark showhold").split())
    assert held >= {"docker.io", "docker-cli", "containerd", "runc", *TOOLKIT}
    blacklist = host.check_output("apt-config dump Unattended-Upgrade::Package-Blacklist")
    assert '"nvidia-"' in blacklist
    assert host.file("/etc/needrestart/conf.d/steadygpu.conf").exists


def test_the_engine_runs_and_nothing_of_the_guard_is_left(host):
    assert host.check_output("systemctl is-active docker.service containerd.service").split() == [
        "active",
        "active",
    ]
    assert host.check_output("systemctl is-enabled docker.service") == "enabled"
    assert host.file("/usr/sbin/policy-rc.d").exists is False
    # It started once only, with its configuration already there.
    assert host.check_output("systemctl show docker -P NRestarts") == "0"
    assert host.check_output("docker info --format '{{.LiveRestoreEnabled}}'") == "true"
