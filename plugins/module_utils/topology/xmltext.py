# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""XML that came from elsewhere, read without trusting it. Pure.

A file is refused that is larger than 20 MB, is nested deeper than any tool writes, or declares
entities: expanded entities are how a few lines become gigabytes. External DTDs are not fetched.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NoReturn
from xml.etree import ElementTree
from xml.parsers import expat

from .model import TopologyError

MOST_BYTES = 20_000_000
DEEPEST = 200
_BARE_AMPERSAND = re.compile(r"&(?!#?\w{1,20};)")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")
_ATTRIBUTES = r"(?:[^<>\"']|\"[^\"]*\"|'[^']*')*"


class Element(ElementTree.Element):
    """An element that knows the line it begins on."""

    line: int = 0


def read(text: str, roots: Sequence[str], wanted: str) -> Element:
    """The first element of the text that is one of ``roots``, with all below it.

    A shell prompt before it and text after it are left out; ``wanted`` says in the error what
    the text should have been. Raises TopologyError naming the line.
    """
    size = len(text.encode("utf-8", "surrogatepass"))
    if size > MOST_BYTES:
        raise TopologyError(
            f"the text has {size} bytes, more than the {MOST_BYTES} that are read: {wanted}"
        )
    return _parse(_cut(text, roots, wanted), wanted)


def _cut(text: str, roots: Sequence[str], wanted: str) -> str:
    """The text from its root element on, at the line it is on; its DTD is looked at."""
    names = "|".join(re.escape(name) for name in roots)
    start = re.search(rf"<({names})(?=[\s/>])", text)
    if start is None:
        raise TopologyError(f"no <{roots[0]}> in the text: {wanted}")
    before = text[: start.start()]
    if "<!ENTITY" in before:
        _refuse_entity(before[: before.index("<!ENTITY")].count("\n") + 1)
    # Of two logs in one ticket the first is read.
    closing = text.find(f"</{start.group(1)}>", start.start())
    single = re.match(rf"<{start.group(1)}{_ATTRIBUTES}/>", text[start.start() :])
    if single is not None:
        end = start.start() + single.end()
    elif closing >= 0:
        end = closing + len(f"</{start.group(1)}>")
    else:
        end = len(text)
    return "\n" * before.count("\n") + text[start.start() : end]


def _parse(text: str, wanted: str) -> Element:
    builder = ElementTree.TreeBuilder(element_factory=Element)
    parser = expat.ParserCreate()
    depth = 0

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > DEEPEST:
            raise TopologyError(
                f"line {parser.CurrentLineNumber}: elements are nested more than {DEEPEST} deep"
            )
        element = builder.start(tag, attributes)
        if isinstance(element, Element):
            element.line = parser.CurrentLineNumber

    def end(tag: str) -> None:
        nonlocal depth
        depth -= 1
        builder.end(tag)

    def entity(*_declared: object) -> None:
        _refuse_entity(parser.CurrentLineNumber)

    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = builder.data
    parser.EntityDeclHandler = entity
    try:
        parser.Parse(_repaired(text).encode("utf-8", "surrogatepass"), True)
    except expat.ExpatError as error:
        raise TopologyError(
            f"line {error.lineno}: {expat.ErrorString(error.code)}. The file is cut off or was "
            f"changed: {wanted}"
        ) from None
    root = builder.close()
    if not isinstance(root, Element):
        raise TopologyError(f"no element in the text: {wanted}")
    return root


def _repaired(text: str) -> str:
    """The text without what XML forbids and nvidia-smi prints as a program's name: ``R & D``."""
    return _CONTROL.sub("", _BARE_AMPERSAND.sub("&amp;", text))


def _refuse_entity(line: int) -> NoReturn:
    raise TopologyError(
        f"line {line}: the file declares an XML entity. No tool that describes a machine does; "
        "it is not read"
    )
