# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Keys and values as TOML 1.0 text, each on one line. Pure."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from typing import Any

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_LITERAL = re.compile(r"[^'\x00-\x08\x0a-\x1f\x7f]*")
_LARGEST = 2**63


def key_text(name: str) -> str:
    """One part of a key, in quotes where it needs them."""
    return name if _BARE.fullmatch(name) else _quoted(name)


def path_text(path: Sequence[str]) -> str:
    """A dotted key."""
    return ".".join(map(key_text, path))


def value_text(value: Any, single_quotes: bool = False) -> str:
    """A value; strings get single quotes where those are asked for and possible.

    Raises ValueError for what TOML has no word for: None, a number beyond 64 bit, another type.
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        if single_quotes and _LITERAL.fullmatch(value):
            return f"'{value}'"
        return _quoted(value)
    if isinstance(value, int):
        if not -_LARGEST <= value < _LARGEST:
            raise ValueError(f"{value} is beyond the 64 bit of a TOML number")
        return str(value)
    if isinstance(value, float):
        return "nan" if math.isnan(value) else repr(value)
    if isinstance(value, (list, tuple)):
        return "[{}]".format(", ".join(value_text(one, single_quotes) for one in value))
    if isinstance(value, dict):
        return table_text([(key, value_text(one, single_quotes)) for key, one in value.items()])
    raise ValueError(f"TOML has no value for {value!r}")


def table_text(members: Sequence[tuple[str, str]]) -> str:
    """An inline table of keys and the texts of their values."""
    inside = ", ".join(f"{key_text(key)} = {text}" for key, text in members)
    return f"{{ {inside} }}" if inside else "{}"


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
