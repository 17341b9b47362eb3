# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Texts without their secrets, in front of everything that is shown. Pure.

What is secret :mod:`.spans` finds, by the names of keys and by the looks of values, in
JSON, TOML, YAML, INI, systemd, environment and apt files. A secret becomes ``<redacted>``, on
however many lines it stood; one that changed is ``<redacted, changed>`` where a diff adds it.
"""

from __future__ import annotations

import base64
import difflib
import re
from collections.abc import Sequence

from . import names, spans

HIDDEN = "<redacted>"
CHANGED = "<redacted, changed>"

# Noncharacters of Unicode: they have no meaning in any text, so they can stand for a secret while
# two texts are compared. \ufdd0 7 \ufdd1 is the secret number 7.
_OPEN, _CLOSE = "\ufdd0", "\ufdd1"
_MARK = re.compile(f"{_OPEN}(\\d+){_CLOSE}")
_CONTEXT = 3


def redact(path: str, text: str) -> str:
    """``text`` of the file at ``path`` ("" for what is no file) with every secret hidden."""
    return _MARK.sub(HIDDEN, _Hider(path, text).mark(text))


def phrase(text: str) -> str:
    """A line that is not out of a file, such as a name or a command line."""
    return redact("", text)


def value(name: str, text: str) -> str:
    """The value of the setting ``name``."""
    return HIDDEN if names.secret_name(name, text) else phrase(text)


def unified(path: str, before: str, after: str) -> tuple[str, ...]:
    """A unified diff of the file's two texts, each line without its newline, without file headers.

    () when they are the same. Secrets are compared, but not shown.
    """
    hider = _Hider(path, before, after)
    old, new = _lines(hider.mark(before)), _lines(hider.mark(after))
    found = list(difflib.unified_diff(old, new, n=_CONTEXT, lineterm=""))[2:]
    return tuple(_shown(found))


def pair(path: str, before: str, after: str) -> tuple[str, str]:
    """Both texts of a file for somebody who compares them himself, as Ansible does.

    A secret in ``after`` that ``before`` has not is ``<redacted, changed>``.
    """
    hider = _Hider(path, before, after)
    old, new = hider.mark(before), hider.mark(after)
    known = set(_MARK.findall(old))
    shown = _MARK.sub(lambda found: HIDDEN if found[1] in known else CHANGED, new)
    return _MARK.sub(HIDDEN, old), shown


class _Hider:
    """Replaces the secrets of some texts, and the same secrets wherever else they stand in them."""

    def __init__(self, path: str, *texts: str) -> None:
        self._whole = names.whole_file_is_secret(path)
        self._numbers: dict[str, int] = {}
        values: set[str] = set()
        for text in texts:
            for word in spans.values(text, spans.spans(text)):
                values.update((word, base64.b64encode(word.encode()).decode().rstrip("=")))
        # Long ones first: one may be a part of another.
        ordered = sorted(values, key=lambda one: (-len(one), one))
        self._again = re.compile("|".join(map(re.escape, ordered))) if ordered else None

    def mark(self, text: str) -> str:
        """Every secret as a mark; equal marks are equal secrets."""
        text = text.replace(_OPEN, "\ufffd").replace(_CLOSE, "\ufffd")
        if self._whole:
            return self._number(text) if text.strip() else text
        found = list(spans.spans(text))
        if self._again is not None:
            found.extend(match.span() for match in self._again.finditer(text))
        parts: list[str] = []
        position = 0
        for start, end in spans.merged(found):
            parts.extend((text[position:start], self._number(text[start:end])))
            position = end
        return "".join((*parts, text[position:]))

    def _number(self, secret: str) -> str:
        return f"{_OPEN}{self._numbers.setdefault(secret, len(self._numbers))}{_CLOSE}"


def _lines(text: str) -> list[str]:
    """Lines by newline only: a form feed or U+2028 is part of a line. A last line that has no
    newline differs from one that has.
    """
    if not text:
        return []
    lines = text.split("\n")
    last = lines.pop()
    return [*lines, f"{last}\n\\ No newline at end of file"] if last else lines


def _shown(found: Sequence[str]) -> list[str]:
    removed: dict[str, set[str]] = {}
    for line in found:
        if line.startswith("-"):
            removed.setdefault(_MARK.sub(HIDDEN, line[1:]), set()).update(_MARK.findall(line))
    known = {number for numbers in removed.values() for number in numbers}
    shown: list[str] = []
    for line in found:
        plain = _MARK.sub(HIDDEN, line)
        if line.startswith("+") and known:
            # The line that it replaces looks the same without the secret; otherwise any will do.
            former = removed.get(plain[1:], known)
            pieces = _MARK.split(line)  # every second one is a number
            pieces[1::2] = [HIDDEN if number in former else CHANGED for number in pieces[1::2]]
            plain = "".join(pieces)
        shown.extend(plain.split("\n"))
    return shown
