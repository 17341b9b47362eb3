# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""PyYAML where the host has it: the only file of the core that asks for it.

Hosts need nothing but Python, so every caller must have an answer for its absence.
"""

from __future__ import annotations

from typing import Any

try:
    import yaml
except ImportError:
    yaml = None  # type: ignore[assignment, unused-ignore]

# Pure-Python PyYAML needs 2.6 s and 95 MB per MB of text.
LIMIT_BYTES = 2 * 1024 * 1024


class YamlError(Exception):
    """The text is not YAML, or too long to be read safely."""


def available() -> bool:
    """Does this host have PyYAML?"""
    return yaml is not None


def load(text: str) -> Any | None:
    """The document in ``text``. Raises YamlError; call it only when :func:`available`."""
    if len(text) > LIMIT_BYTES:
        raise YamlError(f"longer than {LIMIT_BYTES} bytes")
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise YamlError(" ".join(str(error).split())) from error
