# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Settings drift, are found and repaired; an undone change takes its live values back."""

from __future__ import annotations

import json

import pytest

# Long, and not measured on a quiet machine yet.
pytestmark = pytest.mark.sweep

BALANCING = "/proc/sys/kernel/numa_balancing"
WANTED = {
    "numa_enabled": True,
    "numa_balancing": False,
    "numa_hugepages": [{"node": "1", "size": "2M", "count": 16}],
}


def keep(host, **changed):
    """The role ``numa``, with a setting or two changed."""
    return host.play("--tags", "numa,verify_settings", "-e", json.dumps({**WANTED, **changed}))


def test_drift_by_hand_is_found_and_the_next_run_repairs_it(host):
    first = keep(host)
    assert first.rc == 0, first.output
    told = json.loads(host.sh("steadygpu settings --json"))
    assert {one["verdict"] for one in told} <= {"effective", "inert", "unsupported", "pending"}
    assert all(one["reason"] for one in told if one["verdict"] != "effective")
    (kept,) = (one for one in told if one["name"] == "kernel.numa_balancing")
    assert (kept["owner"], kept["wanted"], kept["effective"]) == ("numa", "0", "0")

    host.sh(f"echo 1 > {BALANCING}")
    shown = host.sh("steadygpu settings; echo status $?")
    assert "kernel.numa_balancing: /proc/sys/kernel/numa_balancing holds another value" in shown
    assert shown.endswith("status 1")
    proof = host.play("--tags", "verify")
    assert proof.rc != 0
    assert "kernel.numa_balancing (role numa) is 1, wanted 0" in proof.output

    repaired = keep(host)
    assert repaired.rc == 0, repaired.output
    assert "set kernel.numa_balancing to 0 (was 1)" in repaired.output
    assert host.sh(f"cat {BALANCING}") == "0"
    host.sh("steadygpu settings")


def test_an_undone_change_takes_its_live_values_back(host):
    first = keep(host)
    assert first.rc == 0, first.output
    pages = "/sys/devices/system/node/node1/hugepages/hugepages-2048kB/nr_hugepages"
    before = host.sh(f"cat {pages} {BALANCING}")
    before_change = host.sh("steadygpu checkpoint take")
    more = keep(host, numa_balancing=True, numa_hugepages=[])
    assert more.rc == 0, more.output
    assert host.sh(f"cat {pages} {BALANCING}") != before
    host.sh(f"steadygpu checkpoint restore {before_change}")
    assert host.sh(f"cat {pages} {BALANCING}") == before
    host.sh("steadygpu settings")
