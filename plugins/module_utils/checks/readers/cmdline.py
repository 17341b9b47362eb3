# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Kernel command lines: /proc/cmdline, a loader's file, or GRUB's defaults. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..documents.kernel import KernelCmdline
from ..model import Given, Position, Reading

# The kernel keeps blanks inside double quotes together.
_WORD = re.compile(r'(?:[^\s"]|"[^"\n]*")+')
_GRUB = re.compile(r"^\s*(?:export\s+)?GRUB_CMDLINE_LINUX\w*\+?=(.*)$")
_OPTIONS = re.compile(r"^\s*(?:options|append|linux|kernel)\s+(.*)$", re.IGNORECASE)


def read_cmdline(text: str, file: str) -> Reading:
    """One :class:`KernelCmdline` with every parameter in the text."""
    grub = any(_GRUB.match(line) for line in text.split("\n"))
    found: list[Given] = []
    for number, line in enumerate(text.split("\n"), 1):
        if line.lstrip().startswith("#"):
            continue
        match = _GRUB.match(line) if grub else _OPTIONS.match(line)
        if grub and match is None:
            continue
        offset = match.start(1) if match else 0
        found.extend(_parameters(line, offset, number, file, grub))
    return Reading((KernelCmdline(Position(file, 1, 1), tuple(found)),))


def _parameters(line: str, offset: int, number: int, file: str, grub: bool) -> Iterator[Given]:
    end = len(line)
    if grub:
        inside = line[offset:].strip()
        offset += len(line[offset:]) - len(line[offset:].lstrip())
        if inside[:1] in ("'", '"'):
            offset += 1
            closing = line.find(inside[0], offset)
            end = closing if closing >= 0 else len(line)
    for match in _WORD.finditer(line, offset, end):
        name, _equals, value = match.group().partition("=")
        at = Position(file, number, match.start() + 1)
        yield Given(value.strip('"'), at, name.strip('"'))
