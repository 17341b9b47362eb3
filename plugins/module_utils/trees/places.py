# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Lines and columns of a text, and the limits that all trees share. Pure."""

from __future__ import annotations

import re
from bisect import bisect_right

from .node import TreeError

# Longer texts are no configuration; the pure Python YAML parser needs 2.6 s and 95 MB per MB.
LIMIT_BYTES = 2 * 1024 * 1024
# Nothing that people write by hand comes near; Python's own stack ends at about 1,000 calls.
LIMIT_DEPTH = 200

_LONE = re.compile("[\ud800-\udfff]")


class Places:
    """Turns offsets of one text into lines and columns, both counted from 1 in characters."""

    def __init__(self, text: str) -> None:
        self._starts = [0, *(match.end() for match in re.finditer("\n", text))]

    def at(self, offset: int) -> tuple[int, int]:
        """The line and the column of the character at ``offset``."""
        line = bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + 1

    def error(self, said: str, offset: int) -> TreeError:
        """A TreeError that says where it is."""
        return TreeError(said, *self.at(offset))


def check_size(text: str) -> None:
    """Raise TreeError for a text that is too long to be read safely."""
    if len(text) > LIMIT_BYTES:
        raise TreeError(f"longer than the limit of {LIMIT_BYTES} bytes")


def check_whole(text: str) -> None:
    """Raise TreeError for half a surrogate pair: such a text was never read from UTF-8."""
    found = _LONE.search(text)
    if found:
        raise Places(text).error("it is not UTF-8", found.start())


def whole(text: str) -> str:
    """``text`` with halves of surrogate pairs replaced: they can be neither printed nor written."""
    return _LONE.sub("\ufffd", text) if _LONE.search(text) else text
