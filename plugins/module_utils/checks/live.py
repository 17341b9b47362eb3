# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One host, judged whole: its facts and the files that lie on it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from . import facts_host, inspection
from .host import HostView
from .model import Finding, Position, Problem, Severity
from .readers import kinds
from .registry import all_rules


@dataclass(frozen=True)
class Verdict:
    """What was found on a host, and what could not be judged. ``host`` is what is known of it."""

    findings: tuple[Finding, ...]
    unusable: tuple[Problem, ...]
    host: HostView


def judge_host(
    gpu_host: Mapping[str, Any],
    evidence: Mapping[str, Any] | None = None,
    name: str = "",
    more: Mapping[str, str] | None = None,
) -> Verdict:
    """Judge ``gpu_host`` (docs/facts.md) with ``evidence`` (evidence/gather.py) and its files.

    ``more`` are further files of that host, path to text, such as its Compose projects. A file
    that refers to another one (``extends``, ``imports``) finds it among all these.
    """
    seen = dict(evidence or {})
    texts = {**seen.get("texts", {}), **(more or {})}
    left_out = [Problem(Position(path), why) for path, why in seen.get("left_out", {}).items()]
    kind_of = {path: kinds.detect(text, path) for path, text in texts.items()}
    readings = {
        path: inspection.read(text, path, kind_of[path], texts.get) for path, text in texts.items()
    }
    describing = [
        document
        for path, reading in readings.items()
        if kind_of[path] in inspection.DESCRIBE_THE_HOST
        for document in reading.documents
    ]
    host = inspection.sharpen(facts_host.from_facts(gpu_host, seen, name), describing)
    told = [
        inspection.conclude(reading, path, kind_of[path], host)
        for path, reading in readings.items()
    ]
    of_files = [finding for one in told for finding in one.findings]
    found = {*_not_told(inspection.inspect_host(host), of_files), *of_files}
    return Verdict(
        findings=tuple(sorted(found, key=lambda f: (-f.severity, f.at, f.rule))),
        unusable=(*left_out, *(problem for one in told for problem in one.problems)),
        host=host,
    )


def _not_told(of_host: Iterable[Finding], of_files: Iterable[Finding]) -> Iterator[Finding]:
    """Findings on the host that none on a file of it says at least as gravely."""
    told: dict[str, Severity] = {}
    for finding in of_files:
        told[finding.rule] = max(finding.severity, told.get(finding.rule, finding.severity))
    rules = all_rules()
    for finding in of_host:
        by = [told[name] for name in rules[finding.rule].told_by if name in told]
        if not by or max(by) < finding.severity:
            yield finding
