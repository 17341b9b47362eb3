# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Entries of apt's source files: which name a repository, switched off and on again. Pure.

Two entries for one address with two keys stop apt altogether ("Conflicting values set for option
Signed-By", apt-secure(8)). An entry is switched off where it stands, and marked, so that exactly it
is switched on again: a line becomes a comment, a stanza gets ``Enabled: no`` (sources.list(5)).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

_ONE_LINE = re.compile(r"\s*(?:deb|deb-src)\s+(?:\[[^\]\n]*\]\s*)?(\S+)\s+\S+")
_FIELD = re.compile(r"([A-Za-z][A-Za-z-]*)\s*:\s*(.*)")
_OFF = ("no", "false", "0", "off", "without", "disable")

Names = Callable[[str], bool]


class MixedStanzaError(Exception):
    """A stanza names the repository beside others. Says which line."""


@dataclass(frozen=True)
class Repository:
    """An address as it is written, and patterns of others that offer the same packages."""

    uris: Sequence[str]
    competing: Sequence[str] = ()
    architecture: str = ""

    def is_named_by(self, uri: str) -> bool:
        """Does an entry with this address speak of the repository?"""
        plain = self._plain(uri)
        own = {self._plain(one) for one in self.uris}
        return plain in own or any(fnmatchcase(plain, one.rstrip("/")) for one in self.competing)

    def _plain(self, uri: str) -> str:
        return uri.replace("$(ARCH)", self.architecture).rstrip("/")


def naming(text: str, names: Names) -> list[str]:
    """The addresses of entries that are switched on and name the repository."""
    found: list[str] = []
    if _is_stanzas(text):
        for _begin, _end, uris, on in _stanzas(text.split("\n")):
            found += [uri for uri in uris if on and names(uri)]
    else:
        for line in text.split("\n"):
            match = _ONE_LINE.match(line)
            if match and names(match.group(1)):
                found.append(match.group(1))
    return list(dict.fromkeys(found))


def switched_off(text: str, names: Names, mark: str) -> str:
    """The text with these entries off. Raises MixedStanzaError for one with other addresses too.

    ``mark`` says whose doing it is; :func:`switched_on` with the same one undoes it.
    """
    lines = text.split("\n")
    if not _is_stanzas(text):
        return "\n".join(_off(line, names, mark) for line in lines)
    for begin, end, uris, on in reversed(list(_stanzas(lines))):
        if not on or not any(map(names, uris)):
            continue
        if not all(map(names, uris)):
            raise MixedStanzaError(f"line {begin + 1}: the stanza names other addresses as well")
        inside = [_keep(line, mark) if _says_enabled(line) else line for line in lines[begin:end]]
        lines[begin:end] = [*inside, f"# {mark}", "Enabled: no"]
    return "\n".join(lines)


def switched_on(text: str, mark: str) -> str:
    """The text as it was before :func:`switched_off`, whatever else was changed since."""
    lines = []
    before = ""
    for line in text.split("\n"):
        kept = line[len(f"# {mark} ") :] if line.startswith(f"# {mark} ") else None
        if kept is not None:
            lines.append(kept)
        elif line != f"# {mark}" and not (before == f"# {mark}" and line == "Enabled: no"):
            lines.append(line)
        before = line
    return "\n".join(lines)


def _off(line: str, names: Names, mark: str) -> str:
    match = _ONE_LINE.match(line)
    return _keep(line, mark) if match and names(match.group(1)) else line


def _keep(line: str, mark: str) -> str:
    return f"# {mark} {line}"


def _says_enabled(line: str) -> bool:
    match = _FIELD.match(line)
    return bool(match) and line.lower().startswith("enabled")


def _is_stanzas(text: str) -> bool:
    return any(line.lower().startswith(("types:", "uris:")) for line in text.split("\n"))


def _stanzas(lines: Sequence[str]) -> Iterator[tuple[int, int, list[str], bool]]:
    """First line, line after the last, addresses, and whether it is switched on."""
    begin, last, field = None, 0, ""
    uris: list[str] = []
    on = True
    for number, line in enumerate([*lines, ""]):
        if not line.strip():
            if begin is not None:
                yield begin, last + 1, uris, on
            begin, field, uris, on = None, "", [], True
            continue
        if line.startswith("#"):
            continue
        begin = number if begin is None else begin
        last = number
        match = None if line[:1].isspace() else _FIELD.match(line)
        value = line
        if match:
            field, value = match.group(1).lower(), match.group(2)
        if field == "uris":
            uris += value.split()
        elif field == "enabled":
            on = value.strip().lower() not in _OFF
