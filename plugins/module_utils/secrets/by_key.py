# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Values such as a module's arguments, without their secrets. Pure.

A text is hidden where the name of its key or its own form gives it away, as :mod:`.spans` finds it
in JSON: passwords in URLs, tokens, what stands under a key such as ``splunk-token``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any
from urllib.parse import unquote

from . import redact, spans

# A shorter one is an everyday word, and hiding that wherever it stands would tell it.
_SHORTEST = 4
_LONG = 8
_TEXT = re.compile(r'"(?:[^"\\]|\\.)*"')


def show(path: Sequence[str], value: Any) -> str:
    """``value`` of the key at ``path`` as JSON on one line, for a person."""
    shown = hidden(_nested(path, value))
    for name in path:
        if not isinstance(shown, dict):  # All below a name was hidden.
            break
        shown = shown[name]
    return json.dumps(shown, ensure_ascii=False)


def hidden(value: Any, name: str = "") -> Any:
    """A copy of ``value``, made of what JSON knows, with each secret as ``<redacted>``.

    ``name`` is that of the key it stands under.
    """
    if not isinstance(value, (dict, list, tuple, str)):
        return value
    return json.loads(_replaced(json.dumps({name: value}, ensure_ascii=False)))[name]


def secrets_of(*values: Any) -> tuple[str, ...]:
    """The secrets in ``values``, long ones first: texts of files as they are, all else as JSON.

    Of a user and a password in a URL also the password alone, and what it stands for.
    """
    found: set[str] = set()
    for value in values:
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        for start, end in spans.spans(text):
            piece = text[start:end]
            found.update(_words(piece))
            if text[end : end + 1] == "@":
                password = piece.partition(":")[2]
                found.update((password, unquote(password)))
    telling = (one for one in found if len(one) >= _SHORTEST and "\n" not in one)
    return tuple(sorted(telling, key=lambda one: (-len(one), one)))


def telling(secrets: Sequence[str]) -> list[str]:
    """Those that are no everyday words, and can be hidden wherever they stand without a doubt."""
    return [secret for secret in secrets if len(secret) >= _LONG]


def clean(text: str, secrets: Sequence[str]) -> str:
    """A sentence of ours that may quote what we were given: without ``secrets``, and without what
    its form gives away. What others wrote, such as a log, needs :func:`redact.phrase` as well.
    """
    for secret in secrets:
        text = text.replace(secret, redact.HIDDEN)
    parts: list[str] = []
    position = 0
    for start, end in spans.by_form(text):
        parts.extend((text[position:start], redact.HIDDEN))
        position = end
    return "".join((*parts, text[position:]))


def _nested(path: Sequence[str], value: Any) -> Any:
    for name in reversed(path):
        value = {name: value}
    return value


def _replaced(text: str) -> str:
    """JSON with a text in the place of every secret, whatever that was."""
    inside = [match.span() for match in _TEXT.finditer(text)]
    parts: list[str] = []
    position = 0
    for start, end in spans.spans(text):
        quoted = any(first < start < last for first, last in inside)
        word = redact.HIDDEN if quoted else json.dumps(redact.HIDDEN)
        parts.extend((text[position:start], word))
        position = end
    return "".join((*parts, text[position:]))


def _words(piece: str) -> list[str]:
    """The texts of a piece of JSON, or the piece itself."""
    for text in (piece, f'"{piece}"'):
        try:
            return _strings(json.loads(text))
        except ValueError:
            continue
    return [piece.strip("\"' \t")]


def _strings(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [text for inside in value.values() for text in _strings(inside)]
    if isinstance(value, list):
        return [text for inside in value for text in _strings(inside)]
    return [] if value is None or isinstance(value, bool) else [str(value)]
