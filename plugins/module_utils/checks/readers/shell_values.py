# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Variables of a shell script whose values can be known without running it. Pure.

Known are those that the script gives one value, once: ``GPUS="--gpus all"``. One that is set in
two branches, read, or the output of a command stays ``$GPUS``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from .shell_parts import Part, RawCommand, RawWord, Word, variable_of

_ASSIGNS = re.compile(r"([A-Za-z_]\w*)(\+?)=(.*)$", re.DOTALL)
_DECLARES = ("export", "local", "declare", "typeset", "readonly")
# A value so long is no option of a command.
_LONGEST = 4000
# How many characters one script may put in for its variables, all together: a few lines could
# otherwise stand for gigabytes. Beyond it variables stay as they are written.
BUDGET = 400_000


class Values:
    """What is known of the variables of one script."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}
        self._arrays: dict[str, list[Word]] = {}
        self._unknown: set[str] = set()
        self._budget = BUDGET

    def _spend(self, length: int) -> bool:
        """May so many characters more be put in?"""
        self._budget -= length + 1
        return self._budget >= 0

    def learn(self, commands: Iterable[RawCommand]) -> None:
        """Take the assignments of a whole script; those that come twice are not known."""
        for command in commands:
            for written, words in command.arrays:
                self._array(written, words)
            words = command.words
            declares = bool(words) and words[0].text in _DECLARES
            names = [] if declares else _loop_names(words)
            self._unknown.update(names)
            alone = declares or all(_ASSIGNS.match(word.text) for word in words)
            for word in words[1:] if declares else words:
                match = _ASSIGNS.match(word.text)
                if match is None or not word.parts or word.parts[0].quoted:
                    if declares:
                        continue
                    break
                # NAME=value before a command sets it for that command only.
                if alone:
                    self._assign(match.group(1), match.group(2), word)

    def _array(self, written: str, words: list[RawWord]) -> None:
        name = written.rstrip("=+")
        if "+" not in written and (name in self._arrays or name in self._texts):
            self._unknown.add(name)
            return
        known = self._arrays.setdefault(name, [])
        known.extend(word for raw in words for word in self.expand(raw))
        if len(known) > _LONGEST:
            self._unknown.add(name)

    def _assign(self, name: str, plus: str, word: RawWord) -> None:
        value = self._value(word, name)
        if value is None or (name in self._texts and not plus) or name in self._arrays:
            self._unknown.add(name)
            return
        whole = self._texts.get(name, "") + value
        if (plus and name not in self._texts) or len(whole) > _LONGEST:
            self._unknown.add(name)
        self._texts[name] = whole

    def _value(self, word: RawWord, name: str) -> str | None:
        """The value assigned by ``name=value``; None when something in it is not known."""
        parts = []
        for place, part in enumerate(word.parts):
            text = part.text
            if place == 0:
                head = _ASSIGNS.match(text)
                if head is None:
                    return None
                text = head.group(3)
            if part.kind == "text":
                parts.append(text)
                continue
            own = variable_of(part) == name
            known = None if own else self.known(variable_of(part))
            if known is None and part.default is not None and "$" not in part.default:
                known = _unquoted(part.default)
            if known is None or part.kind == "command":
                return None
            parts.append(known)
        return "".join(parts)

    def known(self, name: str) -> str | None:
        """The value of a variable; None when it cannot be known."""
        return None if name in self._unknown else self._texts.get(name)

    def expand(self, raw: RawWord) -> list[Word]:
        """The words that ``raw`` becomes: none, one or several."""
        array = self._whole_array(raw)
        if array is not None:
            return [
                Word(word.value, raw.line, raw.column, word.variables, False, raw.raw, raw.offset)
                for word in array
            ]
        pieces: list[tuple[str, bool]] = []  # text, and whether blanks in it part words
        unknown: set[str] = set()
        for part in raw.parts:
            text = part.text
            if part.kind == "name":
                value = self.known(variable_of(part))
                if value is None and part.default is not None and "$" not in part.default:
                    value = _unquoted(part.default)
                if value is None or not self._spend(len(value)):
                    unknown.add(variable_of(part))
                    pieces.append((text, False))
                else:
                    pieces.append((value, not part.quoted))
            else:
                if part.kind == "command":
                    unknown.add(text)
                pieces.append((text, False))
        splits = bool(unknown) and len(raw.parts) == 1 and not raw.parts[0].quoted
        quoted = any(part.quoted for part in raw.parts)
        texts = _split(pieces, quoted)
        names = frozenset(unknown)
        return [
            Word(text, raw.line, raw.column, names, splits, raw.raw, raw.offset) for text in texts
        ]

    def _whole_array(self, raw: RawWord) -> list[Word] | None:
        if len(raw.parts) not in (1, 2):
            return None
        parts: tuple[Part, ...] = tuple(part for part in raw.parts if part.text)
        if len(parts) != 1 or parts[0].kind != "name" or "[" not in parts[0].text:
            return None
        name = variable_of(parts[0])
        array = None if name in self._unknown else self._arrays.get(name)
        affordable = array is not None and self._spend(sum(len(w.value) + 1 for w in array))
        return array if affordable else None


def _split(pieces: list[tuple[str, bool]], quoted: bool) -> list[str]:
    words = [""]
    for text, parts_words in pieces:
        if not parts_words:
            words[-1] += text
            continue
        found = text.split()
        if not found:
            continue
        if text[0].isspace() and words[-1]:
            words.append("")
        words[-1] += found[0]
        words.extend(found[1:])
        if text[-1].isspace():
            words.append("")
    if words[-1] == "" and not (quoted and len(words) == 1):
        words.pop()
    return words


def _unquoted(default: str) -> str:
    """The word of ``${NAME:-word}``; quotes around it are the shell's."""
    match = re.match(r"(['\"])(.*)\1$", default, re.DOTALL)
    return match.group(2) if match else default


def _loop_names(words: list[RawWord]) -> list[str]:
    """The variables that a ``for`` or ``read`` sets."""
    texts = [word.text for word in words]
    if texts[:1] == ["read"]:
        return [text for text in texts[1:] if not text.startswith("-")]
    if "for" in texts[:2] and len(texts) > 2:
        return [texts[texts.index("for") + 1]]
    return []
