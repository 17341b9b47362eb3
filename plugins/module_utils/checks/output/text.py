# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A report for people, like that of a good compiler. Pure."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from ...secrets import mask
from ..costs import costs
from ..model import Finding, Position, Problem, Severity
from .report import Report

_WIDTH = 100
_CONTEXT = 110  # of a source line, around the place
_NAMED = 3  # files of one reason that are named
_COLOURS = {
    Severity.FATAL: "\033[1;31m",
    Severity.ERROR: "\033[1;31m",
    Severity.WARNING: "\033[1;33m",
    Severity.INFO: "\033[1;36m",
}
_BOLD, _DIM, _PLAIN = "\033[1m", "\033[2m", "\033[0m"


def text(report: Report, colour: bool = False) -> str:
    """The whole report, findings grouped by file, ending with a line that sums it up."""
    paint = _Paint(colour)
    blocks = []
    explained: set[str] = set()
    for finding in sorted(report.shown, key=lambda f: (f.at.file, -f.severity, f.at, f.rule)):
        blocks.append("\n".join(_finding(finding, report, paint, finding.rule not in explained)))
        explained.add(finding.rule)
    blocks += [_problem(problem, "cannot be judged", paint) for problem in report.problems]
    blocks += list(_notes(report.notes, paint))
    return "\n\n".join([*blocks, summary(report)]) + "\n"


def summary(report: Report) -> str:
    """One line of how many findings, of which severities, in how many files."""
    counts = [(word, number) for word, number in report.counts().items() if number]
    said = ", ".join(_plural(number, word) for word, number in counts) or "nothing found"
    parts = [f"{said} in {_plural(len(report.files), 'file')}" if report.files else said]
    if report.problems and not (counts or report.files):
        parts = []
    elif not (counts or report.files or report.known or report.ignored):
        # A wrong directory in a CI job must not look like a clean one.
        parts = ["nothing found, and no file judged: none is of a kind that is known here"]
    hidden = len(report.findings) - len(report.shown)
    if hidden:
        parts.append(f"{hidden} not shown (--show info)")
    if report.host:
        parts.append(f"judged for {report.host}")
    if report.ignored:
        parts.append(f"{report.ignored} ignored by comments")
    if report.known:
        parts.append(f"{report.known} known from the baseline")
    if report.problems:
        parts.append(f"{_plural(len(report.problems), 'input')} could not be judged")
    return mask.printable("; ".join(parts))


def finding_lines(finding: Finding, colour: bool = False) -> list[str]:
    """One finding without its source line, for faces that have no file to show."""
    return list(_finding(finding, Report(), _Paint(colour), True))


class _Paint:
    def __init__(self, on: bool) -> None:
        self._on = on

    def __call__(self, text: str, code: str) -> str:
        return f"{code}{text}{_PLAIN}" if self._on else text


def _finding(finding: Finding, report: Report, paint: _Paint, explain: bool) -> Iterator[str]:
    place = mask.printable(str(finding.at))
    word = paint(f"{finding.severity.label}:", _COLOURS[finding.severity])
    title = paint(_clean(finding.title), _BOLD)
    yield f"{paint(place, _BOLD)}: {word} {title} [{finding.rule}]"
    kind = report.kinds.get(finding.at.file, "")
    yield from _source(finding.at, report.lines.get(finding.at.file, ()), kind, paint)
    yield from _field("seen", finding.seen)
    if explain:
        yield from _field("why", finding.reason)
    yield from _field("fix", finding.fix)
    for command in finding.commands:
        for line in _clean(command).splitlines():
            yield f"          {paint(line, _BOLD)}"
    for told in costs(finding.commands):
        yield from _field("careful", told)
    if finding.assumed:
        yield from _field("taken for granted", "; ".join(finding.assumed))


def _source(at: Position, lines: Sequence[str], kind: str, paint: _Paint) -> Iterator[str]:
    if not 0 < at.line <= len(lines):
        return
    raw = lines[at.line - 1]
    shown = mask.printable(mask.source(raw, kind)).rstrip()
    # What is masked before the place moves it: then the line stands without a mark.
    column = at.column - 1
    if shown[:column] != mask.printable(raw)[:column]:
        column = -1
    if column > _CONTEXT - 20:
        cut = column - (_CONTEXT // 2)
        shown, column = "…" + shown[cut:], column - cut + 1
    if len(shown) > _CONTEXT:
        shown = shown[:_CONTEXT] + "…"
    gutter = f"{at.line:5} | "
    yield paint(gutter, _DIM) + shown
    if 0 <= column < len(shown):
        yield paint(" " * (len(gutter) - 2) + "| ", _DIM) + " " * column + paint("^", _BOLD)


def _field(name: str, said: str) -> Iterator[str]:
    head = f"  {name}: ".ljust(10)
    yield from textwrap.wrap(
        _clean(said),
        width=_WIDTH,
        initial_indent=head,
        subsequent_indent=" " * 10,
        break_long_words=False,
        break_on_hyphens=False,
    ) or [head]


def _problem(problem: Problem, word: str, paint: _Paint, level: Severity = Severity.ERROR) -> str:
    place = paint(mask.printable(str(problem.at)), _BOLD)
    return f"{place}: {paint(word + ':', _COLOURS[level])} {_clean(problem.said)}"


def _notes(notes: Sequence[Problem], paint: _Paint) -> Iterator[str]:
    """What was left out; a reason that many files share is said once."""
    by_reason: dict[str, list[Problem]] = {}
    for note in notes:
        by_reason.setdefault(note.said, []).append(note)
    for said, alike in by_reason.items():
        if len(alike) <= _NAMED:
            for note in alike:
                yield _problem(note, "left out", paint, Severity.INFO)
        else:
            yield f"{len(alike)} files {paint('left out:', _COLOURS[Severity.INFO])} {_clean(said)}"


def _clean(said: str) -> str:
    return mask.printable(mask.message(said))


def _plural(number: int, word: str) -> str:
    if word == "fatal":
        return f"{number} fatal"
    return f"{number} {word}" if number == 1 else f"{number} {word}s"
