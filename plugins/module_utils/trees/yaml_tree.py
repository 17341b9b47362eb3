# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""YAML with places, where PyYAML is there. Pure.

The tree is put together here from PyYAML's events, not by its composer: that recurses, so that a
deep text ends in a RecursionError, and it expands aliases without counting. Scalars mean what
they mean to Compose and Kubernetes (go-yaml v3): of the truth words only true and false, and
``22:22`` is text.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from . import yaml_quick
from .node import Key, Node, TreeError
from .places import LIMIT_DEPTH, check_size, check_whole, whole

try:
    import yaml
except ImportError:
    yaml = None  # type: ignore[assignment, unused-ignore]

# Of all documents together, every alias counted with what it stands for.
LIMIT_NODES = 300_000

_TRUTH = {
    word: word.lower() == "true" for word in ("true", "True", "TRUE", "false", "False", "FALSE")
}
_NULLS = ("", "~", "null", "Null", "NULL")
_WHOLE = re.compile(r"[-+]?(0b[01_]+|0o?[0-7_]+|0x[0-9a-fA-F_]+|[1-9][0-9_]*|0)$")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$")
_SPECIAL = re.compile(r"([-+]?)\.(inf|Inf|INF)$|\.(nan|NaN|NAN)$")
_STANDARD = "tag:yaml.org,2002:"
# Tabs behind something on their line: libyaml and go-yaml take them for blanks, PyYAML does not.
_TABS = re.compile(r"(?<=[^\s-])[ ]*\t[ \t]*")
# What PyYAML lets out besides its own errors, for instance for an escape beyond Unicode.
_STRAY = (ValueError, OverflowError, RecursionError, IndexError, KeyError, TypeError)


def available() -> bool:
    """Does this Python have PyYAML?"""
    return yaml is not None


def parse_all(text: str, unique: bool = True) -> list[Node]:
    """The documents in ``text``. Raises TreeError with line and column for what is not YAML.

    Aliases and merge keys are resolved; the places of merged keys are those where they are
    written. With ``unique`` a key that appears twice in one mapping is an error, as it is for
    Compose; without, the last one counts. Too many nodes, a depth over 200 and a text over 2 MiB
    are errors.
    """
    if yaml is None:
        raise TreeError("PyYAML is missing: install python3-yaml to have YAML files read")
    check_size(text)
    check_whole(text)
    builder = _Builder(unique)
    line, column = 1, 1
    try:
        for event in _events(text):
            line, column = event.end_mark.line + 1, event.end_mark.column + 1
            builder.take(event)
    except yaml.YAMLError as error:
        blanks = _TABS.sub(lambda tabs: " " * len(tabs.group()), text) if "\t" in text else text
        if blanks != text:
            return parse_all(blanks, unique)
        raise _explained(error, text) from error
    except TreeError:
        raise
    except _STRAY as error:
        raise TreeError(f"it is not YAML: {error}", line, column) from error
    return builder.documents


def _events(text: str) -> Iterator[Any]:
    # libyaml does the same 20 times as fast, where PyYAML was built with it.
    loader = getattr(yaml, "CSafeLoader", None) or yaml_quick.loader(yaml)
    yield from yaml.parse(text, Loader=loader)


def _explained(error: Exception, text: str) -> TreeError:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    said = " ".join(str(getattr(error, "problem", None) or "").split())
    if mark is None:
        position = getattr(error, "position", None)
        said = str(getattr(error, "reason", "") or error)
        if not isinstance(position, int):
            return TreeError(" ".join(said.split())[:200])
        before = text[:position]
        return TreeError(said, before.count("\n") + 1, position - (before.rfind("\n") + 1) + 1)
    return TreeError(said or "it is not YAML", mark.line + 1, mark.column + 1)


@dataclass
class _Open:
    """A mapping or list that is being read; ``nodes`` and ``height`` are of what is inside."""

    node: Node
    anchor: str | None
    key: Node | None = None  # of a mapping: read, its value not yet
    merged: list[Node] = field(default_factory=list)
    nodes: int = 1
    height: int = 0


@dataclass(frozen=True)
class _Anchored:
    node: Node
    nodes: int
    height: int


class _Builder:
    """Puts the tree together from events with a stack of its own."""

    def __init__(self, unique: bool) -> None:
        self.documents: list[Node] = []
        self._unique = unique
        self._stack: list[_Open] = []
        self._anchors: dict[str, _Anchored | None] = {}  # None: still open
        self._nodes = 0

    def take(self, event: Any) -> None:
        """One event of PyYAML."""
        if isinstance(event, yaml.DocumentStartEvent):
            self._anchors = {}
        elif isinstance(event, yaml.ScalarEvent):
            node = _scalar(event)
            if event.anchor:
                self._anchors[event.anchor] = _Anchored(node, 1, 0)
            self._put(node, 1, 0, event)
        elif isinstance(event, yaml.AliasEvent):
            self._alias(event)
        elif isinstance(event, (yaml.MappingStartEvent, yaml.SequenceStartEvent)):
            self._open(event)
        elif isinstance(event, (yaml.MappingEndEvent, yaml.SequenceEndEvent)):
            self._close(event)

    def _open(self, event: Any) -> None:
        if len(self._stack) >= LIMIT_DEPTH:
            raise _error(f"it is nested deeper than {LIMIT_DEPTH} levels", event)
        inside: Any = {} if isinstance(event, yaml.MappingStartEvent) else []
        node = Node(inside, event.start_mark.line + 1, event.start_mark.column + 1)
        if event.anchor:
            self._anchors[event.anchor] = None
        self._stack.append(_Open(node, event.anchor))

    def _close(self, event: Any) -> None:
        done = self._stack.pop()
        for merged in done.merged:
            for key, node in merged.items():
                # What is written in the mapping itself, or merged earlier, counts.
                if key.name not in done.node.value:
                    done.node.value[key.name] = node
                    done.node.keys[key.name] = key
        if done.anchor:
            self._anchors[done.anchor] = _Anchored(done.node, done.nodes, done.height)
        self._put(done.node, done.nodes, done.height + 1, event)

    def _alias(self, event: Any) -> None:
        if event.anchor not in self._anchors:
            raise _error(f"the alias *{event.anchor} has no anchor before it", event)
        known = self._anchors[event.anchor]
        if known is None:
            raise _error(f"the alias *{event.anchor} stands inside what it names", event)
        if len(self._stack) + known.height > LIMIT_DEPTH:
            raise _error(f"it is nested deeper than {LIMIT_DEPTH} levels", event)
        self._put(known.node, known.nodes, known.height, event, alias=True)

    def _put(self, node: Node, nodes: int, height: int, event: Any, alias: bool = False) -> None:
        """Hand a finished value to the mapping or list around it."""
        self._nodes += nodes if alias else 1
        if self._nodes > LIMIT_NODES:
            raise _error(f"it has more than {LIMIT_NODES} values, aliases expanded", event)
        if not self._stack:
            self.documents.append(node)
            return
        around = self._stack[-1]
        around.nodes += nodes
        around.height = max(around.height, height)
        if around.node.is_list:
            around.node.value.append(node)
        elif around.key is None:
            if node.is_map or node.is_list:
                said = "a key that is a list or a mapping; text in two pairs of braces needs quotes"
                raise _error(said, event)
            around.key = _merge_mark(node, event)
        else:
            self._member(around, around.key, node, event)
            around.key = None

    def _member(self, around: _Open, key: Node, node: Node, event: Any) -> None:
        inside = around.node.value
        if key.value is _MERGE:
            if around.merged and self._unique:
                raise TreeError("the key '<<' appears twice in one mapping", key.line, key.column)
            merged = [node] if node.is_map else node.elements()
            if not (node.is_map or node.is_list) or not all(one.is_map for one in merged):
                raise _error("<< wants a mapping, or a list of mappings", event)
            around.merged.extend(merged)
            return
        name = key.text
        if name in inside and self._unique:
            first = around.node.keys[name].line
            said = f"the key {name!r} appears twice in one mapping, first in line {first}"
            raise TreeError(said, key.line, key.column)
        inside[name] = node
        around.node.keys[name] = Key(name, key.line, key.column)


_MERGE = object()


def _merge_mark(node: Node, event: Any) -> Node:
    """``node``, a key, marked where it is the merge key: ``<<`` without quotes."""
    plain = node.value == "<<" and not getattr(event, "style", "'")
    return Node(_MERGE, node.line, node.column, "<<") if plain else node


def _error(said: str, event: Any) -> TreeError:
    return TreeError(said, event.start_mark.line + 1, event.start_mark.column + 1)


def _scalar(event: Any) -> Node:
    mark, text = event.start_mark, whole(event.value)
    tag = event.tag if event.tag and event.tag != "!" else None
    plain = not event.style  # pure PyYAML says None, libyaml ""
    if tag is None:
        value = _resolved(text) if plain and event.tag is None else text
    elif tag.startswith(_STANDARD) and tag[len(_STANDARD) :] in ("int", "float", "bool", "null"):
        value = _resolved(text)
    elif tag.startswith(_STANDARD):
        value = text
    else:
        # A tag of somebody else, as !reset: the value as it would be without.
        value = _resolved(text) if plain else text
    return Node(value, mark.line + 1, mark.column + 1, text)


def _resolved(text: str) -> Any:
    """What a plain scalar means to go-yaml v3."""
    if text in _TRUTH:
        return _TRUTH[text]
    if text in _NULLS:
        return None
    if len(text) > 400 or text[0] not in "+-.0123456789":
        return text
    match = _WHOLE.match(text)
    if match:
        return _whole_number(text)
    if _FLOAT.match(text):
        return float(text)
    special = _SPECIAL.match(text)
    if special:
        return math.nan if special.group(3) else float(special.group(1) + "inf")
    return text


def _whole_number(text: str) -> Any:
    sign = -1 if text.startswith("-") else 1
    digits = text.lstrip("+-").replace("_", "")
    try:
        if re.match(r"0[0-7]+$", digits):  # as in YAML 1.1, which go-yaml still reads so
            return sign * int(digits, 8)
        return sign * int(digits, 0)
    except ValueError:
        return text
