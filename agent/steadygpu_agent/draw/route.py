# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Wires between GPUs, laid like those of a circuit board. Pure.

GPUs stand in one row, or in two that face each other across a channel. Every wire leaves its GPU
at a pin of its own, runs along a track of its own and turns only at right angles, so that an eye
can follow it. Two wires may cross, they never run on top of each other. Wires between the rows go
straight where the pins face each other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count

from steadygpu_agent.draw.fabric import Link
from steadygpu_agent.draw.geometry import Point

TRACK = 24.0
_MIDDLE = 40.0
_CLEAR = 12.0  # between two wires on one track
_LABEL_CLEAR = 16.0
_NEXT_TO = 2.5


@dataclass(frozen=True)
class Anchor:
    """Where a GPU stands: its middle, its width, and whether it is in the upper row."""

    x: float
    width: float
    upper: bool


@dataclass(frozen=True)
class Wire:
    """A link, the points of its way and of its label; y counts from the upper row's lower edge."""

    link: Link
    points: tuple[Point, ...]
    label: Point


@dataclass(frozen=True)
class Channel:
    """All wires, and how high the room between the rows has to be."""

    height: float
    wires: tuple[Wire, ...]


def route(links: Sequence[Link], anchors: Mapping[int, Anchor], edge: float) -> Channel:
    """Ways for ``links`` between ``anchors``; no track lies nearer than ``edge`` to a row."""
    pins = _pins(links, anchors)
    spans = {link: _span(link, pins) for link in links}
    zones: dict[str, list[Link]] = {"upper": [], "middle": [], "lower": []}
    for link in links:
        zones[_zone(link, anchors)].append(link)
    bent = [link for link in zones["middle"] if spans[link][1] - spans[link][0] > 1]
    tracks = {name: _tracks(some, spans) for name, some in zones.items() if name != "middle"}
    crossing = _tracks(bent, spans)
    room = {name: TRACK * (max(found.values(), default=-1) + 1) for name, found in tracks.items()}
    middle = max(
        _MIDDLE if zones["middle"] else 0, TRACK * (max(crossing.values(), default=-1) + 1)
    )
    lower = any(not anchor.upper for anchor in anchors.values())
    height = edge + room["upper"] + middle + room["lower"] + (edge if lower else 0)
    if lower and not links:
        height = 2 * edge

    def y_of(link: Link) -> float:
        zone = _zone(link, anchors)
        if zone == "upper":
            return edge + TRACK * (tracks["upper"][link] + 0.5)
        if zone == "lower":
            return height - edge - TRACK * (tracks["lower"][link] + 0.5)
        if link in crossing:
            return edge + room["upper"] + TRACK * (crossing[link] + 0.5)
        return edge + room["upper"] + middle / 2

    ways = {link: _way(link, pins, anchors, y_of(link), height) for link in links}
    risers = _risers(ways)
    wires = [Wire(link, ways[link], _label(link, ways, risers, y_of(link))) for link in links]
    return Channel(height, tuple(wires))


def _zone(link: Link, anchors: Mapping[int, Anchor]) -> str:
    one, other = anchors[link.one].upper, anchors[link.other].upper
    if one != other:
        return "middle"
    return "upper" if one else "lower"


def _pins(links: Sequence[Link], anchors: Mapping[int, Anchor]) -> dict[tuple[int, Link], float]:
    """The x of each end. Those to the left leave on the left, the nearest outermost."""
    pins: dict[tuple[int, Link], float] = {}
    for index, anchor in anchors.items():
        mine = [link for link in links if index in (link.one, link.other)]

        def order(link: Link, index: int = index, anchor: Anchor = anchor) -> tuple[int, float]:
            peer = anchors[link.other if link.one == index else link.one]
            if peer.upper != anchor.upper:
                return 0, peer.x
            # Left: near before far. Right: far before near. So short wires lie within long ones.
            return (-1, -peer.x) if peer.x < anchor.x else (1, -peer.x)

        ordered = sorted(mine, key=order)
        step = min(26.0, anchor.width * 0.8 / max(len(ordered), 1))
        first = anchor.x - step * (len(ordered) - 1) / 2
        for number, link in enumerate(ordered):
            pins[index, link] = first + step * number
    _set_apart(pins, links, anchors)
    return pins


def _set_apart(
    pins: dict[tuple[int, Link], float], links: Sequence[Link], anchors: Mapping[int, Anchor]
) -> None:
    """Move lower ends from under the upper end of another wire, which they could run into."""
    ends = {
        link: sorted((link.one, link.other), key=lambda index: not anchors[index].upper)
        for link in links
        if anchors[link.one].upper != anchors[link.other].upper
    }
    above = {link: pins[upper, link] for link, (upper, _lower) in ends.items()}
    for link, (_upper, lower) in ends.items():
        taken = [x for other, x in above.items() if other != link]
        taken += [x for (index, other), x in pins.items() if index == lower and other != link]
        # To one side, then to the other, ever further, until nothing is near.
        pins[lower, link] += next(
            aside
            for step in count()
            for aside in (step * _NEXT_TO, -step * _NEXT_TO)
            if all(abs(pins[lower, link] + aside - x) >= _NEXT_TO for x in taken)
        )


def _span(link: Link, pins: Mapping[tuple[int, Link], float]) -> tuple[float, float]:
    one, other = pins[link.one, link], pins[link.other, link]
    return min(one, other), max(one, other)


def _tracks(links: Sequence[Link], spans: Mapping[Link, tuple[float, float]]) -> dict[Link, int]:
    """A track for each, counted from the row: the shortest nearest, none on top of another."""
    taken: list[list[tuple[float, float]]] = []
    found: dict[Link, int] = {}
    for link in sorted(links, key=lambda one: (spans[one][1] - spans[one][0], spans[one])):
        left, right = spans[link]
        number = 0
        while number < len(taken) and any(
            left < end + _CLEAR and start < right + _CLEAR for start, end in taken[number]
        ):
            number += 1
        if number == len(taken):
            taken.append([])
        taken[number].append((left, right))
        found[link] = number
    return found


def _way(
    link: Link,
    pins: Mapping[tuple[int, Link], float],
    anchors: Mapping[int, Anchor],
    y: float,
    height: float,
) -> tuple[Point, ...]:
    ends = sorted((pins[index, link], anchors[index].upper) for index in (link.one, link.other))
    (left, left_upper), (right, right_upper) = ends
    start, end = (0.0 if upper else height for upper in (left_upper, right_upper))
    if right - left <= 1:
        return (left, start), (left, end)
    return (left, start), (left, y), (right, y), (right, end)


def _risers(ways: Mapping[Link, Sequence[Point]]) -> list[tuple[Link, float, float, float]]:
    """All vertical stretches: the link, x, and both ends."""
    return [
        (link, one[0], min(one[1], other[1]), max(one[1], other[1]))
        for link, way in ways.items()
        for one, other in zip(way, way[1:])
        if one[0] == other[0]
    ]


def _label(
    link: Link,
    ways: Mapping[Link, Sequence[Point]],
    risers: Sequence[tuple[Link, float, float, float]],
    y: float,
) -> Point:
    """On the link's own track, where no other wire crosses, as near to the middle as can be."""
    way = ways[link]
    left, right = way[0][0], way[-1][0]
    if len(way) == 2:
        return left, y
    crossing = [x for other, x, top, bottom in risers if other != link and top - 8 < y < bottom + 8]
    choices = [left + (right - left) * part / 20 for part in range(1, 20)]
    choices.sort(key=lambda x: (abs(x - (left + right) / 2), x))
    free = [x for x in choices if all(abs(x - one) >= _LABEL_CLEAR for one in crossing)]
    return (free or choices)[0], y
