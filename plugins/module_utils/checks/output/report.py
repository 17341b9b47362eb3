# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What one run of the checks found, as every output format gets it. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ..model import Finding, Problem, Severity

# Exit statuses of `steadygpu check`.
CLEAN = 0
FOUND = 1
UNUSABLE = 2

# More findings than a person reads.
_LONG = 100


@dataclass(frozen=True)
class Report:
    """Findings and problems of one run.

    ``files`` are the names that were judged, in order; ``notes`` are files that were left out
    and do not count. ``ignored`` counts findings that a comment switched off, ``known`` those
    that the baseline has. ``host`` says in words what the files were judged for. ``lines`` has
    the lines of the files that findings are in, for formats that show them. ``show`` is the least
    severity that the text for people shows; None: all, in a long report those above info.
    """

    findings: tuple[Finding, ...] = ()
    problems: tuple[Problem, ...] = ()
    notes: tuple[Problem, ...] = ()
    files: tuple[str, ...] = ()
    ignored: int = 0
    known: int = 0
    fail_on: Severity = Severity.WARNING
    show: Severity | None = None
    host: str = ""
    version: str = ""
    kinds: Mapping[str, str] = field(default_factory=dict)
    lines: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @property
    def failing(self) -> tuple[Finding, ...]:
        """The findings that make the run fail."""
        return tuple(f for f in self.findings if f.severity >= self.fail_on)

    @property
    def status(self) -> int:
        """The exit status: 2 when something could not be judged, 1 for findings, else 0."""
        if self.problems:
            return UNUSABLE
        return FOUND if self.failing else CLEAN

    @property
    def shown(self) -> tuple[Finding, ...]:
        """The findings that a person is shown."""
        long = len(self.findings) > _LONG
        least = self.show or (Severity.WARNING if long else Severity.INFO)
        return tuple(f for f in self.findings if f.severity >= least)

    def counts(self) -> dict[str, int]:
        """How many findings there are of each severity, the gravest first."""
        seen = Counter(finding.severity for finding in self.findings)
        return {level.label: seen[level] for level in sorted(Severity, reverse=True)}
