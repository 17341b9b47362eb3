# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A report as JUnit XML, which CI systems show as tests. Pure.

Each finding is a test of its file: a failure when it makes the run fail, else passed with its
text as output. A file of which nothing is said is one passed test, one that could not be judged
an error.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...secrets import mask
from ..model import Finding
from .report import Report
from .text import finding_lines

# What XML 1.0 has no way to write (https://www.w3.org/TR/xml/#charsets).
_IMPOSSIBLE = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def text(report: Report) -> str:
    """The report as one XML document that ends with a newline."""
    cases = list(_cases(report))
    failures, errors = len(report.failing), len(report.problems)
    counts = f'tests="{len(cases)}" failures="{failures}" errors="{errors}"'
    return "\n".join(
        [
            '<?xml version="1.0" encoding="UTF-8"?>',
            f'<testsuites name="steadygpu check" {counts}>',
            f'  <testsuite name="steadygpu check" {counts} skipped="0">',
            *cases,
            "  </testsuite>",
            "</testsuites>",
            "",
        ]
    )


def _cases(report: Report) -> Iterator[str]:
    failing = set(report.failing)
    for finding in report.findings:
        yield _case(
            finding.at.file,
            f"{finding.rule} at line {finding.at.line}" if finding.at.line else finding.rule,
            _failure(finding) if finding in failing else _output(finding),
        )
    for problem in report.problems:
        said = _escaped(mask.message(problem.said))
        error = f'<error type="unusable" message="{said}">{_escaped(str(problem.at))}</error>'
        yield _case(problem.at.file, "can be judged", error)
    spoken_of = {f.at.file for f in report.findings} | {p.at.file for p in report.problems}
    for file in report.files:
        if file not in spoken_of:
            yield _case(file, "nothing found", "")


def _case(file: str, name: str, inside: str) -> str:
    where = f'classname="{_escaped(file)}" file="{_escaped(file)}"'
    head = f'    <testcase {where} name="{_escaped(name)}"'
    return f"{head}>{inside}</testcase>" if inside else f"{head}/>"


def _failure(finding: Finding) -> str:
    return (
        f'<failure type="{finding.severity.label}" message="{_escaped(finding.title)}">'
        f"{_escaped(_said(finding))}</failure>"
    )


def _output(finding: Finding) -> str:
    return f"<system-out>{_escaped(_said(finding))}</system-out>"


def _said(finding: Finding) -> str:
    return "\n".join(finding_lines(finding))


def _escaped(said: str) -> str:
    said = _IMPOSSIBLE.sub("?", mask.message(said))
    for character, entity in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ('"', "&quot;")):
        said = said.replace(character, entity)
    return said
