# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Files of environment variables: ``NAME=value`` lines as Compose and Docker read them. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

_LINE = re.compile(r"\s*(?:export\s+)?([A-Za-z_][\w.-]*)\s*(?:=|:\s)(.*)$")


def entries(text: str) -> Iterator[tuple[str, str]]:
    """Name and value of each line that sets one, quotes and comments taken off."""
    for line in text.splitlines():
        entry = entry_of(line)
        if entry is not None:
            yield entry


def entry_of(line: str) -> tuple[str, str] | None:
    """Name and value that one line sets; None for a comment, an empty line and anything else."""
    if line.lstrip().startswith("#"):
        return None
    match = _LINE.match(line)
    if match is None:
        return None
    return match.group(1), unquoted(match.group(2).strip())


def unquoted(value: str) -> str:
    """A value without the quotes around it, or without the comment behind it."""
    if value[:1] in ("'", '"'):
        end = value.find(value[0], 1)
        return value[1:end] if end > 0 else value[1:]
    if value.startswith("#"):
        return ""
    for mark in (" #", "\t#"):
        value = value.partition(mark)[0].rstrip()
    return value
