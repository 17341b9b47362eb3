# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Bad input gets one clear message, and the host is as it was."""

from __future__ import annotations

DAEMON_JSON = "/etc/docker/daemon.json"
STATE = (
    "sha256sum /etc/docker/daemon.json /etc/apt/sources.list.d/* /etc/apt/preferences.d/* "
    "/etc/systemd/system/*.slice /run/cdi/*; dpkg-query -W | sha256sum; "
    "systemctl show docker -P MainPID"
)


def test_a_broken_daemon_json_is_named_and_left_alone(host):
    host.sh("printf '{\"live-restore\": true,\\n oops}\\n' > " + DAEMON_JSON)
    before = host.sh(STATE)
    run = host.play()
    assert run.rc == 2
    assert "PF-DAEMON-JSON" in run.output
    assert "line 2" in run.output
    assert host.sh(STATE) == before


def test_a_foreign_owner_of_a_key_is_respected(host):
    host.sh(f'sed -i \'1s/{{/{{"log-driver": "journald",/\' {DAEMON_JSON}')
    before = host.sh(STATE)
    result = host.module("docker_daemon", {"config": {"log-driver": "local"}})
    assert result["failed"]
    for word in ("log-driver", "journald", "local", "takeover"):
        assert word in result["msg"]
    assert host.sh(STATE) == before


def test_an_engine_that_does_not_answer_stops_the_run(host):
    before = host.sh(STATE)
    host.sh("systemctl kill --signal STOP docker.service")
    run = host.play()
    host.sh("systemctl kill --signal CONT docker.service")
    assert run.rc == 2
    assert "PF-ENGINE-UNREACHABLE" in run.output
    assert host.sh(STATE) == before


def test_a_repository_that_is_down_costs_no_former_configuration(host):
    host.sh("systemctl stop simgpu-repo")
    before = host.sh(STATE)
    run = host.play("--tags", "toolkit", "-e", "toolkit_version=1.20.0-1")
    assert run.rc == 2
    assert "1.20.0-1 could not be installed from http://127.0.0.1:8099/" in run.output
    assert host.sh(STATE) == before


def test_somebody_elses_repository_file_is_respected(host):
    host.sh(
        "mv /etc/apt/sources.list.d/steadygpu-toolkit.sources "
        "/etc/apt/sources.list.d/vendor.sources; apt-mark unhold nvidia-container-toolkit; "
        "apt-get -y purge nvidia-container-toolkit"
    )
    before = host.sh(STATE)
    run = host.play("--tags", "toolkit")
    assert run.rc == 2
    assert "vendor.sources names the repository already" in run.output
    assert host.sh(STATE) == before


def test_complaint_22_a_repository_that_is_down_leaves_a_new_host_bare(host):
    host.sh(
        "apt-mark unhold libnvidia-container1 libnvidia-container-tools nvidia-container-toolkit "
        "nvidia-container-toolkit-base; apt-get -y purge nvidia-container-toolkit; "
        "rm -f /etc/apt/sources.list.d/steadygpu-toolkit.sources "
        "/etc/apt/preferences.d/steadygpu-toolkit.pref /var/lib/apt/lists/127.0.0.1*; "
        "apt-get clean; systemctl stop simgpu-repo"
    )
    before = host.sh(STATE)
    run = host.play("--tags", "toolkit")
    assert run.rc == 2
    assert "1.19.1-1 could not be installed from http://127.0.0.1:8099/" in run.output
    assert host.sh(STATE) == before


def test_a_variable_of_the_wrong_type(host):
    before = host.sh(STATE)
    run = host.play("-e", "slices_units=many")
    assert run.rc == 2
    assert "slices_units" in run.output
    assert "dict" in run.output
    assert host.sh(STATE) == before


def test_an_unknown_slice_property_is_explained(host):
    before = host.sh(STATE)
    result = host.module("systemd_slice", {"name": "x.slice", "properties": {"CPUBurst": "10%"}})
    assert result["failed"]
    assert "CPUBurst" in result["msg"]
    assert host.sh(STATE) == before
