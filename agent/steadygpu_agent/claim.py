# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""``steadygpu claim check``: is a claim right, and can this host meet it?"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from steadygpu_agent import arguments as words

if TYPE_CHECKING:
    from ansible_collections.steadygpu.host.plugins.module_utils.claims.model import Claim

# Exit statuses. 0, 127 and 255 are those of the article that the validator comes from.
VALID = 0
MALFORMED = 2
TOOL_MISSING = 127
CONFLICT = 255

_LONGEST_FILE = 2 * 1024 * 1024


def register(commands: Any) -> None:
    """Add ``claim`` with its verb to the command's sub-parsers."""
    claim = commands.add_parser(
        "claim",
        help="check a claim: what a container asks of the scheduler",
        description="Claims such as count=2+memory=20g+link=nvlink+policy=strict (docs/claims.md).",
    )
    verbs = claim.add_subparsers(metavar="VERB", required=True)
    check = verbs.add_parser(
        "check",
        help="is it right, and can this host meet it?",
        description="Exit status: 0 valid, 2 malformed, 127 a tool that it needs is missing, 255 "
        "it conflicts with itself or with what the host has. Changes nothing.",
    )
    check.add_argument(
        "claim", metavar="CLAIM", help="a claim, a file with one on each line, or - for such a file"
    )
    check.add_argument(
        "--facts",
        metavar="FILE",
        help="judge by the facts in FILE (steadygpu facts --json) instead of this host's",
    )
    check.add_argument(
        "--no-host", action="store_true", help="only the claim itself, without any host"
    )
    check.add_argument("--json", action="store_true", help="print JSON")
    words.add_deadline(check)
    check.set_defaults(run=run)


@dataclass
class Verdict:
    """What is said of one claim; ``faults`` are of its text, in order."""

    text: str
    place: str
    status: int = VALID
    faults: list[dict[str, Any]] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    conflicts: list[dict[str, str]] = field(default_factory=list)
    asks: dict[str, Any] = field(default_factory=dict)
    level: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """The verdict as JSON types."""
        return {"claim": self.text, **{k: v for k, v in vars(self).items() if k != "text"}}


def run(arguments: argparse.Namespace) -> int:
    """Check and print; the gravest status of all claims, 2 for what cannot be read."""
    try:
        claims = read(arguments.claim)
        facts = None if arguments.no_host else _facts(arguments)
    except (OSError, ValueError) as error:
        print(f"steadygpu claim: {error}", file=sys.stderr)
        return MALFORMED
    programs = None if facts is None or arguments.facts else _programs()
    verdicts = [judge(text, place, facts, programs) for text, place in claims]
    if arguments.json:
        print(json.dumps([one.as_dict() for one in verdicts], indent=2))
    else:
        for one in verdicts:
            print(page(one, arguments.no_host))
    gravity = (VALID, CONFLICT, TOOL_MISSING, MALFORMED)
    return max((one.status for one in verdicts), key=gravity.index)


def read(given: str) -> list[tuple[str, str]]:
    """The claims with their places, ``FILE:LINE`` or "". Raises OSError, ValueError."""
    if given != "-" and ("=" in given or not given.strip()) and not os.path.isfile(given):
        return [(given, "")]
    if given != "-" and not os.path.exists(given):
        raise ValueError(
            f"{given!r} is neither a claim nor a file. A claim is key=value+key=value, for example "
            "count=2+memory=20g"
        )
    if given == "-":
        name, data = "standard input", sys.stdin.buffer.read(_LONGEST_FILE + 1)
    else:
        with open(given, "rb") as handle:
            name, data = given, handle.read(_LONGEST_FILE + 1)
    if len(data) > _LONGEST_FILE:
        raise ValueError(f"{name} is longer than {_LONGEST_FILE} bytes")
    try:
        lines = data.decode("utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise ValueError(f"{name} is not text in UTF-8: {error.reason}") from error
    found = [
        (line.rstrip(), f"{name}:{number}")
        for number, line in enumerate(lines, 1)
        if line.strip() and not line.lstrip().startswith("#")
    ]
    if not found:
        raise ValueError(f"{name} has no claim")
    return found


def judge(
    text: str,
    place: str,
    facts: Mapping[str, Any] | None,
    programs: Mapping[str, str | None] | None = None,
) -> Verdict:
    """What is said of one claim, with the facts of a host or (None) without any. Pure."""
    from ansible_collections.steadygpu.host.plugins.module_utils.claims import grammar
    from ansible_collections.steadygpu.host.plugins.module_utils.claims.contradictions import (
        contradictions,
    )
    from ansible_collections.steadygpu.host.plugins.module_utils.claims.model import ClaimError

    verdict = Verdict(text, place)
    try:
        claim = grammar.parse(text)
    except ClaimError as error:
        verdict.status = MALFORMED
        verdict.faults = [
            {"column": one.column, "said": one.said, "advice": one.advice} for one in error.faults
        ]
        return verdict
    verdict.asks = claim.as_dict()
    found = contradictions(claim)
    verdict.conflicts = [vars(one).copy() for one in found]
    if found:
        verdict.status = CONFLICT
    elif facts is not None:
        _against_host(verdict, claim, facts, programs or {})
    return verdict


def _against_host(
    verdict: Verdict,
    claim: Claim,
    facts: Mapping[str, Any],
    programs: Mapping[str, str | None],
) -> None:
    from ansible_collections.steadygpu.host.plugins.module_utils.checks import facts_host
    from ansible_collections.steadygpu.host.plugins.module_utils.claims import fit, tools

    lacks = tools.missing(claim, facts, programs)
    verdict.missing = [str(one) for one in lacks]
    if lacks:
        verdict.status = TOOL_MISSING
        return
    host = facts_host.from_facts(facts)
    verdict.level = fit.level(claim, host)
    verdict.conflicts = [vars(one).copy() for one in fit.conflicts(claim, host)]
    if verdict.conflicts:
        verdict.status = CONFLICT


_WORDS = {
    VALID: "valid",
    MALFORMED: "malformed",
    TOOL_MISSING: "tool missing",
    CONFLICT: "conflict",
}
_LEVELS = {
    "exclusive": "the device is the container's alone, so nothing needs to be limited",
    "hard-hw": "MIG holds the memory, in hardware",
    "hard-driver": "the driver holds the memory limit",
    "soft-mps": "MPS holds the memory limit, per client and only for CUDA programs",
    "advisory": "nothing holds the memory limit; it counts for placement only",
}


def page(verdict: Verdict, without_host: bool = False) -> str:
    """What a person reads: the verdict, and under the claim a mark at each fault. Pure."""
    start = f"{_printable(verdict.place)}: " if verdict.place else ""
    about = " (no host was asked)" if without_host and verdict.status == VALID else ""
    text = _printable(verdict.text)
    lines = [f"{start}{_WORDS[verdict.status]}{about}: {text}"]
    for fault in verdict.faults:
        lines.append(f"  {text}")
        lines.append(f"  {' ' * (fault['column'] - 1)}^ {_sentence(fault)}")
    lines += [f"  {said}" for said in verdict.missing]
    lines += [f"  {one['key']}: {_sentence(one)}" for one in verdict.conflicts]
    if verdict.level:
        lines.append(f"  memory: {verdict.level}: {_LEVELS[verdict.level]}")
    return "\n".join(lines)


def _printable(text: str) -> str:
    """A file may hold characters that a terminal would act on; each still takes one place."""
    return "".join(char if char.isprintable() else "?" for char in text)


def _sentence(one: Mapping[str, Any]) -> str:
    return f"{one['said']}; {one['advice']}" if one["advice"] else str(one["said"])


def _facts(arguments: argparse.Namespace) -> Mapping[str, Any]:
    """Raises OSError, and ValueError for a file that holds no facts."""
    if not arguments.facts:
        from steadygpu_agent import facts

        return facts.collect(None, arguments.deadline)
    with open(arguments.facts, encoding="utf-8") as handle:
        document = json.load(handle)
    found = document.get("ansible_facts", document) if isinstance(document, dict) else {}
    found = found.get("gpu_host", found)
    if not isinstance(found, dict) or not isinstance(found.get("gpu"), dict):
        raise ValueError(
            f"{arguments.facts} holds no facts of a GPU host; steadygpu facts --json writes them"
        )
    return found


def _programs() -> dict[str, str | None]:
    from ansible_collections.steadygpu.host.plugins.module_utils.claims import tools
    from ansible_collections.steadygpu.host.plugins.module_utils.process import find_program

    return {name: find_program(name) for name in tools.PROGRAMS}
