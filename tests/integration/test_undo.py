# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The README says how to undo each change; this does it. And what is in use is not undone."""

from __future__ import annotations


def test_absent_takes_back_what_was_ours(host):
    for module, arguments, trace in (
        ("systemd_slice", {"name": "ai-workload.slice"}, "/etc/systemd/system/ai-workload.slice"),
        ("cdi_spec", {}, "/run/cdi/nvidia.yaml"),
        ("docker_daemon", {}, "/etc/docker/daemon.json"),
        ("agent_install", {}, "/usr/local/lib/steadygpu"),
    ):
        host.sh("test -e " + trace)
        arguments["state"] = "absent"
        assert host.module(module, arguments)["changed"]
        host.sh("test ! -e " + trace)
        assert not host.module(module, arguments)["changed"]
    assert host.sh("docker info --format '{{.LiveRestoreEnabled}}'") == "false"


def test_a_slice_in_use_is_neither_taken_away_nor_squeezed(host):
    host.sh(
        "systemd-run --slice ai-workload.slice --unit job python3 -c '"
        'import time; held = bytearray(100 << 20); open("/run/held", "w"); time.sleep(100000)'
        "'; until test -e /run/held; do sleep 0.2; done"
    )
    absent = host.module("systemd_slice", {"name": "ai-workload.slice", "state": "absent"})
    assert absent["failed"]
    assert "job.service" in absent["msg"]
    less = {"name": "ai-workload.slice", "properties": {"MemoryMax": "32M"}}
    squeezed = host.module("systemd_slice", less)
    assert squeezed["failed"]
    assert "below_current_use" in squeezed["msg"]
    assert host.sh("systemctl is-active job") == "active"
