# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Edit one value in a TOML text and leave every other byte alone. Pure.

Tables with headers, dotted keys, inline tables and lists over several lines stay what they are;
comments, order, quotes, blank lines and line ends stay where they are. What was put in and is
deleted again leaves the very bytes that were there before. Every edit is read back before it is
returned: a text that would say anything else than what is asked is an error, never a result.
"""

from __future__ import annotations

from typing import Any

from . import toml_lines, toml_lists
from .leaves import Path, flatten
from .node import Node, TreeError
from .toml_spans import Pair, Section, Spans
from .toml_write import key_text, path_text, value_text

__all__ = [
    "EMPTY",
    "Path",
    "TomlTextError",
    "assign",
    "assign_raw",
    "close",
    "delete",
    "flatten",
    "is_blank",
    "is_opened",
    "parse",
    "raw",
    "value_of",
]

# A document with nothing in it.
EMPTY = ""


class TomlTextError(ValueError):
    """The text is no TOML, or cannot be edited that way. ``line`` and ``column`` count from 1."""

    def __init__(self, said: str, line: int = 0, column: int = 0) -> None:
        super().__init__(f"line {line} column {column}: {said}" if line else said)
        self.line = line
        self.column = column


def parse(text: str) -> dict[str, Any]:
    """The table in ``text``; dates and times as text. Raises TomlTextError with the place."""
    return dict(_read(text).tree.plain())


def value_of(literal: str) -> Any:
    """What a value's text stands for. Raises TomlTextError."""
    return parse("value = " + literal).get("value")


def raw(text: str, path: Path) -> str | None:
    """The text of the value at ``path`` as it is written; None when it is not there.

    A table with a header of its own comes as the inline table that says the same. The document
    as a whole has no such text: None.
    """
    spans = _read(text)
    node = spans.tree.get(*path)
    return None if node is None or not path else spans.literal(node)


def is_blank(text: str) -> bool:
    """Is there nothing in it, not even a comment?"""
    return not text.strip()


def is_opened(text: str, path: Path) -> bool:
    """Has the table at ``path`` a place of its own, or is it only named by longer headers?"""
    spans = _read(text)
    node = spans.tree.get(*path)
    if node is None:
        return False
    if spans.span(node) is not None or spans.section(path) is not None:
        return True
    return _last_dotted(spans, path) is not None


def close(text: str, path: Path) -> str:
    """``text`` without the header ``path`` when nothing stands below it; what is in it stays."""
    section = _read(text).section(path)
    if section is None or section.pairs or not path:
        return text
    return toml_lines.cut_header(text, section.start, section.end)


def assign(text: str, path: Path, value: Any) -> str:
    """``text`` with ``value`` at ``path``. Tables that are to hold it come to be.

    A table is compared with what is there: only what differs in it is edited. Raises
    TomlTextError for a value that TOML has no word for and for a place that cannot hold it.
    """
    if not path:
        raise TomlTextError("the document as a whole cannot be assigned")
    spans = _read(text)
    try:
        edited = _put(spans, path, value, None)
    except ValueError as error:
        raise TomlTextError(f"{path_text(path)}: {error}") from error
    return _proved(spans, path, value, edited)


def assign_raw(text: str, path: Path, literal: str | None, value: Any = None) -> str:
    """As :func:`assign`, with the value's own text where it is known (``literal``)."""
    if literal is None:
        return assign(text, path, value)
    if not path:
        raise TomlTextError("the document as a whole cannot be assigned")
    spans = _read(text)
    value = value_of(literal)
    return _proved(spans, path, value, _put(spans, path, value, literal))


def delete(text: str, path: Path) -> str:
    """``text`` without what stands at ``path``; unchanged when it is not there.

    Comments on the same line go with it, all others stay. A table that only its members named
    goes with the last of them.
    """
    spans = _read(text)
    if not path or spans.tree.get(*path) is None:
        return text
    inline = _inline_above(spans, path)
    edited = _cut_member(spans, inline, path) if inline is not None else _cut(spans, path)
    return _proved(spans, path, None, edited)


def _read(text: str) -> Spans:
    try:
        return Spans(text)
    except TreeError as error:
        raise TomlTextError(error.said, error.line, error.column) from error
    except RecursionError as error:
        raise TomlTextError("it is nested too deeply to be a configuration") from error


def _proved(before: Spans, path: Path, value: Any, edited: str) -> str:
    """``edited``, if it says what ``before`` says but for ``value`` (None: nothing) at ``path``."""
    wanted = before.tree.plain()
    above = [wanted]
    for name in path[:-1]:
        above.append(above[-1].setdefault(name, {}))
    above[-1].pop(path[-1], None)
    if value is not None:
        above[-1][path[-1]] = value
    try:
        seen = _read(edited).tree.plain()
    except TomlTextError as error:
        raise TomlTextError(_cannot(path, str(error))) from error
    if _same(seen, wanted):
        return edited
    for depth in range(len(path) - 1, 0, -1):
        if value is None and not above[depth]:
            del above[depth - 1][path[depth - 1]]
            if _same(seen, wanted):
                return edited
    raise TomlTextError(_cannot(path, "the result would say something else"))


def _cannot(path: Path, why: str) -> str:
    return f"{path_text(path)} cannot be edited without writing the file anew: {why}"


def _same(one: Any, other: Any) -> bool:
    """Equal as TOML: 1 is neither true nor 1.0, and the order of keys does not matter."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return len(one) == len(other) and all(map(_same, one, other))
    return repr(one) == repr(other)


def _put(spans: Spans, path: Path, value: Any, literal: str | None) -> str:
    text, node = spans.text, spans.tree.get(*path)
    if node is None:
        return _insert(spans, path, value, literal)
    span = spans.span(node)
    if span is not None:
        if literal is None:
            literal = _spelling(spans, node, value)
        return text[: span[0]] + literal + text[span[1] :]
    if _same(node.plain(), value):
        return text
    if node.is_map and isinstance(value, dict):
        text = _merge(text, path, node, value, literal)
    else:
        text = delete(text, path)
    spans = _read(text)
    return text if spans.tree.get(*path) is not None else _insert(spans, path, value, literal)


def _spelling(spans: Spans, node: Node, value: Any) -> str:
    """The text of ``value`` in the place of ``node``, in its style."""
    literal = spans.literal(node)
    if _same(node.plain(), value):
        return literal
    if node.is_list and isinstance(value, (list, tuple)):
        start = (spans.span(node) or (0, 0))[0]
        places = [spans.span(one) or (start, start) for one in node.elements()]
        places = [(begin - start, end - start) for begin, end in places]
        edited = toml_lists.edit(literal, places, node.plain(), value)
        try:
            if _same(value_of(edited), value):
                return edited
        except TomlTextError:
            pass
    return value_text(value, literal.startswith("'"))


def _merge(text: str, path: Path, node: Node, value: dict[str, Any], literal: str | None) -> str:
    """Make a table of headers or dotted keys say ``value``, member by member."""
    given = None if literal is None else _read("value = " + literal)
    for key, _below in node.items():
        if key.name not in value:
            text = delete(text, (*path, key.name))
    for name, wanted in value.items():
        below = node.get(name)
        if below is not None and _same(below.plain(), wanted):
            continue
        said = given.tree.get("value", name) if given is not None else None
        word = given.literal(said) if given is not None and said is not None else None
        text = assign_raw(text, (*path, name), word, wanted)
    return text


def _insert(spans: Spans, path: Path, value: Any, literal: str | None) -> str:
    """Put in what is not there, in the style of what surrounds it."""
    depth = len(path) - 1
    while spans.tree.get(*path[:depth]) is None:
        depth -= 1
    holder = spans.tree.get(*path[:depth])
    if holder is None or not holder.is_map:
        raise TomlTextError(
            f"{path_text(path[:depth])} is no table, so {path_text(path)} cannot be"
        )
    word = value_text(value) if literal is None else literal
    inline = _inline_above(spans, path)
    if inline is not None:
        return _add_member(spans, inline, path, word)
    dotted = None if spans.section(path[:depth]) else _last_dotted(spans, path[:depth])
    if dotted is not None:
        section, pair = dotted
        line = f"{path_text(path[len(section.names) :])} = {word}"
        return toml_lines.below(
            spans.text, pair.end, toml_lines.indent(spans.text, pair.start) + line
        )
    if isinstance(value, dict) and literal is None:
        return _add_tables(spans, path, value)
    line = f"{key_text(path[-1])} = {word}"
    home = spans.section(path[:-1])
    return _add_section(spans, path[:-1], [line]) if home is None else _add(spans, home, path, line)


def _last_dotted(spans: Spans, path: Path) -> tuple[Section, Pair] | None:
    """The last pair whose dotted key names the table ``path``."""
    found = [one for one in spans.pairs_below(path) if len(one[0].names) < len(path)]
    return found[-1] if found else None


def _add(spans: Spans, home: Section, path: Path, line: str) -> str:
    """A pair for a section: below its own commented default, or below the last one."""
    text = spans.text
    default = toml_lines.commented(text, spans.gaps(home), key_text(path[-1]))
    if default is not None:
        style = home.pairs[-1].start if home.pairs else default
        return toml_lines.below(text, default, toml_lines.indent(text, style) + line)
    if home.pairs:
        last = home.pairs[-1]
        return toml_lines.below(text, last.end, toml_lines.indent(text, last.start) + line)
    if home.names:
        return toml_lines.below(text, home.end, toml_lines.indent(text, home.start) + line)
    if len(spans.sections) > 1:
        top = toml_lines.head_end(text, spans.sections[1].start)
        return toml_lines.before(text, top, line)
    return toml_lines.at_end(text, line)


def _add_tables(spans: Spans, path: Path, value: dict[str, Any]) -> str:
    """A header for a new table and for each table in it."""
    words = [
        f"{key_text(name)} = {value_text(one)}"
        for name, one in value.items()
        if not isinstance(one, dict)
    ]
    text = _add_section(spans, path, words)
    for name, one in value.items():
        if isinstance(one, dict):
            text = assign(text, (*path, name), one)
    return text


def _add_section(spans: Spans, path: Path, lines: list[str]) -> str:
    """A new header with its lines, behind the sections that it belongs to."""

    def shared(section: Section) -> int:
        pairs = list(zip(section.names, path))
        return next((at for at, (one, two) in enumerate(pairs) if one != two), len(pairs))

    most = max(map(shared, spans.sections))
    nearest = [one for one in spans.sections if most and shared(one) == most]
    beside = [one for one in nearest if len(one.names) == len(path)]
    margin = toml_lines.indent(spans.text, beside[-1].start) if beside else ""
    block = [margin + f"[{path_text(path)}]", *(margin + line for line in lines)]
    return toml_lines.add_section(spans.text, nearest[-1].reach if nearest else None, block)


def _cut(spans: Spans, path: Path) -> str:
    """Without the headers and pairs of ``path``."""
    sections = list(spans.sections_below(path))
    places = [(one.start, one.end, toml_lines.cut_header) for one in sections]
    pairs = [pair for one in sections for pair in one.pairs]
    pairs.extend(pair for one, pair in spans.pairs_below(path) if one.names[: len(path)] != path)
    places.extend((pair.start, pair.end, toml_lines.cut) for pair in pairs)
    text = spans.text
    for start, end, cut in sorted(places, key=lambda place: place[0], reverse=True):
        text = cut(text, start, end)
    return text


def _inline_above(spans: Spans, path: Path) -> Path | None:
    """The nearest inline table that ``path`` is in."""
    for depth in range(len(path) - 1, 0, -1):
        node = spans.tree.get(*path[:depth])
        if node is not None and node.is_map and spans.span(node) is not None:
            return path[:depth]
    return None


def _inline(spans: Spans, inline: Path) -> tuple[int, list[Pair]]:
    """Where an inline table begins, and its pairs."""
    node = spans.tree.get(*inline)
    span = None if node is None else spans.span(node)
    return (0, []) if node is None or span is None else (span[0], spans.members(node))


def _add_member(spans: Spans, inline: Path, path: Path, word: str) -> str:
    text = spans.text
    start, members = _inline(spans, inline)
    member = f"{path_text(path[len(inline) :])} = {word}"
    if members:
        last = members[-1].end
        return text[:last] + ", " + member + text[last:]
    inside = start + 1
    pad = "" if text[inside] == "}" else " "
    return text[:inside] + pad + member + text[inside:]


def _cut_member(spans: Spans, inline: Path, path: Path) -> str:
    text = spans.text
    start, members = _inline(spans, inline)
    stays = [
        place
        for place, member in enumerate(members)
        if (inline + member.names)[: len(path)] != path
    ]
    if not stays:
        return text[: start + 1] + text[members[-1].end :]
    for place in range(len(members) - 1, stays[0], -1):
        if place not in stays:
            text = text[: members[place - 1].end] + text[members[place].end :]
    return text[: members[0].start] + text[members[stays[0]].start :]
