# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""sysctl.conf and the files of sysctl.d, and what ``sysctl -a`` prints. Pure."""

from __future__ import annotations

from ..documents.kernel import SysctlFile
from ..model import Given, Position, Reading


def read_sysctl(text: str, file: str) -> Reading:
    """One :class:`SysctlFile`. Lines that are no assignment are left out, as sysctl does."""
    found = []
    for number, line in enumerate(text.split("\n"), 1):
        stripped = line.strip()
        if not stripped or stripped[0] in "#;":
            continue
        name, equals, value = stripped.partition("=")
        if not equals:
            continue
        column = len(line) - len(line.lstrip()) + 1
        # A leading - lets errors pass; systemd-sysctl takes slashes for dots.
        plain = name.strip().lstrip("-").replace("/", ".").lower()
        found.append(Given(value.strip(), Position(file, number, column), plain))
    return Reading((SysctlFile(Position(file, 1, 1), tuple(found)),))
