# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A report as JSON, for programs. Pure."""

from __future__ import annotations

import json
from typing import Any

from ...secrets import mask
from ..model import Problem
from .report import Report

SCHEMA = 1


def as_dict(report: Report) -> dict[str, Any]:
    """The report as JSON types; docs/ci/README.md documents them."""
    return {
        "schema": SCHEMA,
        "version": report.version,
        "status": report.status,
        "fail_on": report.fail_on.label,
        "host": report.host,
        "counts": report.counts(),
        "ignored": report.ignored,
        "in_baseline": report.known,
        "files": list(report.files),
        "findings": [masked(finding.as_dict()) for finding in report.findings],
        "problems": [_problem(problem) for problem in report.problems],
        "left_out": [_problem(note) for note in report.notes],
    }


def text(report: Report) -> str:
    """The report as a JSON document that ends with a newline."""
    return json.dumps(as_dict(report), indent=2) + "\n"


def masked(value: Any) -> Any:
    """The same value with every text in it free of what is secret by its shape."""
    if isinstance(value, str):
        return mask.message(value)
    if isinstance(value, dict):
        return {key: masked(inside) for key, inside in value.items()}
    return [masked(inside) for inside in value] if isinstance(value, list) else value


def _problem(problem: Problem) -> dict[str, Any]:
    at = problem.at
    return {
        "file": at.file,
        "line": at.line,
        "column": at.column,
        "said": mask.message(problem.said),
    }
