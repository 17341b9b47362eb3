# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""irqbalance's environment file: /etc/default/irqbalance, /etc/sysconfig/irqbalance. Pure."""

from __future__ import annotations

import re

from ..documents.kernel import IrqbalanceFile
from ..model import Given, Position, Reading

_LINE = re.compile(r"\s*(?:export\s+)?([A-Za-z_]\w*)\s*=\s*(.*?)\s*$")

_NOTED = re.compile(r"^[ \t]*#.*?\b((?:isolcpus|nohz_full)=[\w,-]+)", re.MULTILINE)


def read_irqbalance(text: str, file: str) -> Reading:
    """One :class:`IrqbalanceFile`; the last assignment of a variable counts."""
    found: dict[str, Given] = {}
    for number, line in enumerate(text.split("\n"), 1):
        match = None if line.lstrip().startswith("#") else _LINE.match(line)
        if match:
            value = match.group(2).partition(" #")[0].strip()
            if len(value) > 1 and value[0] == value[-1] and value[0] in "'\"":
                value = value[1:-1]
            column = match.start(1) + 1
            found[match.group(1)] = Given(value, Position(file, number, column), match.group(1))
    noted = " ".join(_NOTED.findall(text))
    return Reading((IrqbalanceFile(Position(file, 1, 1), found, noted),))
