# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads files of environment variables: ``.env`` and what ``--env-file`` takes. Pure."""

from __future__ import annotations

import posixpath
import re

from ..documents.env_files import EnvEntry, EnvFile
from ..model import Given, Position, Problem, Reading
from .dotenv import unquoted

_LINE = re.compile(r"(\s*)(export\s+)?([A-Za-z_][\w.-]*)(\s*)=(\s*)(.*)$")
# Comments, names whose values come from elsewhere, and NAME: value, which Compose takes too.
_NO_VALUE = re.compile(r"\s*(#.*|(export\s+)?[A-Za-z_][\w.-]*\s*(:.*)?)?$")
_EXAMPLE = re.compile(r"example|sample|template|dist|defaults?\b|tmpl", re.IGNORECASE)
_EXAMPLES = re.compile(r"(^|/)(examples?|samples?|templates?|demos?|tests?|testdata|fixtures)/")


def read_env_file(text: str, file: str) -> Reading:
    """The variables that a file sets, with their places.

    Lines that are none (shell code, say) are passed over: not everything called ``.env`` is one.
    A value in quotes may go over several lines.
    """
    entries: list[EnvEntry] = []
    lines = text.splitlines()
    number = 0
    while number < len(lines):
        start = number
        match = None if lines[number].lstrip().startswith("#") else _LINE.match(lines[number])
        number += 1
        if match is None:
            continue
        raw = match.group(6).rstrip()
        quote = raw[:1] if raw[:1] in ("'", '"') else ""
        while quote and quote not in raw[1:] and number < len(lines) and number - start < 100:
            raw = f"{raw}\n{lines[number]}"
            number += 1
        if quote and quote not in raw[1:]:
            number = start + 1  # no closing quote anywhere: one line, as it stands
            raw = match.group(6).rstrip()
        at = Position(file, start + 1, match.start(3) + 1)
        spaced = bool(match.group(4) or (match.group(5) and raw))
        value = Given(unquoted(raw), at, match.group(3))
        entries.append(EnvEntry(match.group(3), value, raw, spaced, bool(match.group(2))))
    if not entries and text.strip() and not _only_comments(lines):
        said = "no line sets a variable; wanted are lines like NAME=value"
        return Reading(problems=(Problem(Position(file, 1, 1), said),))
    example = bool(_EXAMPLE.search(posixpath.basename(file)) or _EXAMPLES.search(file))
    return Reading(documents=(EnvFile(Position(file, 1, 1), tuple(entries), example),))


def _only_comments(lines: list[str]) -> bool:
    return all(_NO_VALUE.match(line) for line in lines)
