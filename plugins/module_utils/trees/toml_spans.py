# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where every key, value and header of a TOML text begins and ends. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from .leaves import Path
from .node import Node
from .places import check_size, check_whole
from .toml_tree import Reader
from .toml_write import table_text


@dataclass(frozen=True)
class Pair:
    """``names`` is the dotted key; ``start`` its first character, ``end`` just behind the value."""

    names: Path
    start: int
    end: int
    value: Node


@dataclass(frozen=True)
class Section:
    """A header with the pairs below it; the first section is what stands above every header.

    ``start`` and ``end`` enclose the header itself (0 and 0 in the first section).
    """

    node: Node
    names: Path
    start: int
    end: int
    pairs: list[Pair] = field(default_factory=list)

    @property
    def reach(self) -> int:
        """The offset just behind the last statement."""
        return self.pairs[-1].end if self.pairs else self.end


class Spans(Reader):
    """A text with the places of all that is said in it. Raises TreeError for what is no TOML."""

    def __init__(self, text: str) -> None:
        check_size(text)
        check_whole(text)
        super().__init__(text)
        self._values: dict[int, tuple[int, int]] = {}
        self._members: dict[int, list[Pair]] = {}
        self.sections = [Section(self.root.node, (), 0, 0)]
        self.tree = self.document()

    # What the reader says while it reads

    def saw_value(self, node: Node, start: int) -> None:
        """Note its place."""
        self._values[id(node)] = (start, self.offset)

    def saw_header(self, node: Node, names: Path, start: int) -> None:
        """Begin a section."""
        self.sections.append(Section(node, names, start, self.offset))

    def saw_pair(self, holder: Node, names: Path, start: int, value: Node) -> None:
        """Note it in its section or inline table."""
        pair = Pair(names, start, self.offset, value)
        if holder is self.sections[-1].node:
            self.sections[-1].pairs.append(pair)
        else:
            self._members.setdefault(id(holder), []).append(pair)

    # What is asked afterwards

    def span(self, node: Node) -> tuple[int, int] | None:
        """Where a value stands; None for a table or a list that is made of headers."""
        return self._values.get(id(node))

    def members(self, inline: Node) -> list[Pair]:
        """The pairs of an inline table, in order."""
        return self._members.get(id(inline), [])

    def section(self, path: Path) -> Section | None:
        """The section whose header is ``path``; not one of an array of tables."""
        found = (one for one in self.sections if one.names == path)
        return next((one for one in found if self._is_plain(one)), None)

    def pairs_below(self, path: Path) -> Iterator[tuple[Section, Pair]]:
        """The pairs that say something of ``path`` or of what is in it, without inline tables."""
        for section in self.sections:
            if self._is_plain(section):
                for pair in section.pairs:
                    if (section.names + pair.names)[: len(path)] == path:
                        yield section, pair

    def sections_below(self, path: Path) -> Iterator[Section]:
        """The sections with a header of ``path`` or of what is in it."""
        return (one for one in self.sections[1:] if one.names[: len(path)] == path)

    def gaps(self, section: Section) -> list[tuple[int, int]]:
        """From the end of each statement of a section to the beginning of the next one."""
        place = next(at for at, one in enumerate(self.sections) if one is section)
        following = self.sections[place + 1 : place + 2]
        stop = following[0].start if following else len(self.text)
        starts = [*(pair.start for pair in section.pairs), stop]
        return list(zip([section.end, *(pair.end for pair in section.pairs)], starts))

    def literal(self, node: Node) -> str:
        """A value as it is written; what is made of headers comes as an inline table or list."""
        span = self.span(node)
        if span is not None:
            return self.text[span[0] : span[1]]
        if node.is_list:
            return "[{}]".format(", ".join(map(self.literal, node.elements())))
        return table_text([(key.name, self.literal(below)) for key, below in node.items()])

    def _is_plain(self, section: Section) -> bool:
        return self.tree.get(*section.names) is section.node
