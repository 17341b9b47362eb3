# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""More cases from public threads, gathered after the rules and tables were first written.

``tests/data/further_cases.json`` has facts only. A case names the rule of its input (``check``),
the cause that a ticket with message and input leads to first (``explain``), the rule of the
versions in it (``versions``); or it is ``clean``: nothing loud may be said of it.
"""

from __future__ import annotations

import json
import pathlib

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.checks import explain, mentions
from ansible_collections.steadygpu.host.plugins.module_utils.checks.host import HostView
from ansible_collections.steadygpu.host.plugins.module_utils.checks.judge import judge
from ansible_collections.steadygpu.host.tests.unit.module_utils.checks import accuracy

DATA = pathlib.Path(__file__).parents[3] / "data" / "further_cases.json"
# Inputs that no file has: what somebody says of a host.
WORDS = ("versions", "host_facts")
CASES = json.loads(DATA.read_text(encoding="utf-8"))["cases"]


def _each(key):
    chosen = [case for case in CASES if key in case]
    return pytest.mark.parametrize("case", chosen, ids=[case["id"] for case in chosen])


def _ticket(case):
    text = f"{case['symptom']}\n{case['input']}"
    return explain.explain(text, mentions.view(mentions.find(text, "ticket"), HostView()))


def test_each_says_how_it_is_settled_and_where_it_was_seen():
    assert len({case["id"] for case in CASES}) == len(CASES)
    for case in CASES:
        assert case["source"], case["id"]
        assert {"check", "explain", "versions", "clean"} & set(case), case["id"]


@_each("check")
def test_the_input_yields_its_rule(case):
    assert set(case["check"]["rules"]) <= {finding.rule for finding in accuracy.findings(case)}


@_each("explain")
def test_the_ticket_leads_to_its_cause_first(case):
    first = [found.causes[0].cause.id for found in _ticket(case) if found.causes]
    assert set(case["explain"]) & set(first)


@_each("versions")
def test_the_versions_in_it_yield_the_rule(case):
    assert set(case["versions"]) <= accuracy.versions_found(case)


@_each("clean")
def test_what_works_is_left_in_peace(case):
    if case["kind"] in WORDS:
        host = mentions.view(mentions.find(case["input"], case["id"]), HostView())
        assert accuracy.loud(judge([host], host)) == set()
    elif case["input"]:
        named = {**case, "check": {"file": case.get("file", case["id"])}}
        assert accuracy.loud(accuracy.findings(named)) == set()
    assert [found.symptom.id for found in _ticket(case) if not found.symptom.normal] == []


@_each("normal")
def test_what_looks_wrong_and_is_not_is_called_normal(case):
    assert case["normal"] in {found.symptom.id for found in _ticket(case)}
