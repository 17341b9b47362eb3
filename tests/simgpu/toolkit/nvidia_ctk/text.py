# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Text formats without a library: YAML out, the toolkit's TOML in and out."""

from __future__ import annotations

import json
import re
from typing import Any

_PLAIN = re.compile(r"^[A-Za-z/][A-Za-z0-9_./=-]*$")
_WORDS = ("true", "false", "null", "yes", "no", "on", "off")


def yaml(value: Any, indent: int = 0) -> str:
    """Block-style YAML of dictionaries, lists and scalars, keys in the order given."""
    pad = "  " * indent
    if isinstance(value, dict) and value:
        return "".join(f"{pad}{key}:{_after_key(child, indent)}" for key, child in value.items())
    if isinstance(value, list) and value:
        items = [yaml(child, indent + 1) for child in value]
        return "".join(f"{pad}- {item.lstrip()}" for item in items)
    return f"{pad}{_scalar(value)}\n"


def _after_key(value: Any, indent: int) -> str:
    if isinstance(value, (dict, list)) and value:
        return "\n" + yaml(value, indent + 1)
    return f" {_scalar(value)}\n"


def _scalar(value: Any) -> str:
    """JSON is YAML, so whatever might be read as something else is written as JSON."""
    if isinstance(value, str) and _PLAIN.match(value) and value not in _WORDS:
        return value
    return json.dumps(value)


Toml = dict[str, dict[str, str]]


def read_toml(text: str) -> Toml:
    """Section -> key -> value as written. Comments are dropped, as the real tool drops them."""
    sections: Toml = {"": {}}
    current = sections[""]
    for line in text.splitlines():
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        if line.startswith("["):
            current = sections.setdefault(line.strip("[]"), {})
            continue
        key, equals, value = line.partition("=")
        if not equals:
            raise ValueError(f"cannot read {line!r}")
        current[key.strip()] = value.strip()
    return sections


def write_toml(sections: Toml) -> str:
    """The text of `sections`."""
    blocks = []
    for name, values in sections.items():
        lines = [f"[{name}]"] if name else []
        lines += [f"{key} = {value}" for key, value in values.items()]
        if lines:
            blocks.append("\n".join(lines) + "\n")
    return "\n".join(blocks)


def set_toml(sections: Toml, assignment: str) -> None:
    """Apply KEY=VALUE, where KEY is a dotted path; any value is accepted, as in the real tool."""
    path, equals, value = assignment.partition("=")
    if not equals:
        raise ValueError(f"invalid option {assignment!r}, want KEY=VALUE")
    section, _dot, key = path.rpartition(".")
    values = sections.setdefault(section, {})
    if values.get(key, "").startswith("["):
        value = json.dumps(value.split(","))
    elif value not in ("true", "false") and not value.isdecimal():
        value = json.dumps(value)
    values[key] = value
