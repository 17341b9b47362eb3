# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A shell script as simple commands, each word with its place. Pure.

Quotes, continuation lines, comments, operators, redirections, here-documents, arrays and
substitutions are understood as a POSIX shell (and bash) does. Nothing is run: a variable keeps its
text ``$NAME`` unless ``shell_values`` knows its value.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...trees.places import Places
from .shell_parts import Part, RawCommand, RawWord, joined

# A substitution inside a substitution …: deeper ones are left alone.
LIMIT_DEPTH = 12

_PLAIN = re.compile(r"[^\s\\'\"$`;|&()<>]+")
_IN_QUOTES = re.compile(r"[^\"\\$`]+")
_NAME = re.compile(r"\$([A-Za-z_]\w*|[0-9@*#?$!-])")
_OPERATOR = re.compile(r"&>>|&>|&&|&|\|\||\|&|\||;;&|;;|;&|;|\(|\)")
_REDIRECT = re.compile(r"<<<|<<-|<<|<&|<>|<|>>|>&|>\||>")
_SHORT_COMMAND = re.compile(r"\$\([^()'\"\\]*\)")
_SHORT_BRACES = re.compile(r"\$\{[^{}]*\}")
_EXPANSION = re.compile(r"(\w+)(?:\[[@*]\])?(?::?[-=](.*))?$", re.DOTALL)
_DESCRIPTOR = re.compile(r"[0-9]+(?=[<>])|&(?=>)")
_ARRAY = re.compile(r"[A-Za-z_]\w*\+?=$")
_ANSI = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "e": "\x1b", "\\": "\\", "'": "'"}
# A line that goes on: as a shell has it, and as PowerShell and cmd write it in how-tos.
_CONTINUES = re.compile(r"\\\r?\n|(?<=[ \t])[`^][ \t]*\r?\n")
# What a text leaves to its reader: <path to data>, <image>. A file that is read has a blank
# before the next redirection, or a name right behind it.
_STANDS_FOR = re.compile(
    r"<\w[^<>\n|&;$`\\]{0,120}(?<![ \t])(?<![ \t]\d)>(?![\w(&>])|<\w>(?![\w(&>])"
)
_PATH_STANDS_FOR = re.compile(r"(?<=[=:,])</[^<>\s|&;$`\\]{1,120}>(?=[\s:,]|$)")


class Lexer:
    """Reads the simple commands of one stretch of a text."""

    def __init__(self, text: str, places: Places, start: int = 0, end: int | None = None) -> None:
        self.text = text
        self.places = places
        self.offset = start
        self.end = len(text) if end is None else end
        self._heredocs: list[tuple[str, bool]] = []
        self._command = RawCommand()
        self._unclosed: set[str] = set()

    def commands(self) -> Iterator[RawCommand]:
        """The simple commands in order."""
        while True:
            self._blanks()
            if self.offset >= self.end:
                break
            operator = self._operator()
            if operator is not None:
                if self._command:
                    yield self._command
                self._command = RawCommand(before=operator)
                if operator == "\n":
                    self._skip_heredocs()
                continue
            self._word_or_redirect()
        if self._command:
            yield self._command

    def _blanks(self) -> None:
        """Skip blanks, continuation lines and comments."""
        while self.offset < self.end:
            mark = self.text[self.offset]
            if mark in " \t\r\f\v\u00a0":
                self.offset += 1
                continue
            continued = _CONTINUES.match(self.text, self.offset, self.end)
            if continued:
                self.offset = continued.end()
                continue
            if mark != "#":
                return
            newline = self.text.find("\n", self.offset, self.end)
            stop = self.end if newline < 0 else newline
            self._command.comment = self.text[self.offset + 1 : stop].strip()
            self.offset = stop

    def _operator(self) -> str | None:
        if self.text[self.offset] == "\n":
            self.offset += 1
            return "\n"
        match = _OPERATOR.match(self.text, self.offset, self.end)
        if match is None or match.group().startswith("&>"):
            return None
        self.offset = match.end()
        return match.group()

    def _skip_heredocs(self) -> None:
        for word, tabs in self._heredocs:
            while self.offset < self.end:
                newline = self.text.find("\n", self.offset, self.end)
                stop = self.end if newline < 0 else newline
                line = self.text[self.offset : stop].rstrip("\r")
                self.offset = min(stop + 1, self.end)
                if (line.lstrip("\t") if tabs else line) == word:
                    break
        self._heredocs = []

    def _word_or_redirect(self) -> None:
        number = _DESCRIPTOR.match(self.text, self.offset, self.end)
        at = number.end() if number else self.offset
        match = _REDIRECT.match(self.text, at, self.end)
        if match and self._placeholder():
            match = None
        if match is None:
            word = self._word()
            array = _ARRAY.match(word.text)
            if array and word.bare and self.text[self.offset : self.offset + 1] == "(":
                self._command.arrays.append((word.text, self._array()))
            else:
                self._command.words.append(word)
            return
        self.offset = match.end()
        while self.offset < self.end and self.text[self.offset] in " \t":
            self.offset += 1
        if self.offset >= self.end or self.text[self.offset] in "\n;|&()":
            return
        target = self._word()
        if match.group() in ("<<", "<<-"):
            self._heredocs.append((target.text, match.group() == "<<-"))
        self._command.redirects.append((match.group(), target))

    def _array(self) -> list[RawWord]:
        self.offset += 1
        inside: list[RawWord] = []
        while True:
            self._blanks()
            if self.offset >= self.end:
                return inside
            mark = self.text[self.offset]
            if mark == ")":
                self.offset += 1
                return inside
            if mark in "\n;|&(<>":
                self.offset += 1
                continue
            inside.append(self._word())

    def _word(self) -> RawWord:
        start = self.offset
        parts: list[Part] = []
        while self.offset < self.end:
            plain = _PLAIN.match(self.text, self.offset, self.end)
            if plain:
                self.offset = plain.end()
                parts.append(Part("text", plain.group(), False))
                continue
            mark = self.text[self.offset]
            if mark == "\\":
                self._escape(parts)
            elif mark == "'":
                self._single(parts)
            elif mark == '"':
                self._double(parts)
            elif mark in "$`":
                self._dollar(parts, False)
            elif placeholder := self._placeholder():
                # With a $ in it, as all that is not known.
                parts.append(Part("command", "$" + placeholder, True))
                self.offset += len(placeholder)
            else:
                break
        if self.offset == start:  # an operator's first character alone: never stand still
            self.offset += 1
            parts.append(Part("text", self.text[start], False))
        line, column = self.places.at(start)
        raw = self.text[start : self.offset]
        return RawWord(joined(parts), line, column, start, raw)

    def _placeholder(self) -> str:
        """What stands here for a value that the reader is to put in; "" where none does."""
        for pattern in (_STANDS_FOR, _PATH_STANDS_FOR):
            if match := pattern.match(self.text, self.offset, self.end):
                return match.group()
        return ""

    def _escape(self, parts: list[Part]) -> None:
        continued = re.compile(r"\\\r?\n").match(self.text, self.offset, self.end)
        if continued:
            self.offset = continued.end()
            return
        parts.append(Part("text", self.text[self.offset + 1 : self.offset + 2], True))
        self.offset = min(self.offset + 2, self.end)

    def _single(self, parts: list[Part]) -> None:
        close = self.text.find("'", self.offset + 1, self.end)
        if close < 0:  # an apostrophe in prose
            parts.append(Part("text", "'", False))
            self.offset += 1
            return
        parts.append(Part("text", self.text[self.offset + 1 : close], True))
        self.offset = close + 1

    def _double(self, parts: list[Part]) -> None:
        start = self.offset
        self.offset += 1
        inside: list[Part] = [Part("text", "", True)]
        while self.offset < self.end:
            plain = _IN_QUOTES.match(self.text, self.offset, self.end)
            if plain:
                inside.append(Part("text", plain.group(), True))
                self.offset = plain.end()
                continue
            mark = self.text[self.offset]
            if mark == '"':
                self.offset += 1
                parts.extend(inside)
                return
            if mark == "\\":
                behind = self.text[self.offset + 1 : self.offset + 2]
                kept = {"\n": "", "$": "$", '"': '"', "\\": "\\", "`": "`"}.get(behind)
                inside.append(Part("text", "\\" + behind if kept is None else kept, True))
                self.offset += 2
            else:
                self._dollar(inside, True)
        parts.append(Part("text", '"', False))
        self.offset = start + 1

    def _dollar(self, parts: list[Part], quoted: bool) -> None:
        text, start = self.text, self.offset
        if text[start] == "`":
            self._backtick(parts, quoted)
            return
        behind = text[start + 1 : start + 2]
        if behind == "'" and not quoted:
            self._ansi(parts)
        elif behind == '"' and not quoted:
            self.offset += 1
        elif behind == "(":
            self._parenthesis(parts, quoted)
        elif behind == "{":
            self._braces(parts, quoted)
        else:
            name = _NAME.match(text, start, self.end)
            self.offset = name.end() if name else start + 1
            kind = "name" if name else "text"
            parts.append(Part(kind, text[start : self.offset], quoted))

    def _ansi(self, parts: list[Part]) -> None:
        match = re.compile(r"\$'((?:[^'\\]|\\.)*)'", re.DOTALL).match(
            self.text, self.offset, self.end
        )
        if match is None:
            parts.append(Part("text", "$", False))
            self.offset += 1
            return
        plain = re.sub(
            r"\\(.)", lambda found: _ANSI.get(found.group(1), found.group()), match.group(1)
        )
        parts.append(Part("text", plain, True))
        self.offset = match.end()

    def _backtick(self, parts: list[Part], quoted: bool) -> None:
        start = self.offset
        close = start + 1
        while (close := self.text.find("`", close, self.end)) >= 0:
            if self.text[close - 1] != "\\":
                break
            close += 1
        if close < 0:
            parts.append(Part("text", "`", quoted))
            self.offset += 1
            return
        self._command.inner.append((start + 1, close))
        parts.append(Part("command", self.text[start : close + 1], quoted))
        self.offset = close + 1

    def _parenthesis(self, parts: list[Part], quoted: bool) -> None:
        """``$(…)`` or ``$((…))``."""
        start = self.offset
        short = _SHORT_COMMAND.match(self.text, start, self.end)
        close = short.end() - 1 if short else None
        if close is None and "(" not in self._unclosed:
            close = self._closing(start + 2)
        if close is None:
            # Looked for once in vain, it is not looked for again: that would take too long.
            self._unclosed.add("(")
            parts.append(Part("text", "$", quoted))
            self.offset += 1
            return
        if not self.text.startswith("((", start + 1):
            self._command.inner.append((start + 2, close))
        parts.append(Part("command", self.text[start : close + 1], quoted))
        self.offset = close + 1

    def _closing(self, offset: int) -> int | None:
        """Where the parenthesis that is open at ``offset`` closes; quotes are respected."""
        depth = 1
        marks = re.compile(r"\\.|'[^']*'|\"(?:[^\"\\]|\\.)*\"|[()]", re.DOTALL)
        for match in marks.finditer(self.text, offset, self.end):
            if match.group() == "(":
                depth += 1
            elif match.group() == ")":
                depth -= 1
                if depth == 0:
                    return match.start()
        return None

    def _braces(self, parts: list[Part], quoted: bool) -> None:
        start = self.offset
        short = _SHORT_BRACES.match(self.text, start, self.end)
        close = short.end() - 1 if short else None
        if close is None and "{" not in self._unclosed:
            close = self._closing_brace(start)
        if close is not None:
            inside = self.text[start + 2 : close]
            match = _EXPANSION.match(inside)
            default = match.group(2) if match else None
            kind = "name" if match else "command"
            parts.append(Part(kind, self.text[start : close + 1], quoted, default))
            self.offset = close + 1
            return
        self._unclosed.add("{")
        parts.append(Part("text", "$", quoted))
        self.offset += 1

    def _closing_brace(self, start: int) -> int | None:
        depth = 0
        for match in re.compile("[{}]").finditer(self.text, start, min(self.end, start + 4000)):
            depth += 1 if match.group() == "{" else -1
            if depth == 0:
                return match.start()
        return None
