# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Every configuration of the three articles is explained, and what is real in them passes.

An entry of ``tests/data/articles/*.yml`` has ``what``, the ``rows`` of the reality map, the name of
the ``file``, its ``text``, the ``rules`` that must speak, and for a real one ``above``: the highest
severity that anything may have there.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from ansible_collections.steadygpu.host.plugins.module_utils.checks import inspection
from ansible_collections.steadygpu.host.plugins.module_utils.checks.host import HostView
from ansible_collections.steadygpu.host.plugins.module_utils.checks.model import Severity
from ansible_collections.steadygpu.host.plugins.module_utils.checks.readers import kinds
from ansible_collections.steadygpu.host.plugins.module_utils.checks.registry import all_rules

FOLDER = Path(__file__).resolve().parents[3] / "data" / "articles"
ENTRIES = [
    pytest.param(entry, id=f"{path.stem}-{entry['rows']}-{entry['what']}")
    for path in sorted(FOLDER.glob("*.yml"))
    for entry in yaml.safe_load(path.read_text(encoding="utf-8"))
]
RULES = all_rules()


def _findings(entry):
    kind = kinds.detect(entry["text"], entry["file"])
    assert kind, "the kind of file is not known"
    return inspection.inspect(entry["text"], entry["file"], HostView(), kind, {}.get)


@pytest.mark.parametrize("entry", ENTRIES)
def test_the_configuration_is_read_and_explained(entry):
    result = _findings(entry)
    assert not result.problems
    assert set(entry["rules"]) <= {finding.rule for finding in result.findings}
    assert entry["rules"] or "above" in entry, "neither explained nor said to be real"


@pytest.mark.parametrize("entry", [p for p in ENTRIES if "above" in p.values[0]])
def test_of_what_is_real_nothing_grave_is_said(entry):
    highest = Severity.named(entry["above"])
    assert [f for f in _findings(entry).findings if f.severity > highest] == []


@pytest.mark.parametrize("entry", [p for p in ENTRIES if p.values[0]["rules"]])
def test_one_of_the_rules_names_the_row(entry):
    rows = set(re.findall(r"\d+", entry["rows"]))
    named = {row for rule in entry["rules"] for row in re.findall(r"\d+", RULES[rule].row)}
    assert rows & named


@pytest.mark.parametrize("entry", [p for p in ENTRIES if p.values[0]["rules"]])
def test_each_explanation_says_what_to_write_instead(entry):
    for finding in _findings(entry).findings:
        if finding.rule in entry["rules"]:
            assert finding.fix
            assert finding.sources
            assert finding.at.line >= 1
