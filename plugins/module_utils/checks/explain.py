# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""An error message and what is known of the host in, its possible causes out. Pure."""

from __future__ import annotations

import enum
import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass, field

from .host import HostView
from .model import Severity


class Standing(enum.Enum):
    """What the facts say of a cause."""

    CONFIRMED = "confirmed"
    POSSIBLE = "possible"
    RULED_OUT = "ruled out"


@dataclass(frozen=True)
class Cause:
    """One thing that makes this message appear.

    ``id`` is a rule's id where a rule finds the same thing in files or facts, else its own.
    ``proof`` is a command that shows whether it is this cause, and ``shows`` what it prints.
    ``fix`` is for a person, ``commands`` can be pasted. ``hints`` are patterns that, found
    elsewhere in the pasted text, make the cause likelier. ``holds`` asks the facts: True (it is
    so), False (it is not), None (they do not say).
    """

    id: str
    title: str
    why: str
    proof: str
    shows: str
    fix: str
    commands: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    cases: tuple[str, ...] = ()
    hints: tuple[str, ...] = ()
    holds: Callable[[HostView], bool | None] | None = None
    severity: Severity = Severity.ERROR


@dataclass(frozen=True)
class Symptom:
    """A message that people paste. ``patterns`` are regular expressions, matched without case on
    text whose blanks are single; ``tell_apart`` is the one command that tells its causes apart.
    ``normal`` says that nothing is wrong when this is seen, and why (then there are no causes).
    """

    id: str
    title: str
    patterns: tuple[str, ...]
    causes: tuple[Cause, ...] = ()
    tell_apart: str = ""
    normal: str = ""
    sources: tuple[str, ...] = ()
    cases: tuple[str, ...] = ()


@dataclass(frozen=True)
class Judged:
    """A cause and how it stands; ``hints`` counts those of its hints that the text holds."""

    cause: Cause
    standing: Standing
    hints: int = 0


@dataclass(frozen=True)
class Explanation:
    """What one symptom found in a text means: ``quoted`` is the part of the text that matched."""

    symptom: Symptom
    quoted: str
    causes: tuple[Judged, ...] = field(default_factory=tuple)


def all_symptoms() -> tuple[Symptom, ...]:
    """The tables ``SYMPTOMS`` of the files in ``symptoms/``, by id."""
    from . import symptoms

    found: list[Symptom] = []
    for module in sorted(pkgutil.iter_modules(symptoms.__path__), key=lambda entry: entry.name):
        table = importlib.import_module(f"{symptoms.__name__}.{module.name}")
        found.extend(getattr(table, "SYMPTOMS", ()))
    return tuple(sorted(found, key=lambda symptom: symptom.id))


def explain(text: str, host: HostView) -> tuple[Explanation, ...]:
    """Every symptom that ``text`` shows, in the order in which it shows them."""
    from .symptoms import search

    flat = search.flatten(text)
    lowered = flat.lower()
    found: list[tuple[int, Explanation]] = []
    for symptom in all_symptoms():
        match = search.first(symptom.patterns, flat, lowered)
        if match:
            causes = _standing(symptom, flat, lowered, host)
            found.append((match.start(), Explanation(symptom, match.group(0), causes)))
    return tuple(explanation for _start, explanation in sorted(found, key=lambda pair: pair[0]))


def _standing(symptom: Symptom, flat: str, lowered: str, host: HostView) -> tuple[Judged, ...]:
    from .symptoms import search

    judged = []
    for cause in symptom.causes:
        answer = cause.holds(host) if cause.holds else None
        standing = {True: Standing.CONFIRMED, False: Standing.RULED_OUT, None: Standing.POSSIBLE}
        hints = sum(search.first((hint,), flat, lowered) is not None for hint in cause.hints)
        judged.append(Judged(cause, standing[answer], hints))
    order = {Standing.CONFIRMED: 0, Standing.POSSIBLE: 1, Standing.RULED_OUT: 2}
    # sorted() is stable: causes of equal standing stay in the table's order, likeliest first.
    return tuple(sorted(judged, key=lambda j: (order[j.standing], -j.hints)))
