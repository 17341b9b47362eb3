# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The field cases: every one of them yields its rule, its cause, or the reason why not."""

from __future__ import annotations

import pathlib

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.checks import (
    explain,
    inspection,
)
from ansible_collections.steadygpu.host.plugins.module_utils.checks.host import HostView
from ansible_collections.steadygpu.host.tests.unit.module_utils.checks import (
    accuracy,
    rule_examples,
)

CASES, FILES = accuracy.load()
# The likeliest causes are what people read.
RANK = 4
# Inputs that say nothing in words: their own rules settle them.
SECOND = frozenset(("RT-001", "RT-015", "RT-027", "RC-002"))
# Without a host these are no fault: MIG, and the toolkit's mode.
NEEDS_A_HOST = frozenset(("MG-012", "TK-037"))
PAGE = pathlib.Path(__file__).parents[4] / "docs" / "accuracy.md"


def _each(entries, key=None):
    chosen = [entry for entry in entries if key is None or key in entry]
    return pytest.mark.parametrize("case", chosen, ids=[entry["id"] for entry in chosen])


def test_there_are_all_of_them_and_each_says_how_it_is_settled():
    assert (len(CASES), len(FILES)) == (149, 24)
    ways = {"check", "explain", "versions", "facts", "normal"}
    unsettled = [case["id"] for case in CASES if not ways & set(case) and not case.get("reason")]
    assert unsettled == []


@_each(CASES, "check")
def test_the_input_yields_its_rule_and_nothing_else_that_is_loud(case):
    found = accuracy.findings(case)
    assert set(case["check"]["rules"]) <= {finding.rule for finding in found}
    allowed = {*case["check"]["rules"], *case["check"].get("also", ())}
    assert accuracy.loud(found) <= allowed


@_each([case for case in CASES if case["id"] not in NEEDS_A_HOST], "check")
def test_the_rule_is_found_for_an_unknown_host_as_well(case):
    found = {finding.rule for finding in accuracy.findings(case, known_host=False)}
    # Whether two services on GPU 0 are a fault depends on how many GPUs there are.
    assert found & {*case["check"]["rules"], "count-means-index-0"}


@_each(CASES, "explain")
def test_the_symptom_leads_to_its_cause(case):
    assert accuracy.rank(case, with_input=False) in range(RANK)


@_each(CASES, "explain")
def test_symptom_and_input_together_put_the_cause_first(case):
    most = RANK if case["id"] in SECOND else 1
    assert accuracy.rank(case, with_input=True) in range(most)


@_each(CASES, "versions")
def test_the_versions_in_the_text_yield_the_rule(case):
    assert set(case["versions"]) <= accuracy.versions_found(case)


@_each(CASES, "facts")
def test_facts_of_a_host_yield_the_rule(case):
    found = inspection.inspect_host(rule_examples.host_with(case["facts"]["set"]))
    assert set(case["facts"]["rules"]) <= {finding.rule for finding in found}


@_each(CASES, "normal")
def test_what_is_no_fault_is_called_normal(case):
    explanations = explain.explain(case["symptom"], HostView())
    assert [one.symptom.id for one in explanations] == [case["normal"]]
    assert explanations[0].symptom.normal


def test_hidden_gpus_are_first_of_all_no_fault():
    (dr018,) = [case for case in CASES if case["id"] == "DR-018"]
    first = explain.explain(dr018["symptom"], HostView())[0].causes[0]
    assert first.cause.id == "scheduler-hides-gpus"
    hidden = {
        "gpu.driver.hidden": ["/dev/nvidia0"],
        "gpu.driver.reason": "GPUs are hidden from this process",
        "gpu.devices": [],
    }
    assert accuracy.loud(inspection.inspect_host(rule_examples.host_with(hidden))) == set()


def test_a_host_without_nvswitches_needs_no_fabric_manager():
    absent = {"gpu.nvswitches": None, "gpu.fabric_manager.status": "stopped"}
    assert accuracy.loud(inspection.inspect_host(rule_examples.host_with(absent))) == set()


@_each(FILES)
def test_files_of_projects_yield_what_is_expected_of_them(case):
    found = accuracy.findings(case)
    expected = {tuple(pair) for pair in case["expected"]}
    assert expected <= {(one.severity.label, one.rule) for one in found}
    assert accuracy.loud(found) == {rule for severity, rule in expected if severity != "info"}


def test_the_page_says_what_is_so():
    assert PAGE.read_text(encoding="utf-8") == accuracy.table(), (
        "write docs/accuracy.md anew: see accuracy.py"
    )
