# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A report as SARIF 2.1.0, which code forges show beside the lines. Pure.

Source: OASIS, Static Analysis Results Interchange Format 2.1.0.
"""

from __future__ import annotations

import json
import posixpath
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from ...secrets import mask
from ..baseline import fingerprints
from ..model import Finding, Problem, Rule, Severity
from .report import Report

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS = {
    Severity.FATAL: "error",
    Severity.ERROR: "error",
    Severity.WARNING: "warning",
    Severity.INFO: "note",
}
# How forges rank a result that SARIF's three levels cannot tell apart.
_RANKS = {Severity.FATAL: 95.0, Severity.ERROR: 75.0, Severity.WARNING: 50.0, Severity.INFO: 10.0}


def text(report: Report, rules: Mapping[str, Rule], home: str = "") -> str:
    """The report as a SARIF log with one run, ending with a newline.

    ``rules`` describes the rules that findings name; ``home`` is the address below which each
    rule has its page, ``ID.md``.
    """
    named = sorted({finding.rule for finding in report.findings})
    index = {name: place for place, name in enumerate(named)}
    marks = fingerprints(report.findings)
    driver: dict[str, Any] = {
        "name": "steadygpu",
        "rules": [_rule(rules[name], home) if name in rules else {"id": name} for name in named],
    }
    if report.version[:1].isdigit():
        driver["semanticVersion"] = report.version
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "invocations": [
            {
                "executionSuccessful": not report.problems,
                "exitCode": report.status,
                "toolExecutionNotifications": [_notice(one) for one in report.problems],
            }
        ],
        "results": [
            _result(finding, index[finding.rule], mark)
            for finding, mark in zip(report.findings, marks)
        ],
    }
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2) + "\n"


def _rule(rule: Rule, home: str) -> dict[str, Any]:
    described: dict[str, Any] = {
        "id": rule.id,
        "shortDescription": {"text": rule.title},
        "fullDescription": {"text": rule.reason},
        "help": {"text": f"{rule.reason} Fix: {rule.fix}"},
        "defaultConfiguration": {"level": _LEVELS[rule.severity]},
        "properties": {"severity": rule.severity.label, "sources": list(rule.sources)},
    }
    if home:
        described["helpUri"] = f"{home}/{rule.id}.md"
    return described


def _result(finding: Finding, index: int, mark: str) -> dict[str, Any]:
    said = [f"{finding.title}: {finding.seen}", f"Fix: {finding.fix}", *finding.commands]
    if finding.assumed:
        said.append("Taken for granted: " + "; ".join(finding.assumed))
    return {
        "ruleId": finding.rule,
        "ruleIndex": index,
        "level": _LEVELS[finding.severity],
        "rank": _RANKS[finding.severity],
        "message": {"text": mask.message("\n".join(said))},
        "locations": [_place(finding.at.file, finding.at.line, finding.at.column)],
        "partialFingerprints": {"steadygpu/v1": mark},
        "properties": {"severity": finding.severity.label},
    }


def _notice(problem: Problem) -> dict[str, Any]:
    return {
        "level": "error",
        "message": {"text": mask.message(problem.said)},
        "locations": [_place(problem.at.file, problem.at.line, problem.at.column)],
    }


def _place(file: str, line: int, column: int) -> dict[str, Any]:
    # Forges look for ./x.yml in vain.
    path = posixpath.normpath(file.replace("\\", "/"))
    uri = ("file://" if path.startswith("/") else "") + quote(path)
    place: dict[str, Any] = {"artifactLocation": {"uri": uri}}
    if line:
        place["region"] = {"startLine": line, "startColumn": max(column, 1)}
    return {"physicalLocation": place}
