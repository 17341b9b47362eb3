# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a check is made of: places, severities, rules, hits and findings. Pure."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from ..versions import parse
from .costs import costs


class Severity(enum.IntEnum):
    """How bad it is; comparable. ``label`` is the word users read and write."""

    INFO = 10
    WARNING = 20
    ERROR = 30
    FATAL = 40

    @property
    def label(self) -> str:
        """The lower-case word: ``info``, ``warning``, ``error``, ``fatal``."""
        return self.name.lower()

    @classmethod
    def named(cls, word: str) -> Severity:
        """The severity of a word; raises ValueError naming the words there are."""
        try:
            return cls[word.strip().upper()]
        except KeyError:
            known = ", ".join(severity.label for severity in cls)
            raise ValueError(f"severity {word!r}; wanted is one of {known}") from None


@dataclass(frozen=True, order=True)
class Position:
    """A place in an input. Line and column count from 1; 0 means the input as a whole."""

    file: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        place = f":{self.line}:{self.column}" if self.line else ""
        return self.file + place


@dataclass(frozen=True)
class Given:
    """A value somebody wrote: its text, its place, and how it is spelled there.

    ``spelled`` is the flag or key as written, ``--memory``, ``-m`` or ``mem_limit``, so that a
    message can speak the user's own words.
    """

    value: str
    at: Position
    spelled: str = ""


@dataclass(frozen=True)
class Needs:
    """A range of versions of one component for which a rule holds.

    ``component`` is a key of ``HostView.versions`` (``docker``, ``docker_cli``, ``compose``,
    ``containerd``, ``runc``, ``toolkit``, ``driver``, ``kernel``, ``systemd``, ``cgroup``, …).
    ``wanted`` is a comma-separated list of comparisons that all hold: ``>=26.1,<27.1.2``; the
    operators are ``>=``, ``>``, ``<=``, ``<``, ``==``.
    """

    component: str
    wanted: str

    def covers(self, version: str) -> bool:
        """Is ``version`` within the range? Only the leading numbers of a version count."""
        return all(_compare(version, part.strip()) for part in self.wanted.split(","))

    def __str__(self) -> str:
        return f"{self.component} {self.wanted}"


def _compare(version: str, comparison: str) -> bool:
    operator = comparison[:2] if comparison[1:2] == "=" else comparison[:1]
    have, want = parse(version), parse(comparison[len(operator) :])
    width = max(len(have), len(want))
    left, right = have + (0,) * (width - len(have)), want + (0,) * (width - len(want))
    return {
        ">=": left >= right,
        ">": left > right,
        "<=": left <= right,
        "<": left < right,
        "==": left[: len(want)] == want,
    }[operator]


@dataclass(frozen=True)
class Hit:
    """What a rule's function yields: one place where it holds.

    ``seen`` is one sentence of what is there, in the words of the input, never with the value of
    a secret. ``fix`` replaces the rule's general fix with one that has the input's own values.
    ``commands`` are lines a person can paste as they stand. ``severity`` replaces the rule's own;
    ``assumed`` says what had to be taken for granted because the host is not known.
    """

    at: Position
    seen: str
    fix: str = ""
    commands: tuple[str, ...] = ()
    severity: Severity | None = None
    assumed: tuple[str, ...] = ()


Judge = Callable[[Any, Any], Iterable[Hit]]


@dataclass(frozen=True)
class Rule:
    """One thing that is known to break.

    ``id`` is the kebab-case name users write to ignore it. ``reads`` is the type of document it
    judges. ``needs`` are the versions it holds for (empty: all); where a version is not known the
    rule runs, says what it assumed, and has the severity ``unknown`` (None: its own).
    ``sources`` prove it. ``row`` is set when
    the rule answers what was invented or is out of date (the rows of the notes it was settled in);
    it is then in docs/invented.md. ``cases`` are field cases it settles. ``told_by`` are rules on
    files that say the same of a host, with a line: where one of them speaks this one is silent.
    """

    id: str
    title: str
    severity: Severity
    reads: type
    reason: str
    fix: str
    sources: tuple[str, ...]
    judge: Judge
    needs: tuple[Needs, ...] = ()
    unknown: Severity | None = None
    row: str = ""
    cases: tuple[str, ...] = ()
    told_by: tuple[str, ...] = ()


@dataclass(frozen=True)
class Finding:
    """What one rule says of one place; everything a face needs to print it."""

    rule: str
    title: str
    severity: Severity
    at: Position
    seen: str
    reason: str
    fix: str
    commands: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    row: str = ""

    def as_dict(self) -> dict[str, Any]:
        """The finding as JSON types: the schema that docs/checks.md documents."""
        return {
            "rule": self.rule,
            "severity": self.severity.label,
            "file": self.at.file,
            "line": self.at.line,
            "column": self.at.column,
            "title": self.title,
            "seen": self.seen,
            "reason": self.reason,
            "fix": self.fix,
            "commands": list(self.commands),
            "costs": list(costs(self.commands)),
            "assumed": list(self.assumed),
            "sources": list(self.sources),
        }


@dataclass(frozen=True)
class Problem:
    """An input that could not be judged, or not wholly: it is said, never swallowed."""

    at: Position
    said: str


@dataclass(frozen=True)
class Reading:
    """What a reader made of one text: typed documents, what could not be read, and hits.

    ``documents`` are instances of the types that rules read. ``problems`` make an input unusable
    in part or whole (broken YAML): they are not findings, and the exit status says so.
    """

    documents: tuple[Any, ...] = ()
    problems: tuple[Problem, ...] = ()
