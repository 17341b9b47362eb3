# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Compose's variables: ``$NAME``, ``${NAME:-default}`` and the other forms, nested ones too. Pure.

The grammar is that of compose-go's template package, seen with Compose 2.26.1 and 2.40.3: a dollar
sign before anything but a name or a brace stays as it is; what stands in braces must fit.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

_NAME = re.compile(r"[_a-zA-Z][_a-zA-Z0-9]*")
_OPERATOR = re.compile(r":?[-+?]")
# Defaults within defaults, each of which is read by a call of its own.
_DEEPEST = 20


@dataclass(frozen=True)
class Interpolated:
    """A text with its variables put in.

    ``open_names`` are the variables whose value is not known and that have no default: they stay
    in the text as ``${NAME}``. ``invalid`` are the parts in braces that Compose refuses.
    """

    text: str
    open_names: frozenset[str] = frozenset()
    invalid: tuple[str, ...] = ()


def interpolate(text: str, known: Mapping[str, str], depth: int = 0) -> Interpolated:
    """``text`` as Compose would read it with the variables ``known``.

    A default is taken where the variable is not known, since that is what happens on a host where
    nobody set it.
    """
    if "$" not in text:
        return Interpolated(text)
    if depth > _DEEPEST:
        return Interpolated(text, invalid=(text,))
    done: list[str] = []
    names: set[str] = set()
    invalid: list[str] = []
    at = 0
    while at < len(text):
        dollar = text.find("$", at)
        if dollar < 0:
            done.append(text[at:])
            break
        done.append(text[at:dollar])
        following = text[dollar + 1 : dollar + 2]
        bare = _NAME.match(text, dollar + 1)
        if following == "$":
            done.append("$")
            at = dollar + 2
        elif following == "{":
            end = _closing(text, dollar + 1)
            found = _braced(text[dollar + 2 : end], known, depth) if end > 0 else None
            at = end + 1 if end > 0 else len(text)
            if found is None:
                invalid.append(text[dollar:at])
                done.append(text[dollar:at])
            else:
                done.append(found.text)
                names |= found.open_names
                invalid += found.invalid
        elif bare:
            name = bare.group(0)
            at = bare.end()
            if name in known:
                done.append(known[name])
            else:
                names.add(name)
                done.append("${" + name + "}")
        else:
            done.append("$")
            at = dollar + 1
    return Interpolated("".join(done), frozenset(names), tuple(invalid))


def _closing(text: str, start: int) -> int:
    """The place of the brace that closes the one at ``start``; -1 where there is none."""
    depth = 0
    for place in range(start, len(text)):
        if text[place] == "{" and (place == start or text[place - 1] == "$"):
            depth += 1
        elif text[place] == "}":
            depth -= 1
            if depth == 0:
                return place
    return -1


def _braced(inside: str, known: Mapping[str, str], depth: int) -> Interpolated | None:
    """What stands between the braces, put in; None where Compose refuses it."""
    match = _NAME.match(inside)
    if match is None:
        return None
    name, rest = match.group(0), inside[match.end() :]
    if not rest:
        if name in known:
            return Interpolated(known[name])
        return Interpolated("${" + name + "}", frozenset((name,)))
    operator = _OPERATOR.match(rest)
    if operator is None:
        return None
    word = rest[operator.end() :]
    filled = bool(known.get(name)) if operator.group(0)[0] == ":" else name in known
    kind = operator.group(0)[-1]
    if kind == "+":
        return interpolate(word, known, depth + 1) if filled else Interpolated("")
    if filled:
        return Interpolated(known[name])
    if kind == "-":
        return interpolate(word, known, depth + 1)
    # ${NAME:?text}: Compose stops unless somebody sets it, so somebody does.
    return Interpolated("${" + name + "}", frozenset((name,)))
