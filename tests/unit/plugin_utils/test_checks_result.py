# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a task shows of the checks of a host, and when it fails."""

from __future__ import annotations

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.checks.host import Gpu, HostView
from ansible_collections.steadygpu.host.plugins.module_utils.checks.live import Verdict
from ansible_collections.steadygpu.host.plugins.module_utils.checks.model import (
    Finding,
    Position,
    Problem,
    Severity,
)
from ansible_collections.steadygpu.host.plugins.plugin_utils.checks_result import build


def finding(rule: str, severity: Severity) -> Finding:
    return Finding(
        rule=rule,
        title=f"the title of {rule}",
        severity=severity,
        at=Position("/etc/docker/daemon.json", 3, 5),
        seen="what stands there",
        reason="why",
        fix="what to do",
        commands=("systemctl reload docker",),
    )


def verdict(*findings: Finding) -> Verdict:
    host = HostView(live=True, versions={"docker": "26.1.5"}, gpus=(Gpu(0),))
    return Verdict(findings, (Problem(Position("/etc/x.yaml", 2, 1), "broken"),), host)


def test_everything_is_counted_and_the_table_shows_what_is_above_info():
    found = build(
        verdict(finding("grave", Severity.ERROR), finding("quiet", Severity.INFO)), accept={}
    )
    assert "failed" not in found
    assert found["counts"] == {"fatal": 0, "error": 1, "warning": 0, "info": 1}
    assert [f["rule"] for f in found["findings"]] == ["grave", "quiet"]
    table = "\n".join(found["table"])
    assert "ERROR   grave: the title of grave" in table
    assert "/etc/docker/daemon.json:3:5" in table
    assert "systemctl reload docker" in table
    assert "quiet" not in table
    assert found["unusable"] == [{"file": "/etc/x.yaml:2:1", "said": "broken"}]
    assert found["about"] == "Docker 26.1.5, no NVIDIA driver, 1 GPU"


@pytest.mark.parametrize(
    ("fail_on", "fails"),
    [("never", False), ("fatal", False), ("error", True), ("warning", True), ("info", True)],
)
def test_it_fails_from_the_severity_that_was_asked_for(fail_on, fails):
    found = build(verdict(finding("grave", Severity.ERROR)), {}, fail_on)
    assert found.get("failed", False) is fails
    if fails:
        assert "1 finding of severity" in found["msg"]
        assert "grave" in found["msg"]


def test_an_accepted_rule_is_left_out_and_counted():
    found = build(
        verdict(finding("grave", Severity.ERROR)), {"grave": "it is meant (OPS-1)"}, "error"
    )
    assert "failed" not in found
    assert (found["findings"], found["accepted"]) == ([], 1)


@pytest.mark.parametrize("reason", [None, "", "  "])
def test_accepting_without_a_reason_is_refused(reason):
    found = build(verdict(finding("grave", Severity.ERROR)), {"grave": reason})
    assert found["failed"] is True
    assert "no reason for grave" in found["msg"]
