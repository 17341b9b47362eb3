# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The list of all rules: a file in ``rules/`` or ``symptoms/`` decorates its functions."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType

from .model import Judge, Needs, Rule, Severity

_RULES: dict[str, Rule] = {}


class RuleError(ValueError):
    """A rule is declared wrongly: a mistake of ours, found by every test."""


def rule(
    rule_id: str,
    title: str,
    severity: Severity,
    reads: type,
    reason: str,
    fix: str,
    sources: Sequence[str],
    needs: Sequence[Needs] = (),
    unknown: Severity | None = None,
    row: str = "",
    cases: Sequence[str] = (),
    told_by: Sequence[str] = (),
) -> Callable[[Judge], Judge]:
    """Declare the decorated function as the judge of a rule; see :class:`Rule` for the words."""

    def declare(judge: Judge) -> Judge:
        if rule_id in _RULES:
            raise RuleError(f"two rules are called {rule_id}")
        if not sources:
            raise RuleError(f"rule {rule_id} names no source")
        _RULES[rule_id] = Rule(
            id=rule_id,
            title=title,
            severity=severity,
            reads=reads,
            reason=reason,
            fix=fix,
            sources=tuple(sources),
            judge=judge,
            needs=tuple(needs),
            unknown=unknown,
            row=row,
            cases=tuple(cases),
            told_by=tuple(told_by),
        )
        return judge

    return declare


@lru_cache(maxsize=1)
def all_rules() -> Mapping[str, Rule]:
    """Every rule by its id, sorted. Imports the files of ``rules`` when first asked."""
    from . import rules

    for module in sorted(pkgutil.iter_modules(rules.__path__), key=lambda found: found.name):
        importlib.import_module(f"{rules.__name__}.{module.name}")
    return MappingProxyType(dict(sorted(_RULES.items())))
