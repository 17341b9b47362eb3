# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A driver that fails is a fact, never a failed or hanging play."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize(
    ("mode", "status"),
    [
        ("driver_not_loaded", "not_loaded"),
        ("wrong_library", "mismatch"),
        ("timeout", "unresponsive"),
    ],
)
def test_a_failing_driver_is_a_status_with_a_reason(host, mode, status):
    host.sh("simgpu fail " + mode)
    result = host.module("gpu_facts", {"deadline_s": 5})
    driver = result["ansible_facts"]["gpu_host"]["gpu"]["driver"]
    assert driver["status"] == status
    assert driver["reason"]


def test_one_lost_gpu_does_not_hide_the_others(host):
    host.sh("simgpu fail gpu_lost 3")
    gpu = host.module("gpu_facts")["ansible_facts"]["gpu_host"]["gpu"]
    assert gpu["driver"]["status"] == "loaded"
    assert [bool(device["error"]) for device in gpu["devices"]] == [n == 3 for n in range(8)]


def test_facts_before_anything_is_installed_come_from_procfs(host):
    host.sh("rm -rf /usr/local/lib/steadygpu")
    gpu = host.module("gpu_facts")["ansible_facts"]["gpu_host"]["gpu"]
    assert gpu["source"] == "procfs"
    assert len(gpu["devices"]) == 8
    assert gpu["devices"][4]["uuid"].startswith("GPU-")
    assert gpu["devices"][4]["numa_node"] == 1


def test_a_host_without_a_driver(host):
    host.sh("simgpu unload")
    gpu = host.module("gpu_facts")["ansible_facts"]["gpu_host"]["gpu"]
    assert gpu["driver"]["status"] == "absent"
    assert gpu["devices"] == []
