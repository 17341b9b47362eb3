# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Every rule finds its bad example, keeps quiet about the good one, and knows its versions."""

from __future__ import annotations

import re

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.checks.registry import all_rules
from ansible_collections.steadygpu.host.tests.unit.module_utils.checks import rule_examples

EXAMPLES = rule_examples.load()
FILES = [example for example in EXAMPLES if example.kind != "host"]
RULES = all_rules()
# A rule that holds for every version holds for the oldest engine we meet and for the newest.
OLDEST_AND_NEWEST = ("20.10.24", "29.7.2")


def _each(examples=tuple(EXAMPLES)):
    return pytest.mark.parametrize("example", examples, ids=[e.where for e in examples])


def _said(example, given, more=None):
    return {finding.rule for finding in rule_examples.findings(example, given, more)}


@_each()
def test_the_bad_input_is_found(example):
    for given in example.bad:
        assert example.rule in _said(example, given)


@_each()
def test_of_the_good_input_nothing_is_said(example):
    for given in example.good:
        assert example.rule not in _said(example, given)


@_each([e for e in FILES if e.rule in RULES and not RULES[e.rule].needs])
def test_a_rule_for_every_version_holds_for_old_and_new(example):
    for version in OLDEST_AND_NEWEST:
        for given in example.bad:
            assert example.rule in _said(example, given, {"docker": version, **example.assume})


@_each([e for e in FILES if e.rule in RULES and RULES[e.rule].needs])
def test_of_another_version_nothing_is_said(example):
    assert example.other_version, f"{example.rule} is for some versions: give other_version"
    more = example.other_version.get("assume") or {}
    own = example.other_version.get("bad")
    for given in [own] if own is not None else example.bad:
        assert example.rule not in _said(example, given, more)


@_each([e for e in EXAMPLES if e.kind == "host" and e.other_version])
def test_of_a_host_with_other_versions_nothing_is_said(example):
    for given in example.bad:
        assert example.rule not in _said(example, {**(given or {}), **example.other_version})


@_each()
def test_a_finding_says_where_and_what_to_do(example):
    for given in example.bad:
        for finding in rule_examples.findings(example, given):
            if finding.rule != example.rule:
                continue
            assert finding.seen.strip()
            assert finding.fix.strip()
            assert example.kind == "host" or finding.at.line >= 1
            lines = str(given).count("\n") + 1
            assert example.kind == "host" or example.files or finding.at.line <= lines


@pytest.mark.parametrize("name", RULES)
def test_a_rule_has_an_example_and_says_what_it_must(name):
    rule = RULES[name]
    assert name in {example.rule for example in EXAMPLES}, "give it one in tests/data/rules/"
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name)
    for text in (rule.title, rule.reason, rule.fix):
        assert text.strip() == text
        assert text
    assert not rule.title.endswith(".")
    assert all(source.strip() for source in rule.sources)
    for need in rule.needs:
        need.covers("1.2.3")  # raises for a comparison that cannot be read


def test_no_example_is_of_a_rule_that_is_not_there():
    assert {example.rule for example in EXAMPLES} - set(RULES) == set()
