# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""An explanation of an error message, for people and for programs. Pure."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

from ...secrets import mask
from ..costs import costs
from ..explain import Explanation, Judged, Standing
from ..model import Finding
from .as_json import masked
from .text import finding_lines

_WIDTH = 100
_CODES = {
    Standing.CONFIRMED: "\033[1;31m",
    Standing.POSSIBLE: "\033[1;33m",
    Standing.RULED_OUT: "\033[2m",
}
_BOLD, _PLAIN = "\033[1m", "\033[0m"


def text(
    explanations: Sequence[Explanation], findings: Sequence[Finding], colour: bool = False
) -> str:
    """Every explanation with its causes, the likeliest first, then what else was found."""
    blocks = ["\n".join(_explanation(one, colour)) for one in explanations]
    if findings:
        blocks.append("Besides, in what the text says:")
        blocks += ["\n".join(finding_lines(finding, colour)) for finding in findings]
    if not blocks:
        blocks.append(
            "Nothing in this text is known here. Give more of it: the lines before the error, the "
            "command that was run, the output of nvidia-smi."
        )
    return "\n\n".join(blocks) + "\n"


def as_json(explanations: Sequence[Explanation], findings: Sequence[Finding]) -> str:
    """The same as a JSON document; docs/ci/README.md documents it."""
    document = {
        "schema": 1,
        "explanations": [_as_dict(one) for one in explanations],
        "findings": [finding.as_dict() for finding in findings],
    }
    return json.dumps(masked(document), indent=2) + "\n"


def _explanation(one: Explanation, colour: bool) -> Iterator[str]:
    symptom = one.symptom
    yield _paint(_clean(symptom.title), _BOLD, colour) + f" [{symptom.id}]"
    yield from _field("said", _clipped(one.quoted))
    if symptom.normal:
        yield from _field("normal", symptom.normal)
    shown = [judged for judged in one.causes if judged.standing is not Standing.RULED_OUT]
    if symptom.tell_apart and len(one.causes) > 1:
        yield "  to tell the causes apart:"
        yield from _commands((symptom.tell_apart,))
    for number, judged in enumerate(shown, start=1):
        yield ""
        yield from _cause(number, judged, colour)
    out = [judged.cause.title for judged in one.causes if judged.standing is Standing.RULED_OUT]
    if out:
        yield ""
        yield from _field("ruled out", "; ".join(out))


def _cause(number: int, judged: Judged, colour: bool) -> Iterator[str]:
    cause, standing = judged.cause, judged.standing
    word = "likely" if judged.hints and standing is Standing.POSSIBLE else standing.value
    head = _paint(f"{word}:", _CODES[standing], colour)
    yield f"  {number}. {head} {_clean(cause.title)} [{cause.id}]"
    yield from _field("why", cause.why)
    yield from _commands((cause.proof,) if cause.proof else (), "proof")
    if cause.shows:
        yield from _field("shows", cause.shows)
    yield from _field("fix", cause.fix)
    yield from _commands(cause.commands)
    for told in costs(cause.commands):
        yield from _field("careful", told)


def _commands(commands: Sequence[str], name: str = "") -> Iterator[str]:
    head = _head(name) if name else " " * 12
    for command in commands:
        # Never wrapped: it is to be pasted.
        for line in _clean(command).splitlines():
            yield head + line
            head = " " * 12


def _head(name: str) -> str:
    return f"     {name}: ".ljust(12)


def _field(name: str, said: str) -> Iterator[str]:
    yield from textwrap.wrap(
        _clean(said),
        width=_WIDTH,
        initial_indent=_head(name),
        subsequent_indent=" " * 12,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _as_dict(one: Explanation) -> dict[str, Any]:
    symptom = one.symptom
    return {
        "symptom": symptom.id,
        "title": symptom.title,
        "quoted": _clipped(one.quoted),
        "normal": symptom.normal,
        "tell_apart": symptom.tell_apart,
        "sources": list(symptom.sources),
        "causes": [_cause_dict(judged) for judged in one.causes],
    }


def _cause_dict(judged: Judged) -> dict[str, Any]:
    cause = judged.cause
    return {
        "id": cause.id,
        "standing": judged.standing.value,
        "likely": judged.hints > 0,
        "severity": cause.severity.label,
        "title": cause.title,
        "why": cause.why,
        "proof": cause.proof,
        "shows": cause.shows,
        "fix": cause.fix,
        "commands": list(cause.commands),
        "costs": list(costs(cause.commands)),
        "sources": list(cause.sources),
    }


def _clipped(quoted: str) -> str:
    return quoted if len(quoted) <= 200 else quoted[:200] + "…"


def _clean(said: str) -> str:
    return mask.printable(mask.message(said))


def _paint(said: str, code: str, colour: bool) -> str:
    return f"{code}{said}{_PLAIN}" if colour else said
