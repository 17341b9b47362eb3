# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The README says how to undo each change; this does it."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize(
    ("module", "arguments", "trace"),
    [
        (
            "systemd_slice",
            {"name": "ai-workload.slice"},
            "/etc/systemd/system/ai-workload.slice",
        ),
        ("cdi_spec", {}, "/run/cdi/nvidia.yaml"),
        ("docker_daemon", {}, "/etc/docker/daemon.json"),
        ("agent_install", {}, "/usr/local/lib/steadygpu"),
    ],
)
def test_absent_takes_back_what_was_ours(host, module, arguments, trace):
    host.sh("test -e " + trace)
    arguments = dict(arguments, state="absent")
    first = host.module(module, arguments)
    assert first["changed"], first
    host.sh("test ! -e " + trace)
    again = host.module(module, arguments)
    assert not again["changed"], again
    assert host.sh("systemctl is-active docker") == "active"


def test_a_slice_in_use_is_not_taken_away(host):
    host.sh("systemd-run --slice ai-workload.slice --unit job sleep 100000")
    result = host.module("systemd_slice", {"name": "ai-workload.slice", "state": "absent"})
    assert result["failed"]
    assert "job.service" in result["msg"] or "sleep" in result["msg"]
    assert host.sh("systemctl is-active job") == "active"


def test_a_limit_below_current_use_is_refused(host):
    host.sh(
        "systemd-run --slice ai-workload.slice --unit job "
        "python3 -c 'import time; held = bytearray(100 << 20); time.sleep(100000)'; sleep 5"
    )
    result = host.module(
        "systemd_slice", {"name": "ai-workload.slice", "properties": {"MemoryMax": "32M"}}
    )
    assert result["failed"]
    assert "below_current_use" in result["msg"]
    assert host.sh("systemctl is-active job") == "active"
