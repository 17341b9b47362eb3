# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A topology file as NCCL's own reader takes it. Pure: text in, tags out.

That reader is not an XML parser (NVIDIA/nccl src/graph/xml.cc, xmlGetNode and xmlGetToken, read
at 5067397c): it knows no declaration, no tabs and no text between tags, and wants the attributes
of a tag on one line. What it cannot read ends ``ncclCommInitRank`` with an internal error, so
every job on the host would fail. What passes here is read by NCCL with the same meaning.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from ..topology.model import TopologyError

# xml.h: MAX_ATTR_COUNT; further attributes are dropped without a word.
_MOST_ATTRIBUTES = 16
# xml.h: MAX_STR_LEN is 255, and the closing quote must fit below its last place.
_LONGEST_VALUE = 253
# topo.h: NCCL_TOPO_XML_MAX_NODES is 256, and the reader wants one to spare.
_MOST_TAGS = 255

_SPACE = re.compile(r"[ \n\r]*")
_COMMENT = re.compile(r"<!--([^ >/\n\r]*)")
_NAME = r"[A-Za-z_][\w.-]*"
_VALUE = r"""(?:"[^"<\x00-\x1f]*"|'[^'<\x00-\x1f]*')"""
_CLOSE = re.compile(rf"</({_NAME})>")
_OPEN = re.compile(rf"<({_NAME})((?:[ ]+{_NAME}={_VALUE})*)[ ]*(/?)>")
_ATTRIBUTE = re.compile(rf"({_NAME})=({_VALUE})")


@dataclass(frozen=True)
class Tag:
    """One tag with its attributes as written; ``line`` counts from 1."""

    name: str
    line: int
    attributes: dict[str, str]
    children: list[Tag] = field(default_factory=list)

    def named(self, name: str) -> list[Tag]:
        """The children of this name, in order."""
        return [child for child in self.children if child.name == name]

    def below(self, name: str) -> Iterator[Tag]:
        """Every tag of this name further down, in the order of the file."""
        for child in self.children:
            if child.name == name:
                yield child
            yield from child.below(name)


def read(text: str) -> Tag:
    """The ``system`` tag of a topology file. Raises TopologyError, which names the line."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise TopologyError(f"the text is not UTF-8: {error}") from error
    roots = _read_tags(text)
    names = [root.name for root in roots]
    if names == ["graphs"]:
        raise TopologyError(
            "this is a graph file (its tag is <graphs>): NCCL reads it through NCCL_GRAPH_FILE. "
            "Wanted is a topology file, whose tag is <system>; NCCL_TOPO_DUMP_FILE writes one"
        )
    if names != ["system"]:
        seen = ", ".join(f"<{name}>" for name in names) or "no tag"
        raise TopologyError(f"wanted is exactly one <system> tag, the file has {seen}")
    return roots[0]


def _read_tags(text: str) -> list[Tag]:
    top = Tag("", 0, {})
    open_tags = [top]
    position = count = 0
    while True:
        position = _skip(text, position)
        if position == len(text):
            break
        closing = _CLOSE.match(text, position)
        if closing:
            _close(open_tags, closing.group(1), _line(text, position))
            position = closing.end()
            continue
        tag, single, position = _open(text, position)
        count += 1
        open_tags[-1].children.append(tag)
        if not single:
            open_tags.append(tag)
    if len(open_tags) > 1:
        last = open_tags[-1]
        raise TopologyError(f"line {last.line}: <{last.name}> is never closed")
    if count > _MOST_TAGS:
        raise TopologyError(f"the file has {count} tags, NCCL reads at most {_MOST_TAGS}")
    return top.children


def _skip(text: str, position: int) -> int:
    """Past spaces, line ends and comments, to the next tag or the end."""
    while True:
        blank = _SPACE.match(text, position)
        position = blank.end() if blank else position
        comment = _COMMENT.match(text, position)
        if not comment:
            return position
        where = f"line {_line(text, position)}: "
        if "=" in comment.group(1):
            raise TopologyError(
                f"{where}NCCL cannot read a comment that begins with a value; write a space "
                "after <!--"
            )
        end = text.find("-->", position + len("<!--"))
        if end < 0:
            raise TopologyError(f"{where}the comment is never closed")
        position = end + len("-->")


def _close(open_tags: list[Tag], name: str, line: int) -> None:
    if len(open_tags) == 1 or open_tags[-1].name != name:
        inner = f"<{open_tags[-1].name}> is open" if len(open_tags) > 1 else "no tag is open"
        raise TopologyError(f"line {line}: </{name}> closes nothing: {inner}")
    open_tags.pop()


def _open(text: str, position: int) -> tuple[Tag, bool, int]:
    """One opening tag: the tag, whether it closes itself, and where it ends."""
    line = _line(text, position)
    match = _OPEN.match(text, position)
    if not match:
        raise TopologyError(f"line {line}: {_why_not(text[position : position + 60])}")
    pairs = [(key, quoted[1:-1]) for key, quoted in _ATTRIBUTE.findall(match.group(2))]
    keys = [key for key, _value in pairs]
    if len(keys) > _MOST_ATTRIBUTES:
        raise TopologyError(
            f"line {line}: <{match.group(1)}> has {len(keys)} attributes, NCCL keeps "
            f"{_MOST_ATTRIBUTES}"
        )
    for key, value in pairs:
        if keys.count(key) > 1:
            raise TopologyError(f"line {line}: {key} is given twice")
        if len(value.encode()) > _LONGEST_VALUE:
            raise TopologyError(
                f"line {line}: {key} is longer than the {_LONGEST_VALUE} characters NCCL reads"
            )
    return Tag(match.group(1), line, dict(pairs)), match.group(3) == "/", match.end()


def _why_not(start: str) -> str:
    """What a person should do about a place where no tag that NCCL can read begins."""
    shown = start.splitlines()[0].strip() if start.strip() else start
    if start.startswith("\t"):
        return "NCCL knows no tab between tags; indent with spaces"
    if start.startswith(("<?", "<!")):
        return f"NCCL cannot read {shown!r}: remove the declaration, begin with <system"
    if start.startswith("<"):
        return (
            f"NCCL cannot read the tag {shown!r}: its attributes stand on one line, each as "
            'name="value" with a space before it'
        )
    return f"NCCL cannot read {shown!r}: between tags it takes only spaces, line ends and comments"


def _line(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1
