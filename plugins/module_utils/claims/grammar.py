# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The grammar of claims: ``count=2+memory=20g+link=nvlink+policy=strict``. Pure.

A claim is ``key=value`` pairs with ``+`` between them, in any order, each key once. Blanks around
a pair count for nothing. The one value with a ``+`` of its own is a MIG profile: ``1g.5gb+me``.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from dataclasses import dataclass

from .model import Claim, ClaimError, Fault
from .values import KEYS, ValueFaultError

_LONGEST = 4096
# What may follow a profile after a plus sign (nvidia-smi mig -lgip).
_PROFILE_SUFFIX = re.compile(r"\s*(?:me(?:\.all)?|gfx)\s*", re.IGNORECASE)
# What people write instead, out of other tools' grammars.
_OTHER_NAMES = {
    "gpu": "device",
    "gpus": "count",
    "devices": "device",
    "uuid": "device",
    "mem": "memory",
    "vram": "memory",
    "sm": "compute",
    "cores": "compute",
    "nvlink": "link",
    "timeout": "wait",
    "slo": "p99",
    "profile": "mig",
}


@dataclass(frozen=True)
class Pair:
    """One ``key=value`` as written; columns count from 1. ``equals``: was there an ``=``?"""

    key: str
    value: str
    column: int
    value_column: int
    equals: bool = True


def pairs(text: str) -> Iterator[Pair]:
    """The pairs of a text, whatever they mean; an empty one has an empty key."""
    start = 0
    mended: list[str] = []
    for piece in text.split("+"):
        if mended and _PROFILE_SUFFIX.fullmatch(piece) and _is_mig(mended[-1]):
            mended[-1] += "+" + piece
        else:
            mended.append(piece)
    for piece in mended:
        key, equals, value = piece.partition("=")
        yield Pair(
            key.strip(),
            value.strip(),
            1 + start + _blanks(key),
            1 + start + len(key) + len(equals) + _blanks(value),
            bool(equals),
        )
        start += len(piece) + 1


def parse(text: str) -> Claim:
    """What the text asks. Raises ClaimError with every fault and its place."""
    if len(text) > _LONGEST:
        said = f"a claim of {len(text)} characters; wanted are at most {_LONGEST}"
        raise ClaimError(text[:_LONGEST], (Fault(_LONGEST + 1, said),))
    if not text.strip():
        raise ClaimError(text, (Fault(1, "the claim is empty", "for one GPU write count=1"),))
    faults: list[Fault] = []
    found: dict[str, object] = {}
    places: dict[str, int] = {}
    for pair in pairs(text):
        fault = _shape(pair, places)
        if fault is not None:
            faults.append(fault)
            continue
        places[pair.key] = pair.value_column
        name, read = KEYS[pair.key]
        try:
            found[name] = read(pair.value)
        except ValueFaultError as error:
            faults.append(Fault(pair.value_column, error.said, error.advice))
            continue
        if pair.key == "mig":
            found["whole"] = found[name] is None
    if faults:
        raise ClaimError(text, tuple(faults))
    return Claim(text=text, places=places, **found)  # type: ignore[arg-type]


def _shape(pair: Pair, seen: dict[str, int]) -> Fault | None:
    """Why this is no pair of a key we know and a value."""
    if not pair.key:
        said = "a value without its key" if pair.value else "nothing between two plus signs"
        return Fault(pair.column, said, "a claim is key=value+key=value")
    if pair.key not in KEYS:
        return Fault(pair.column, f"there is no key {_shown(pair.key)}", _meant(pair))
    if not pair.equals or not pair.value:
        return Fault(pair.column, f"{pair.key} has no value", f"write {pair.key}=…")
    if pair.key in seen:
        return Fault(pair.column, f"{pair.key} is given twice", "give each key once")
    return None


def _meant(pair: Pair) -> str:
    word = pair.key.lower()
    if word in KEYS:
        return f"keys are in lower case: {word}"
    other = _OTHER_NAMES.get(word)
    near = [other] if other else difflib.get_close_matches(word, KEYS, n=1)
    if near:
        return f"did you mean {near[0]}?"
    return "there are " + ", ".join(KEYS)


def _shown(word: str) -> str:
    return repr(word if len(word) <= 40 else word[:40] + "…")


def _is_mig(piece: str) -> bool:
    key, equals, value = piece.partition("=")
    return bool(equals) and key.strip() == "mig" and "+" not in value


def _blanks(text: str) -> int:
    """How many characters before the first that is not blank; 0 when all are."""
    return len(text) - len(text.lstrip()) if text.strip() else 0
