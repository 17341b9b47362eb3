# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The words behind ``docker run`` as a container that is asked for. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..documents.commands import FlagFault
from ..documents.container import ContainerSpec
from ..model import Given, Position
from .docker_flags import run_table
from .gpus_flag import parse_gpus
from .pflag import Parsed, parse
from .shell_parts import Word

# What a word processor makes of - and ", and what a shell passes on as it is.
_DASHES = "\u2010\u2011\u2012\u2013\u2014\u2015\u2212"
_QUOTES = "\u201c\u201d\u201e\u2018\u2019\u201a\u2033\u2032"
# Flags that an example leaves out.
_LEFT_OUT = ("...", "…", "[...]", "[…]")
_OWN_FIELDS = ("gpus", "env", "label", "annotation")


def container_of(
    words: Sequence[Word], at: Position, how: str, engine: str = "docker"
) -> tuple[ContainerSpec, list[FlagFault]]:
    """The container that ``engine how WORDS`` asks for, and what the engine's parser refuses.

    ``words`` are those behind ``run`` or ``create``; ``at`` is the place of the engine's name.
    """
    command = f"{engine} {how}"
    words, broken = _broken(words)
    parsed = parse([w for w in words if w.raw not in _LEFT_OUT], run_table(engine, how), at.file)
    faults = [FlagFault(f.at, command, f.kind, f.flag, f.value) for f in parsed.faults]
    faults.extend(_typographic(words, at.file, command))
    if broken:
        place = Position(at.file, broken.line, broken.column)
        faults.append(FlagFault(place, command, "broken-continuation"))
    image, behind = _image(parsed, at.file)
    if image is None and not parsed.skipped and not broken and not _asks_help(parsed, words):
        faults.append(FlagFault(at, command, "no-image"))
    spec = ContainerSpec(
        at=at,
        how=how,
        name=parsed.flags["name"][-1].value if parsed.flags.get("name") else "",
        engine=engine,
        image=image,
        command=behind,
        flags={name: given for name, given in parsed.frozen().items() if name not in _OWN_FIELDS},
        unknown=tuple(parsed.unknown),
        gpus=tuple(parse_gpus(g.value, g.at, g.spelled) for g in parsed.flags.get("gpus", ())),
        env=_pairs(parsed, "env"),
        labels=_pairs(parsed, "label"),
        annotations=_pairs(parsed, "annotation"),
        shell=frozenset().union(*(word.variables for word in words)),
    )
    return spec, faults


def _broken(words: Sequence[Word]) -> tuple[Sequence[Word], Word | None]:
    """The words up to a backslash with a blank behind it, and the word that it makes.

    The blank may be followed by what is meant as a comment: a ``#`` and some words.
    """
    for place, word in enumerate(words):
        if re.match(r"\\[ \t]", word.raw) and re.match(r"\s+(#.*)?$", word.value):
            return words[:place], word
    return words, None


def _asks_help(parsed: Parsed, words: Sequence[Word]) -> bool:
    return "help" in parsed.flags or not words or any(w.value in ("...", "…") for w in words)


def _image(parsed: Parsed, file: str) -> tuple[Given | None, tuple[Given, ...]]:
    given = [Given(w.value, Position(file, w.line, w.column)) for w in parsed.rest]
    return (given[0], tuple(given[1:])) if given else (None, ())


def _pairs(parsed: Parsed, flag: str) -> dict[str, Given]:
    """``name=value`` flags by name; the last one of a name counts, as it does for the engine."""
    found: dict[str, Given] = {}
    for given in parsed.flags.get(flag, ()):
        name, _equals, value = given.value.partition("=")
        found[name] = Given(value, given.at, given.spelled)
    return found


def _typographic(words: Sequence[Word], file: str, command: str) -> list[FlagFault]:
    """Words that begin with a long dash, or hold curly quotes where a flag's value stands."""
    found = []
    for word in words:
        dash = re.match(f"-?[{_DASHES}]+-?[a-zA-Z]", word.value)
        quote = re.match(f"(--?[a-z-]+=)?[{_QUOTES}]", word.value)
        if dash or quote:
            place = Position(file, word.line, word.column)
            found.append(FlagFault(place, command, "typographic", word.value))
    return found
