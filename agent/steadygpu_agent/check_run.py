# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What ``steadygpu check`` does, from its arguments to its exit status."""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from ansible_collections.steadygpu.host.plugins.module_utils.atomic import write_atomic
from ansible_collections.steadygpu.host.plugins.module_utils.checks import (
    assume,
    baseline,
    inspection,
)
from ansible_collections.steadygpu.host.plugins.module_utils.checks.host import HostView
from ansible_collections.steadygpu.host.plugins.module_utils.checks.model import (
    Finding,
    Problem,
    Severity,
)
from ansible_collections.steadygpu.host.plugins.module_utils.checks.output import text as for_people
from ansible_collections.steadygpu.host.plugins.module_utils.checks.output.report import (
    CLEAN,
    UNUSABLE,
    Report,
)
from ansible_collections.steadygpu.host.plugins.module_utils.checks.readers import kinds
from steadygpu_agent import check_files
from steadygpu_agent.check_files import Source

# Where a rule has its page; SARIF viewers link to it.
_RULES_HOME = "https://github.com/steadygpu/host/blob/main/docs/rules"


class UsageError(Exception):
    """The arguments cannot be carried out; the message says why."""


@dataclass
class Gathered:
    """What the inputs came to, before the baseline; ``host`` is what they were judged for."""

    host: HostView
    findings: list[Finding] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    notes: list[Problem] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    ignored: int = 0
    kinds: dict[str, str] = field(default_factory=dict)
    lines: dict[str, Sequence[str]] = field(default_factory=dict)


def run(arguments: argparse.Namespace) -> int:
    """Check what the arguments name, report, and return 0, 1 or 2."""
    try:
        return _run(arguments)
    except UsageError as error:
        print(f"steadygpu check: {error}", file=sys.stderr)
        return UNUSABLE


def _run(arguments: argparse.Namespace) -> int:
    if not arguments.paths and not arguments.host:
        raise UsageError("what is to be checked? Give files, directories, - or --host")
    try:
        kind = kinds.named(arguments.kind) if arguments.kind else None
    except kinds.UnknownKindError as error:
        raise UsageError(str(error)) from error
    known = _read_baseline(arguments.baseline)
    assumed = assumptions(arguments.assume)
    if arguments.host:
        gathered = live_host(arguments.deadline)
        gathered.host = assume.apply(gathered.host, assumed)
    else:
        gathered = Gathered(assume.apply(HostView(), assumed))
    sources, missing = check_files.gather(arguments.paths, arguments.only_known)
    gathered.problems += missing
    _add_files(gathered, sources, kind)
    if arguments.write_baseline:
        return _write_baseline(gathered, arguments.write_baseline)
    report = _report(gathered, arguments, known)
    _show(report, arguments)
    return report.status


def assumptions(given: Iterable[str]) -> assume.Assumptions:
    """All ``--assume`` options as one patch; raises UsageError."""
    try:
        return assume.parse(",".join(given))
    except assume.AssumeError as error:
        raise UsageError(str(error)) from error


def live_host(deadline_s: float) -> Gathered:
    """Judge the host that this runs on, and the files that configure it."""
    from ansible_collections.steadygpu.host.plugins.module_utils.checks import live
    from ansible_collections.steadygpu.host.plugins.module_utils.evidence import gather
    from steadygpu_agent import facts

    found = facts.collect(None, deadline_s)
    evidence = gather.gather(found, deadline_s)
    verdict = live.judge_host(found, evidence, os.uname().nodename)
    texts = evidence.get("texts", {})
    with_findings = {finding.at.file for finding in verdict.findings}
    return Gathered(
        host=verdict.host,
        findings=list(verdict.findings),
        # What root alone may read is no fault of this host.
        notes=list(verdict.unusable),
        files=sorted(texts),
        kinds={path: kinds.detect(text, path) or "" for path, text in texts.items()},
        lines={path: text.splitlines() for path, text in texts.items() if path in with_findings},
    )


def _add_files(gathered: Gathered, sources: Sequence[Source], kind: str | None) -> None:
    # Standard input can be read once only, so it does not describe the host for others.
    gathered.host = inspection.sharpen(gathered.host, _describing(sources, gathered.host))
    for result in check_files.judge_all(sources, gathered.host, kind):
        inspected = result.inspected
        gathered.findings += inspected.findings
        gathered.problems += inspected.problems
        gathered.notes += [result.note] if result.note else []
        gathered.ignored += inspected.ignored
        if result.judged:
            gathered.files.append(inspected.file)
            gathered.kinds[inspected.file] = inspected.kind or ""
            gathered.lines[inspected.file] = result.lines


def _describing(sources: Sequence[Source], host: HostView) -> list[object]:
    """Documents of the files that say how the host of the other files is.

    Two files of one kind in different directories are of two hosts, or examples: neither counts.
    """
    folders: dict[str, set[str]] = {}
    chosen: list[tuple[Source, str]] = []
    for source in sources:
        kind = None if source.path == check_files.STDIN else kinds.by_name(source.path)
        if kind in inspection.DESCRIBE_THE_HOST:
            folders.setdefault(kind, set()).add(os.path.dirname(source.path))
            chosen.append((source, kind))
    single = [(s, kind) for s, kind in chosen if len(folders[kind]) == 1]
    if len(single) == len(sources) == 1:
        return []
    return [d for source, kind in single for d in check_files.documents(source, kind)]


def _report(gathered: Gathered, arguments: argparse.Namespace, known: frozenset[str]) -> Report:
    from steadygpu_agent import cli

    findings = sorted(set(gathered.findings), key=lambda f: (-f.severity, f.at, f.rule))
    left, in_baseline = findings, 0
    if arguments.baseline:
        left, in_baseline = baseline.new_ones(findings, known, _place(arguments.baseline))
    return Report(
        findings=tuple(left),
        problems=tuple(gathered.problems),
        notes=tuple(gathered.notes),
        files=tuple(gathered.files),
        ignored=gathered.ignored,
        known=in_baseline,
        fail_on=Severity.named(arguments.fail_on),
        show=Severity.named(arguments.show) if arguments.show else None,
        host=_judged_for(gathered.host, arguments.assume),
        version=cli.version(),
        kinds=gathered.kinds,
        lines=gathered.lines,
    )


def _judged_for(host: HostView, assumed: Sequence[str]) -> str:
    said = ", ".join(each.strip() for each in assumed if each.strip())
    given = f"with {said}" if said else ""
    if host.live:
        return f"{host.name or 'this host'} {given}".strip()
    return f"a host {given}" if given else ""


def _show(report: Report, arguments: argparse.Namespace) -> None:
    printable_output()
    people = for_people.text(report, colour=colours())
    if arguments.format == "text" and not arguments.output:
        sys.stdout.write(people)
        return
    formatted = _formatted(report, arguments.format)
    if not arguments.output:
        sys.stdout.write(formatted)
        return
    try:
        _write(arguments.output, formatted)
    except OSError as error:
        raise UsageError(f"{arguments.output}: cannot be written: {error.strerror}") from error
    sys.stdout.write(people)


def _formatted(report: Report, form: str) -> str:
    from ansible_collections.steadygpu.host.plugins.module_utils.checks import registry
    from ansible_collections.steadygpu.host.plugins.module_utils.checks.output import (
        as_json,
        junit,
        sarif,
    )

    if form == "json":
        return as_json.text(report)
    if form == "sarif":
        return sarif.text(report, registry.all_rules(), _RULES_HOME)
    return junit.text(report) if form == "junit" else for_people.text(report)


def colours() -> bool:
    """Does whoever reads standard output want colours? See https://no-color.org."""
    return (
        sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    )


def printable_output() -> None:
    """A terminal that cannot show a character gets an escape for it, not a traceback."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def _place(path: str) -> baseline.Place:
    return baseline.Place(os.path.dirname(os.path.abspath(path)), os.getcwd())


def _read_baseline(path: str | None) -> frozenset[str]:
    if path is None:
        return frozenset()
    try:
        with open(path, encoding="utf-8") as opened:
            return baseline.read(opened.read())
    except (OSError, UnicodeDecodeError, baseline.BaselineError) as error:
        said = getattr(error, "strerror", None) or str(error)
        raise UsageError(f"--baseline {path}: {said}") from error


def _write_baseline(gathered: Gathered, path: str) -> int:
    findings = sorted(set(gathered.findings), key=lambda f: (-f.severity, f.at, f.rule))
    try:
        _write(path, baseline.write(findings, _place(path)))
    except OSError as error:
        raise UsageError(f"--write-baseline {path}: {error.strerror}") from error
    count = "1 finding is" if len(findings) == 1 else f"{len(findings)} findings are"
    print(f"{path}: {count} known from now on")
    for problem in gathered.problems:
        print(f"{problem.at}: cannot be judged: {problem.said}", file=sys.stderr)
    return UNUSABLE if gathered.problems else CLEAN


def _write(path: str, text: str) -> None:
    """A file as a whole or not at all; what is no plain file (a pipe, /dev/stdout) as it comes."""
    if os.path.exists(path) and not os.path.isfile(path):
        with open(path, "w", encoding="utf-8") as opened:
            opened.write(text)
    else:
        write_atomic(os.path.abspath(path), text)
