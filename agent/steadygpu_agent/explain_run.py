# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What ``steadygpu explain`` does, from its arguments to its exit status."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence, Set
from dataclasses import replace

from ansible_collections.steadygpu.host.plugins.module_utils.checks import (
    assume,
    explain,
    inspection,
    mentions,
)
from ansible_collections.steadygpu.host.plugins.module_utils.checks.host import HostView
from ansible_collections.steadygpu.host.plugins.module_utils.checks.judge import judge
from ansible_collections.steadygpu.host.plugins.module_utils.checks.model import Finding, Severity
from ansible_collections.steadygpu.host.plugins.module_utils.checks.output import explanation
from ansible_collections.steadygpu.host.plugins.module_utils.checks.readers import kinds
from steadygpu_agent import check_files, check_run

_KNOWN, _UNKNOWN, _UNUSABLE = 0, 1, 2
_PASTED = "pasted text"
# The rule that says in a checked file: ask `steadygpu explain`.
_POINTS_HERE = "known-message"


def run(arguments: argparse.Namespace) -> int:
    """Explain the text: 0 something is known of it, 1 nothing is, 2 it cannot be read."""
    try:
        assumed = check_run.assumptions(arguments.assume)
        given = _one(arguments.text)
        text, name = _text(given)
    except check_run.UsageError as error:
        print(f"steadygpu explain: {error}", file=sys.stderr)
        return _UNUSABLE
    host, about_host = HostView(), []
    if arguments.host:
        gathered = check_run.live_host(arguments.deadline)
        host, about_host = gathered.host, gathered.findings
    host = assume.apply(host, assumed)
    # A ticket names versions; what is known of the host goes before them.
    known = host.with_versions(mentions.view(mentions.find(text, name)).versions)
    explanations = explain.explain(text, known)
    told = {judged.cause.id for one in explanations for judged in one.causes} | {_POINTS_HERE}
    findings = _in_text(text, name, host, told)
    findings += [f for f in about_host if f.severity > Severity.INFO]
    check_run.printable_output()
    if arguments.json:
        sys.stdout.write(explanation.as_json(explanations, findings))
    else:
        sys.stdout.write(explanation.text(explanations, findings, check_run.colours()))
    if explanations or findings:
        return _KNOWN
    if _like_a_path(given):
        print(f"steadygpu explain: there is no file {given}; it was read as text", file=sys.stderr)
    return _UNKNOWN


def _one(words: Sequence[str]) -> str:
    """The text of a message that was given without quotes, or the one file; raises UsageError."""
    if len(words) > 1 and any(os.path.isfile(word) or word == check_files.STDIN for word in words):
        raise check_run.UsageError("give one file, or the message in quotes")
    return " ".join(words)


def _like_a_path(given: str) -> bool:
    plain = given != check_files.STDIN and not os.path.exists(given) and not given.split()[1:]
    return plain and ("/" in given or bool(os.path.splitext(given)[1]))


def _in_text(text: str, name: str, host: HostView, told: Set[str]) -> list[Finding]:
    """What the rules say of the versions that the text names, and of the commands in it.

    Of a log line nothing is said again that is ``told`` as a cause; a version that is named is
    the proof of its cause, and stays.
    """
    found = mentions.find(text, name)
    seen = judge([mentions.view(found, replace(host, live=False))], replace(host, live=False))
    if kinds.detect(text):
        seen += [f for f in inspection.inspect(text, name, host).findings if f.rule not in told]
    return sorted(set(seen), key=lambda f: (-f.severity, f.at, f.rule))


def _text(given: str) -> tuple[str, str]:
    """The text to explain and a name for it; raises UsageError."""
    if given != check_files.STDIN and not os.path.isfile(given):
        if not given.strip():
            raise check_run.UsageError("the text is empty")
        if os.path.isdir(given):
            raise check_run.UsageError(f"{given} is a directory; give a file of it")
        return given, _PASTED
    loaded = check_files.load(check_files.Source(given))
    if loaded.text is None:
        why = loaded.problem.said if loaded.problem else "cannot be read"
        raise check_run.UsageError(f"{check_files.shown(given)}: {why}")
    return loaded.text, check_files.shown(given)
