# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Flags as the Go library pflag reads them: docker, dockerd, podman, nerdctl, kubectl. Pure.

The library stops at the first flag that it does not know. Here reading goes on, so that one run
tells of everything; whether the word behind an unknown flag is its value is then a guess.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ..model import Given, Position
from .shell_parts import Word

# Kinds of flags: a switch has no value of its own word, a list is given repeatedly.
SWITCH, VALUE, LIST = "switch", "value", "list"

_TRUTHS = ("1", "t", "T", "TRUE", "true", "True", "0", "f", "F", "FALSE", "false", "False")
# What stands behind an unknown flag and is no image: a number, a size, a truth word, a pair.
_VALUE_LIKE = re.compile(r"[-+]?[0-9.]+[a-zA-Z%]{0,3}$|(true|false|on|off|yes|no|auto|all)$|\w+=")


@dataclass(frozen=True)
class Table:
    """The flags of one command.

    ``kinds`` is by long name, ``shorts`` gives the long name of a letter, ``aliases`` the name
    that another spelling means.
    """

    kinds: Mapping[str, str]
    shorts: Mapping[str, str] = field(default_factory=dict)
    aliases: Mapping[str, str] = field(default_factory=dict)

    def name(self, written: str) -> str | None:
        """The long name a written one means; None where the command does not know it."""
        name = self.aliases.get(written, written)
        return name if name in self.kinds else None


@dataclass(frozen=True)
class Fault:
    """What the command's own parser refuses: ``kind`` is ``needs-argument``, ``not-a-switch-value``
    or ``bad-syntax``; ``flag`` is as written, ``value`` what was given to it.
    """

    at: Position
    kind: str
    flag: str
    value: str = ""


@dataclass
class Parsed:
    """Flags by long name, unknown ones, faults, and the words that are no flags."""

    flags: dict[str, list[Given]] = field(default_factory=dict)
    unknown: list[Given] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    rest: list[Word] = field(default_factory=list)
    skipped: list[Word] = field(default_factory=list)

    def add(self, name: str, given: Given) -> None:
        """One more value of a flag."""
        self.flags.setdefault(name, []).append(given)

    def frozen(self) -> dict[str, tuple[Given, ...]]:
        """The flags with tuples, as documents have them."""
        return {name: tuple(given) for name, given in self.flags.items()}


def parse(words: Sequence[Word], table: Table, file: str, interspersed: bool = False) -> Parsed:
    """Read flags from ``words``; with ``interspersed`` also behind the first word that is none."""
    return _Parser(words, table, file, interspersed).run()


class _Parser:
    def __init__(self, words: Sequence[Word], table: Table, file: str, interspersed: bool) -> None:
        self.words = words
        self.table = table
        self.file = file
        self.interspersed = interspersed
        self.next = 0
        self.parsed = Parsed()

    def run(self) -> Parsed:
        while self.next < len(self.words):
            word = self.words[self.next]
            self.next += 1
            text = word.value
            if text == "--":
                self.parsed.rest.extend(self.words[self.next :])
                break
            if len(text) < 2 or not text.startswith("-"):
                if self._holds_flags(word):
                    self.parsed.skipped.append(word)
                    continue
                self.parsed.rest.append(word)
                if not self.interspersed:
                    self.parsed.rest.extend(self.words[self.next :])
                    break
            elif text.startswith("--"):
                self._long(word)
            else:
                self._shorts(word)
        return self.parsed

    def _place(self, word: Word) -> Position:
        return Position(self.file, word.line, word.column)

    def _holds_flags(self, word: Word) -> bool:
        """Is this an unquoted variable that stands for flags, as $DOCKER_OPTS does?"""
        if not word.splits or self.interspersed:
            return False
        name = re.sub(r"[^A-Z]", "", word.value.upper())
        if re.search(r"IMAGE|IMG|TAG|REPO", name):
            return False
        if re.search(r"OPT|ARG|FLAG|PARAM|GPU|MOUNT|VOL|ENV|NET|PORT|DEVICE|LIMIT", name):
            return True
        # A known flag behind it, and something behind that: the image is still to come.
        behind = [other.value for other in self.words[self.next :]]
        first = behind[0] if len(behind) > 1 else ""
        known = first.startswith("--") and self.table.name(first[2:].partition("=")[0])
        return bool(known)

    def _take_value(self) -> Word | None:
        if self.next >= len(self.words):
            return None
        self.next += 1
        return self.words[self.next - 1]

    def _long(self, word: Word) -> None:
        written, equals, value = word.value[2:].partition("=")
        spelled = "--" + written
        if written.startswith("-") or not written:
            self.parsed.faults.append(Fault(self._place(word), "bad-syntax", word.value))
            return
        name = self.table.name(written)
        if name is None:
            self._unknown(word, spelled, value, bool(equals))
        elif equals:
            self._store(word, name, spelled, value)
        elif self.table.kinds[name] == SWITCH:
            self._store(word, name, spelled, "true")
        else:
            self._store_next(word, name, spelled)

    def _shorts(self, word: Word) -> None:
        letters = word.value[1:]
        while letters:
            letter, letters = letters[0], letters[1:]
            spelled = "-" + letter
            name = self.table.shorts.get(letter)
            if name is None:
                # A long flag with one dash, or a letter that is none: the rest cannot be read.
                whole, equals, value = word.value.partition("=")
                self._unknown(word, whole, value, bool(equals))
                return
            if letters.startswith("="):
                self._store(word, name, spelled, letters[1:])
                return
            if self.table.kinds[name] == SWITCH:
                self._store(word, name, spelled, "true")
            elif letters:
                self._store(word, name, spelled, letters)
                return
            else:
                self._store_next(word, name, spelled)

    def _store_next(self, word: Word, name: str, spelled: str) -> None:
        value = self._take_value()
        if value is None:
            self.parsed.faults.append(Fault(self._place(word), "needs-argument", spelled))
            return
        self._store(word, name, spelled, value.value)

    def _store(self, word: Word, name: str, spelled: str, value: str) -> None:
        if self.table.kinds[name] == SWITCH and value not in _TRUTHS and "$" not in value:
            fault = Fault(self._place(word), "not-a-switch-value", spelled, value)
            self.parsed.faults.append(fault)
        self.parsed.add(name, Given(value, self._place(word), spelled))

    def _unknown(self, word: Word, spelled: str, value: str, has_value: bool) -> None:
        if not has_value and self.next < len(self.words):
            behind = self.words[self.next]
            more = len(self.words) - self.next > 1
            is_flag = behind.value.startswith("-") and len(behind.value) > 1
            flag_follows = more and self.words[self.next + 1].value.startswith("-")
            if not is_flag and more and (flag_follows or _VALUE_LIKE.match(behind.value)):
                value = behind.value
                self.next += 1
        self.parsed.unknown.append(Given(value, self._place(word), spelled))
