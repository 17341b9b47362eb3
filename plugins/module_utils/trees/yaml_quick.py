# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""PyYAML's own scanner with fewer steps, for where it was built without libyaml. Pure.

It goes through a text character by character, and asks before each token whether a key may begin
there. Blanks, comments and what cannot be a key are passed at once here; the events are the same.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

# Lines with nothing or a comment, and the blanks behind them.
_NOTHING = re.compile("(?: *(?:#[^\0\r\n\x85\u2028\u2029]*)?\n)* *")


@lru_cache(maxsize=1)
def loader(yaml: Any) -> Any:
    """A loader class for texts (``str``), made of the given module ``yaml``."""

    class Quick(yaml.SafeLoader):  # type: ignore[misc]
        buffer: str
        pointer: int
        index: int
        line: int
        column: int
        flow_level: int
        allow_simple_key: bool

        def forward(self, length: int = 1) -> None:
            # A text is in the buffer as a whole. What is printable has no line end in it.
            if self.buffer[self.pointer : self.pointer + length].isprintable():
                self.pointer += length
                self.index += length
                self.column += length
            else:
                super().forward(length)

        def check_token(self, *choices: type) -> bool:
            tokens = self.tokens
            if not tokens or self.possible_simple_keys:
                return bool(super().check_token(*choices))
            return not choices or isinstance(tokens[0], choices)

        def scan_to_next_token(self) -> None:
            match = _NOTHING.match(self.buffer, self.pointer)
            if match and match.end() > self.pointer:
                passed = match.group()
                lines = passed.count("\n")
                self.pointer = match.end()
                self.index += len(passed)
                self.column += len(passed)
                if lines:
                    self.line += lines
                    self.column = len(passed) - passed.rfind("\n") - 1
                    self.allow_simple_key = self.allow_simple_key or not self.flow_level
            super().scan_to_next_token()

    return Quick
