# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where in a text something secret stands. Pure: text in, (start, end) out.

No list of formats is complete, and a secret that is shown once is lost. So a text that is JSON is
read as JSON, and every other one by rules that hide too much rather than too little: whatever
follows a word such as ``password`` or ``token`` on its line, with everything that a quote, a
bracket, a deeper indentation or a backslash carries on. Comments are read like the rest: a secret
that is commented out is still one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence

from .names import HARMLESS, NAME, STRONG, WEAK, secret_name
from .tokens import BEGINNING

Span = tuple[int, int]

# Words that a value follows after nothing but a space, as in netrc and apt's auth.conf.
_WORDS = r"(?i:password|passwd|passphrase|secret|token|api[-_]?key|credentials?|bearer)"
_SPACED = re.compile(rf"(?<![\w.]){_WORDS}[\"']?[ \t]+(?=[^\s=:])")
# --token VALUE, also as two elements of a list.
_OPTION = re.compile(
    rf"(?<![\w-])--?[\w.-]*(?:{STRONG}|{WEAK})[\w.-]*[\"']?(?:[ \t]*,[ \t]*|[ \t]+)(?=[^\s=:])"
)
# Password "x"; as in apt.conf.
_QUOTED = re.compile(rf"(?:{STRONG}|{WEAK})[\w.-]*[\"']?[ \t]+(?=[\"'])")
# As a directive: requirepass VALUE; Acquire::http::Password VALUE;
_FIRST = re.compile(r"\s*[\"']?(?P<word>[\w.:-]*[\w.-])[\"']?[ \t]+(?=[^\s=:])")
_USER_OPTION = re.compile(r"(?<![\w-])(?:-u|--user|--proxy-user)[= \t]+[\"']?(?=[^\s:]+:)")
_LOGIN = re.compile(r"\blogin\b.*?[ \t]-p[ \t]*(?=\S)")
# The value stands on the next line: a list of arguments, netrc, a long YAML key.
_NEXT_LINE = re.compile(
    rf"^(?:\s*[-?]?\s*[\"']?--?[\w.-]*(?:{STRONG}|{WEAK})[\w.-]*|\s*\?\s.*(?:{STRONG}|{WEAK}).*"
    rf"|(?!\s*#).*(?<![\w.-]){_WORDS})[\"']?\s*,?\s*$"
)
# name: API_TOKEN, with value: … on the line before or behind it.
_NAMED = re.compile(rf"(?i:name|key|id)[\"']?\s*[:=]\s*[\"']?[\w.-]*(?:{STRONG}|{WEAK})")
_VALUE = re.compile(r"^[\s#-]*[\"']?(?i:values?|data)[\"']?\s*[:=][ \t]*(?=\S)")

_HEADING = re.compile(r"^\s*\[\[?(?P<name>[^\[\]=]*|.*[\"'].*)\]\]?\s*(?:[#;].*)?$")
_SEPARATOR = re.compile(r"[=:>]")
_PREFIX = re.compile(r"^[ \t]*(?:#+[ \t]*)?(?:-[ \t]+)*")

# A key, a certificate request or a signature; certificates and public keys are public.
_PEM = re.compile(
    r"-----BEGIN (?![A-Z0-9 ]*(?:CERTIFICATE|PUBLIC KEY))[A-Z0-9 ]*-----"
    r"(?:.*?-----END [A-Z0-9 ]*-----|.*)",
    re.DOTALL,
)
_AUTHORITY = re.compile(r"(?<=://)[^\s\"'`<>]{0,4096}@")
# A text that is a URL and nothing else may have blanks in its password.
_BLANK_IN_URL = re.compile(r"[\w+.-]+://(?P<value>[^\s/@]*:[^@\n]*)@[^\s@]+$")
_USERINFO = re.compile(
    r"(?<![^\s\"'=,;(\[{])[^\s\"'=/:@,;()<>\[\]{}]{1,256}:(?!//)[^\s\"'@]{1,1024}(?=@[\w\[])"
)
_SCHEME = re.compile(r"(?i:\b(?:bearer|basic)[ \t]+)(?P<value>[\w.~+/=-]{8,})")
# Short forms of them, and hashes of passwords.
_SHAPES = re.compile(
    r"nvapi-[\w-]+|gh[opsur]_\w+|github_pat_\w+|glpat-[\w-]+|\bhf_\w{8,}|dckr_[a-z]+_[\w-]+"
    r"|\bAKIA[A-Z0-9]{12,}|\bxox[a-z]-[\w-]+|\bsk-[\w-]{16,}|\beyJ[\w-]{8,}\.[\w-]+(?:\.[\w-]*)?"
    r"|\$(?:2[aby]|[156y]|argon2\w*|pbkdf2[\w-]*)\$[^\s\"':]+"
)

# A line no person wrote. If a name is in it, all behind that name is hidden.
_LONG = 8192
_QUOTES = "\"'"
_CLOSING = {"{": "}", "[": "]", "(": ")"}


def spans(text: str) -> list[Span]:
    """What to hide in ``text``, ascending and apart from each other."""
    if text.lstrip()[:1] in ("{", "["):
        try:
            json.loads(text)
            return merged(_Json(text).spans())
        except (ValueError, RecursionError):
            pass  # Not JSON, whatever it is: the careful way.
    return _text_spans(text)


def by_form(text: str) -> list[Span]:
    """What its form alone gives away: keys, tokens, passwords in URLs. For our own sentences."""
    found: list[Span] = [match.span() for match in _PEM.finditer(text)]
    found.extend(match.span() for match in _SHAPES.finditer(text))
    found.extend(match.span() for match in BEGINNING.finditer(text))
    found.extend(match.span("value") for match in _SCHEME.finditer(text))
    found.extend(match.span() for match in _USERINFO.finditer(text))
    for match in _AUTHORITY.finditer(text):
        # An image's digest follows an @ too, but no colon stands before its first slash.
        if re.match(r"[^/]*[:@]", match.group()):
            found.append((match.start(), match.end() - 1))
    return _not_empty(text, found)


def _text_spans(text: str) -> list[Span]:
    return _not_empty(text, [*by_form(text), *_Lines(text).spans()])


def _not_empty(text: str, found: Iterable[Span]) -> list[Span]:
    return merged(
        (start, start + len(text[start:end].rstrip()))
        for start, end in found
        if text[start:end].strip(" \t\"',;")  # An empty value hides nothing.
    )


def merged(found: Iterable[Span]) -> list[Span]:
    """The same places, ascending, those that touch as one."""
    result: list[Span] = []
    for start, end in sorted(found):
        if end <= start:
            continue
        if result and start <= result[-1][1]:
            result[-1] = (result[-1][0], max(end, result[-1][1]))
        else:
            result.append((start, end))
    return result


class _Lines:
    """TOML, YAML, INI, systemd, environment and apt files, shell scripts, and what nobody knows."""

    def __init__(self, text: str) -> None:
        self._text = text

    def spans(self) -> Iterator[Span]:
        text, position, inside_secret = self._text, 0, False
        named = False  # The line before named a secret whose value stands beside it.
        value_before: Span | None = None
        while position < len(text):
            end = self._line_end(position)
            line = text[position:end]
            heading = _HEADING.match(line)
            if heading:
                inside_secret = bool(NAME.search(heading["name"]))
                position = end + 1
                continue
            starts = self._values(line, inside_secret)
            beside = _VALUE.match(line)
            if named and beside:
                starts.append(beside.end())
            short = len(line) <= _LONG and NAME.search(line) is not None
            named = short and _NAMED.search(line) is not None
            if value_before and named:
                yield value_before
            value_before = None
            if starts:
                stop = max(self._extent(position, line, start) for start in starts)
                yield position + min(starts), stop
                end = self._line_end(max(position, stop - 1))
            elif short and _NEXT_LINE.match(line):
                stop = self._next_line(end)
                yield end + 1, stop
                end = self._line_end(max(end, stop - 1))
            elif beside:
                value_before = position + beside.end(), end
            position = end + 1

    def _line_end(self, position: int) -> int:
        end = self._text.find("\n", position)
        return len(self._text) if end < 0 else end

    @staticmethod
    def _values(line: str, inside_secret: bool) -> list[int]:
        """Where secret values begin in a line."""
        named = NAME.search(line)
        if named and len(line) > _LONG:
            return [named.end()]
        starts: list[int] = []
        if inside_secret and line.strip() and not re.match(r"\s*[#;]", line):
            separator = re.search(r"[=:]", line)
            starts.append(separator.end() if separator else 0)
        for name in NAME.finditer(line):
            separator = _SEPARATOR.search(line, name.end())
            if separator is None:
                break
            if not name["strong"] and re.search(r"\s\S", line[name.end() : separator.start()]):
                continue  # "when a key is pressed:" is no key.
            value = line[separator.end() :].strip(" \t\"',;")
            if name["strong"] or not HARMLESS.fullmatch(value):
                starts.append(separator.end())
                break
        rules = (_SPACED, _OPTION, _QUOTED) if named else ()
        for rule in (*rules, _USER_OPTION, _LOGIN):
            match = rule.search(line)
            if match:
                starts.append(match.end())
        first = named and _FIRST.match(line)
        if first and NAME.search(first["word"]):
            starts.append(first.end())
        return [start + len(line[start:]) - len(line[start:].lstrip()) for start in starts]

    def _extent(self, position: int, line: str, start: int) -> int:
        """Where the value ends that begins at ``start`` of the line at ``position``."""
        text = self._text
        end = self._walk(position + start)
        value = text[position + start : end].strip()
        commented = line.lstrip()[:1] == "#"
        prefix = _PREFIX.match(line)
        separator = _SEPARATOR.search(line)
        if prefix and separator and line[separator.end() : start].strip() == "":
            column = prefix.end()  # Where the key stands, behind the dash of a list.
        else:
            column = len(line) - len(line.lstrip(" \t#" if commented else None))
        # YAML and JSON only: comments, anchors and tags are no value yet.
        empty = line[:start].rstrip()[-1:] == ":" and value[:1] in ("", "#", "&", "!")
        # Deeper lines carry it on; so does a list at the very indentation of an empty YAML key.
        position = end
        while position < len(text):
            stop = self._line_end(position + 1)
            follower = text[position + 1 : stop]
            seen = follower.replace("#", " ", 2) if commented else follower
            bare = seen.lstrip()
            depth = len(seen) - len(bare)
            position = stop
            if not bare:
                continue
            if depth <= column:
                if not empty or depth < column or bare[0] not in "-\"'{[":
                    break
                stop = position = max(stop, self._walk(stop - len(bare)))
            end = stop
        return end

    def _next_line(self, end: int) -> int:
        """Where the value ends that begins on the first line behind ``end`` that is not blank."""
        while end < len(self._text):
            stop = self._line_end(end + 1)
            bare = self._text[end + 1 : stop].lstrip(" \t-")
            if bare.strip():
                return max(stop, self._walk(stop - len(bare)))
            end = stop
        return len(self._text)

    def _walk(self, start: int) -> int:
        """The end of a value: of its line, or of where its quotes and brackets close."""
        text = self._text
        for triple in ('"""', "'''"):
            if text.startswith(triple, start):
                close = text.find(triple, start + 3)
                return len(text) if close < 0 else self._line_end(close + 3)
        quote, depth, position = "", 0, start
        brackets = text[start : start + 1] in _CLOSING
        while position < len(text):
            char = text[position]
            if char == "\\" and quote != "'":
                position += 2
                continue
            if quote:
                quote = "" if char == quote else quote
            elif char == "\n" and depth <= 0:
                return position
            elif char in _QUOTES:
                # The apostrophe of "it's" opens nothing.
                before = text[position - 1 : position]
                quote = char if position == start or not before.isalnum() else ""
            elif brackets and char in "{[(":
                depth += 1
            elif brackets and char in "}])":
                depth -= 1
            elif char == "#" and text[position - 1 : position].isspace():
                position = self._line_end(position)
                continue
            position += 1
        return len(text)


_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+')
_OPTION_ELEMENT = re.compile(rf"--?[\w.-]*(?:{STRONG}|{WEAK})[\w.-]*")
_NAME_KEYS = frozenset({"name", "key", "id", "variable"})


class _Json:
    """A text that :mod:`json` reads."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = [match.span() for match in _TOKEN.finditer(text)]
        self._found: list[Span] = []

    def spans(self) -> list[Span]:
        self._value(0, False, "")
        return self._found

    def _raw(self, index: int) -> str:
        start, end = self._tokens[index]
        return self._text[start:end]

    def _value(self, index: int, secret: bool, name: str) -> int:
        """Look through the value whose first token is ``index``; the index behind it."""
        first = self._raw(index)
        if first in ("{", "["):
            behind = self._behind(index)
            if secret and behind > index + 2:
                self._found.append((self._tokens[index][0], self._tokens[behind - 1][1]))
            elif first == "{":
                self._object(index + 1)
            else:
                self._list(index + 1)
            return behind
        if first[0] == '"':
            self._string(index, secret, name)
        elif secret and first not in ("null", "true", "false") and secret_name(name, first):
            self._found.append(self._tokens[index])
        return index + 1

    def _object(self, index: int) -> None:
        values: list[int] = []
        named = False
        while self._raw(index) != "}":
            self._string(index, False, "")
            key = str(json.loads(self._raw(index)))
            start = index + 2  # behind the colon
            index = self._value(start, bool(NAME.search(key)), key)
            if key.lower() in ("value", "values", "data"):
                values.append(start)
            elif key.lower() in _NAME_KEYS and self._raw(start)[0] == '"':
                named = named or bool(NAME.search(self._raw(start)))
            if self._raw(index) == ",":
                index += 1
        for start in values if named else ():
            self._value(start, True, "secret")

    def _list(self, index: int) -> None:
        secret = False
        while self._raw(index) != "]":
            raw = self._raw(index)
            is_option = raw[0] == '"' and bool(_OPTION_ELEMENT.fullmatch(json.loads(raw)))
            index = self._value(index, secret, "secret" if secret else "")
            secret = is_option
            if self._raw(index) == ",":
                index += 1

    def _string(self, index: int, secret: bool, name: str) -> None:
        start, end = self._tokens[index]
        value = str(json.loads(self._raw(index)))
        if secret and secret_name(name, value):
            self._found.append((start + 1, end - 1))
            return
        inside = spans(value)
        blank = _BLANK_IN_URL.match(value)
        if blank:
            inside = merged((*inside, blank.span("value")))
        if value != self._text[start + 1 : end - 1] and inside:
            # With escapes in it the places differ.
            self._found.append((start + 1, end - 1))
        else:
            self._found.extend((start + 1 + one, start + 1 + other) for one, other in inside)

    def _behind(self, index: int) -> int:
        """The index of the token behind the bracket that closes the one at ``index``."""
        depth = 0
        for position in range(index, len(self._tokens)):
            raw = self._raw(position)
            if raw in ("{", "["):
                depth += 1
            elif raw in ("}", "]"):
                depth -= 1
                if depth == 0:
                    return position + 1
        return len(self._tokens)


def values(text: str, found: Sequence[Span]) -> list[str]:
    """The secrets themselves that are recognisable elsewhere, to be hidden there as well.

    Only single words with a digit: hiding an everyday word wherever it stands would tell that it is
    the secret.
    """
    words = (text[start:end].strip("\"',;") for start, end in found)
    return [word for word in words if len(word) >= 8 and re.fullmatch(r"\S*\d\S*", word)]
