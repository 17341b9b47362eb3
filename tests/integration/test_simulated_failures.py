# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A driver that fails is a fact, never a failed or hanging play."""

from __future__ import annotations


def _gpu(host, **arguments):
    return host.module("gpu_facts", arguments)["ansible_facts"]["gpu_host"]["gpu"]


def test_a_failing_driver_is_a_status_with_a_reason(host):
    for mode, status in (
        ("driver_not_loaded", "not_loaded"),
        ("wrong_library", "mismatch"),
        ("timeout", "unresponsive"),
    ):
        host.sh("simgpu clear; simgpu fail " + mode)
        driver = _gpu(host, deadline_s=5)["driver"]
        assert driver["status"] == status, mode
        assert driver["reason"]


def test_one_lost_gpu_does_not_hide_the_others(host):
    host.sh("simgpu fail gpu_lost 3")
    gpu = _gpu(host)
    assert gpu["driver"]["status"] == "loaded"
    assert [bool(device["error"]) for device in gpu["devices"]] == [n == 3 for n in range(8)]


def test_facts_do_without_the_agent_and_without_a_driver(host):
    host.sh("rm -rf /usr/local/lib/steadygpu")
    gpu = _gpu(host)
    assert gpu["source"] == "procfs"
    assert len(gpu["devices"]) == 8
    assert gpu["devices"][4]["uuid"].startswith("GPU-")
    assert gpu["devices"][4]["numa_node"] == 1
    host.sh("simgpu unload")
    gpu = _gpu(host)
    assert gpu["driver"]["status"] == "absent"
    assert gpu["devices"] == []
