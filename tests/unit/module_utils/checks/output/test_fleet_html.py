# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The page of a fleet: every host, every fault, and nothing that a browser would run."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.steadygpu.host.plugins.module_utils.checks.output.fleet_html import (
    HostChecks,
    page,
)


def finding(rule: str = "cdi-stale", severity: str = "error", **more: Any) -> dict[str, Any]:
    return {
        "rule": rule,
        "severity": severity,
        "file": "/etc/cdi/nvidia.yaml",
        "line": 7,
        "column": 1,
        "title": "the specification is older than the driver",
        "seen": "it names 535.161.07",
        "reason": "a container gets files that are gone",
        "fix": "make it again",
        "commands": ["nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml"],
        "assumed": [],
        "sources": [],
        **more,
    }


class Tags(HTMLParser):
    """The tags of a page, and whether each that is opened is closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.seen: list[str] = []
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.seen.append(tag)
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_hosts_faults_and_what_was_not_checked_are_all_there():
    text = page(
        [
            HostChecks("gpu1", [finding()], about="Docker 26.1.5, 8 GPUs"),
            HostChecks("gpu2", [finding(), finding("shm", "info")]),
            HostChecks("gpu3"),
            HostChecks("gpu4", reason="unreachable"),
            HostChecks("gpu5", unusable=[{"file": "/etc/cdi/x.yaml:3:1", "said": "not YAML"}]),
        ],
        "2026-12-01",
    )
    assert "Checks of 5 GPU hosts" in text
    assert "2 hosts with error findings" in text
    assert "1 host not checked" in text
    assert "gpu1, gpu2" in text, "one row for the fault, with both hosts"
    assert "nvidia-ctk cdi generate" in text
    assert "unreachable" in text
    assert "not YAML" in text
    assert text.index("gpu4") < text.index("gpu2"), "what was not seen comes first"


@given(st.text(), st.text())
def test_no_text_of_a_host_becomes_markup(first, second):
    hostile = finding(title=first, seen=second, commands=[first], file=second, rule=first)
    tags = Tags(page([HostChecks(first, [hostile], about=second)], second))
    assert tags.open == []
    assert "script" not in tags.seen


def test_a_script_in_a_finding_is_text():
    text = page([HostChecks("h", [finding(seen="<script>alert(1)</script>")])], "")
    assert "<script" not in text
    assert "&lt;script&gt;" in text
