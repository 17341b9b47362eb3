# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import copy

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.checks.preflight import (
    Wishes,
    findings,
    platform_key,
)

GOOD = {
    "os": {
        "id": "debian",
        "version_id": "13",
        "family": "debian",
        "name": "Debian GNU/Linux 13 (trixie)",
        "python": "3.13.5",
    },
    "kernel": {"release": "6.12.48+deb13-cloud-amd64"},
    "systemd": {"version": 257},
    "cgroup": {"version": 2, "controllers": ["cpuset", "cpu", "io", "memory", "pids"]},
    "gpu": {
        "driver": {"status": "loaded", "version": "550.163.01", "reason": None},
        "devices": [{"index": 0, "error": None}],
    },
    "docker": {
        "status": "running",
        "version": "26.1.5+dfsg1",
        "reason": None,
        "daemon_json": {"status": "valid", "path": "/etc/docker/daemon.json", "reason": None},
    },
}


def ids(changes, **wishes):
    facts = copy.deepcopy(GOOD)
    for path, value in changes.items():
        section, key = path.split(".")
        facts[section][key] = value
    return [finding["id"] for finding in findings(facts, Wishes(**wishes))]


def test_a_good_host_has_no_findings():
    assert ids({}) == []


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"os.id": "gentoo", "os.family": "gentoo", "os.version_id": ""}, "PF-OS"),
        ({"os.id": "ubuntu", "os.version_id": "24.04"}, "PF-UNTESTED"),
        ({"os.python": "3.8.10"}, "PF-PYTHON"),
        ({"kernel.release": "5.10.0-34-amd64"}, "PF-KERNEL"),
        ({"cgroup.version": 1}, "PF-CGROUP"),
        ({"cgroup.controllers": ["cpu"]}, "PF-MEMORY-CONTROLLER"),
        ({"systemd.version": None}, "PF-SYSTEMD"),
        ({"gpu.driver": {"status": "mismatch", "reason": "x"}}, "PF-DRIVER-MISMATCH"),
        ({"gpu.driver": {"status": "not_loaded", "reason": "x"}}, "PF-DRIVER-NOT-LOADED"),
        ({"gpu.devices": []}, "PF-NO-GPU"),
        ({"gpu.devices": [{"index": 3, "error": "GPU is lost"}]}, "PF-GPU-ERROR"),
        ({"docker.version": "20.10.24+dfsg1"}, "PF-ENGINE-OLD"),
        ({"docker.version": "26.0.2"}, "PF-ENGINE-OLD"),
        ({"docker.status": "unreachable"}, "PF-ENGINE-UNREACHABLE"),
        (
            {"docker.daemon_json": {"status": "invalid", "path": "p", "reason": "line 2"}},
            "PF-DAEMON-JSON",
        ),
    ],
)
def test_each_obstacle_is_found(changes, expected):
    assert ids(changes) == [expected]


def test_a_swarm_node_is_refused_live_restore():
    swarm = {"docker.swarm": {"active": True}}
    assert ids(swarm, live_restore=True) == ["PF-SWARM-LIVE-RESTORE"]
    assert ids(swarm, live_restore=False) == []


def test_an_old_debian_is_not_taken_for_testing():
    assert ids({"os.version_id": "11"}) == ["PF-OS"]


def test_the_kernel_of_el_9_is_new_enough():
    el9 = {"os.id": "rocky", "os.family": "rhel", "os.version_id": "9.6"}
    assert ids({**el9, "kernel.release": "5.14.0-570.el9.x86_64"}) == ["PF-UNTESTED"]


def test_a_bare_bookworm_is_refused_for_the_engine_it_would_get():
    bare = {"os.version_id": "12", "docker.status": "absent", "docker.version": None}
    assert ids(bare) == ["PF-ENGINE-OLD"]
    assert ids(bare, engine_from_distribution=False) == []


def test_a_bookworm_with_a_newer_engine_is_adopted():
    assert ids({"os.version_id": "12", "docker.version": "28.5.2"}) == []


def test_a_host_without_driver_is_only_warned_about_when_it_may_be():
    driver = {"gpu.driver": {"status": "absent", "reason": "x"}, "gpu.devices": []}
    facts = copy.deepcopy(GOOD)
    facts["gpu"]["driver"] = {"status": "absent", "reason": "x"}
    assert ids(driver) == ["PF-DRIVER-ABSENT"]
    assert [f["severity"] for f in findings(facts, Wishes(require_gpu=False))] == ["warning"]


@pytest.mark.parametrize(("version", "refused"), [("1.18.0-1", True), ("1.19.1-1", False)])
def test_a_toolkit_with_known_escapes_is_refused(version, refused):
    assert (ids({}, toolkit_version=version) == ["PF-TOOLKIT-CVE"]) is refused


def test_errors_come_before_warnings():
    assert ids({"os.id": "ubuntu", "os.version_id": "24.04", "os.python": "3.8"}) == [
        "PF-PYTHON",
        "PF-UNTESTED",
    ]


def test_every_finding_says_seen_wanted_and_fix():
    facts = copy.deepcopy(GOOD)
    facts["docker"]["version"] = "20.10.24"
    (finding,) = findings(facts)
    assert "20.10.24" in finding["seen"]
    assert "26.1.0" in finding["wanted"]
    assert finding["fix"]


def test_testing_and_unstable_have_no_version_id():
    assert platform_key({"id": "debian", "family": "debian"}) == "debian forky/sid"
    assert platform_key({"id": "rocky", "family": "rhel", "version_id": "9.4"}) == "rhel 9"
