# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rules over documents: the engine. Pure: typed documents and a host in, findings out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from .host import HostView
from .model import Finding, Hit, Rule
from .registry import all_rules


def judge(
    documents: Iterable[Any], host: HostView, rules: Mapping[str, Rule] | None = None
) -> list[Finding]:
    """What all rules say of all documents and of the host, the gravest first, then by place.

    ``host`` is itself a document: rules that read :class:`HostView` judge it when it is live.
    """
    everything = [*documents, *([host] if host.live else [])]
    if rules is None:
        return judge_documents(everything, host)
    return _judged(everything, host, lambda kind: _reading(kind, rules))


def judge_documents(documents: Iterable[Any], host: HostView) -> list[Finding]:
    """The same of documents only: rules that read the host find nothing to judge."""
    return _judged(documents, host, _all_reading)


def _judged(
    documents: Iterable[Any], host: HostView, reading: Callable[[type], Iterable[Rule]]
) -> list[Finding]:
    found = {
        finding
        for document in documents
        for rule in reading(type(document))
        for finding in _apply(rule, document, host)
    }
    return sorted(found, key=lambda f: (-f.severity, f.at, f.rule))


@lru_cache(maxsize=128)
def _all_reading(kind: type) -> tuple[Rule, ...]:
    return _reading(kind, all_rules())


def _reading(kind: type, rules: Mapping[str, Rule]) -> tuple[Rule, ...]:
    return tuple(rule for rule in rules.values() if issubclass(kind, rule.reads))


def _apply(rule: Rule, document: Any, host: HostView) -> Iterator[Finding]:
    unknown = []
    for need in rule.needs:
        version = host.versions.get(need.component)
        if version is None:
            unknown.append(str(need))
        elif not need.covers(version):
            return
    for hit in rule.judge(document, host):
        yield _finding(rule, hit, unknown)


def _finding(rule: Rule, hit: Hit, unknown: Sequence[str]) -> Finding:
    severity = hit.severity or rule.severity
    if unknown and rule.unknown is not None:
        severity = min(severity, rule.unknown)
    return Finding(
        rule=rule.id,
        title=rule.title,
        severity=severity,
        at=hit.at,
        seen=hit.seen,
        reason=rule.reason,
        fix=hit.fix or rule.fix,
        commands=hit.commands,
        assumed=(*unknown, *hit.assumed),
        sources=rule.sources,
        row=rule.row,
    )
