# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Elements of SVG as text, with numbers that are the same on every machine."""

from __future__ import annotations

from typing import Union
from xml.sax.saxutils import escape, quoteattr

Value = Union[str, float]


def number(value: float) -> str:
    """With one decimal at most: 12, 12.5."""
    return f"{round(value, 1):.1f}".rstrip("0").rstrip(".")


def element(name: str, classes: str, **attributes: Value) -> str:
    """An empty element; ``stroke_width`` is written ``stroke-width``."""
    words = [f"<{name} class={quoteattr(classes)}"]
    for key, value in attributes.items():
        shown = value if isinstance(value, str) else number(value)
        words.append(f"{key.replace('_', '-')}={quoteattr(shown)}")
    return " ".join(words) + "/>"


def text(classes: str, x: float, y: float, words: str, hint: str = "") -> str:
    """A line of text; ``hint`` is shown by browsers when the pointer rests on it."""
    title = titled(hint) if hint else ""
    return (
        f"<text class={quoteattr(classes)} x={quoteattr(number(x))} y={quoteattr(number(y))}>"
        f"{title}{escaped(words)}</text>"
    )


def titled(words: str) -> str:
    """A title: what browsers show when the pointer rests on the element it stands in."""
    return f"<title>{escaped(words)}</title>"


def escaped(words: str) -> str:
    """``words`` as the content of an element, whatever they are."""
    return escape(_clean(words))


def _clean(words: str) -> str:
    """Without the characters XML cannot hold, which a broken ticket may."""
    return "".join(
        c if c >= " " and not "\ud800" <= c <= "\udfff" and c not in "\ufffe\uffff" else " "
        for c in words
    )
