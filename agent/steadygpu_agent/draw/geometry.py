# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Boxes, and how wide a text will be. Pixels, y downwards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

Point = tuple[float, float]

# Widths in em of a common sans-serif face, a little generous: the face is the reader's.
_NARROW = frozenset("iljtfrI.,:;'|!()[]- ·")
_WIDE = frozenset("mwMW@%×")
ELLIPSIS = "…"


@dataclass(frozen=True)
class Box:
    """A rectangle; ``x`` and ``y`` are its upper left corner."""

    x: float
    y: float
    width: float
    height: float

    @property
    def right(self) -> float:
        """The x of the right edge."""
        return self.x + self.width

    @property
    def bottom(self) -> float:
        """The y of the lower edge."""
        return self.y + self.height

    @property
    def middle(self) -> float:
        """The x half way."""
        return self.x + self.width / 2

    def overlaps(self, other: Box) -> bool:
        """Do they share more than an edge?"""
        return (
            self.x < other.right
            and other.x < self.right
            and self.y < other.bottom
            and other.y < self.bottom
        )

    def holds(self, other: Box) -> bool:
        """Does ``other`` lie within?"""
        return (
            self.x <= other.x
            and self.y <= other.y
            and other.right <= self.right
            and other.bottom <= self.bottom
        )


def distance(one: Point, other: Point) -> float:
    """Along the axes, which all wires keep to."""
    return abs(one[0] - other[0]) + abs(one[1] - other[1])


def toward(start: Point, end: Point, far: float) -> Point:
    """The point ``far`` pixels from ``start`` on the way to ``end``."""
    share = far / (distance(start, end) or 1.0)
    return start[0] + (end[0] - start[0]) * share, start[1] + (end[1] - start[1]) * share


def shortened(points: Sequence[Point], by: float) -> tuple[Point, ...]:
    """The way without the first and the last ``by`` pixels."""
    return (toward(points[0], points[1], by), *points[1:-1], toward(points[-1], points[-2], by))


def beside(points: Sequence[Point], aside: float) -> tuple[Point, ...]:
    """The way that runs ``aside`` pixels to the right of this one, as on a road with lanes."""
    turns = [
        (_sign(after[0] - before[0]), _sign(after[1] - before[1]))
        for before, after in zip(points, points[1:])
    ]
    lanes = [turns[0], *turns, turns[-1]]
    moved = []
    for (x, y), (into_x, into_y), (out_x, out_y) in zip(points, lanes, lanes[1:]):
        # At a corner both stretches move; on a straight way they are the same one.
        straight = (into_x, into_y) == (out_x, out_y)
        right_x = -into_y if straight else -into_y - out_y
        right_y = into_x if straight else into_x + out_x
        moved.append((x + aside * right_x, y + aside * right_y))
    return tuple(moved)


def text_width(text: str, size: float) -> float:
    """About how many pixels ``text`` takes at ``size`` pixels."""
    return size * sum(_em(character) for character in text)


def fit(text: str, size: float, width: float) -> str:
    """``text``, with its end cut off where it would not fit into ``width``."""
    if text_width(text, size) <= width:
        return text
    kept = text
    while kept and text_width(kept + ELLIPSIS, size) > width:
        kept = kept[:-1]
    return kept.rstrip() + ELLIPSIS


def wrap(text: str, size: float, width: float, lines: int = 99) -> list[str]:
    """``text`` in at most ``lines`` lines of at most ``width``; the last one may be cut."""
    done: list[str] = []
    words = text.split()
    while words and len(done) < lines - 1:
        count = 1
        while count < len(words) and text_width(" ".join(words[: count + 1]), size) <= width:
            count += 1
        done.append(fit(" ".join(words[:count]), size, width))
        words = words[count:]
    return [*done, fit(" ".join(words), size, width)] if words else done


def _sign(value: float) -> int:
    return (value > 0) - (value < 0)


def _em(character: str) -> float:
    if character in _NARROW:
        return 0.36
    if character in _WIDE:
        return 0.95
    return 0.7 if character.isupper() else 0.62
