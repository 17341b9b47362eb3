# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A topology file as NCCL's own reader takes it."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.steadygpu.host.plugins.module_utils.nccl import syntax
from ansible_collections.steadygpu.host.plugins.module_utils.nccl.syntax import Tag
from ansible_collections.steadygpu.host.plugins.module_utils.topology.model import TopologyError
from ansible_collections.steadygpu.host.tests.unit.module_utils.nccl.fake_host import (
    GRAPH,
    TOPOLOGIES,
    recorded,
)


def _same(tag: Tag, element: ElementTree.Element) -> bool:
    return (
        (tag.name, tag.attributes) == (element.tag, element.attrib)
        and len(tag.children) == len(element)
        and all(_same(one, other) for one, other in zip(tag.children, element))
    )


@pytest.mark.parametrize("name", TOPOLOGIES)
def test_a_recorded_file_means_what_an_xml_parser_says(name: str) -> None:
    text = recorded(name)
    assert _same(syntax.read(text), ElementTree.fromstring(text))


def test_a_graph_file_is_told_from_a_topology() -> None:
    with pytest.raises(TopologyError, match=r"graph file.*NCCL_GRAPH_FILE.*<system>"):
        syntax.read(recorded(GRAPH))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param("", "has no tag", id="empty"),
        pytest.param('<?xml version="1.0"?>\n<system/>', "remove the declaration", id="declared"),
        pytest.param("<!DOCTYPE x>\n<system/>", "remove the declaration", id="doctype"),
        pytest.param("<system>\n\t<cpu/>\n</system>", "line 2: NCCL knows no tab", id="tab"),
        pytest.param("<system>\n text </system>", "line 2: .*only spaces", id="text"),
        pytest.param("<system\n version='1'/>", "stand on one line", id="two-lines"),
        pytest.param("<system version = '1'/>", 'name="value"', id="spaced-equals"),
        pytest.param("<system version=1/>", 'name="value"', id="unquoted"),
        pytest.param("<system>\n<cpu>\n</system>", "line 3: </system> closes.*<cpu>", id="crossed"),
        pytest.param("<system>\n<cpu>", "line 2: <cpu> is never closed", id="unclosed"),
        pytest.param("</system>", "no tag is open", id="closed-only"),
        pytest.param("<system/>\n<system/>", "exactly one <system>", id="two-roots"),
        pytest.param("<!--a=b --><system/>", "space after <!--", id="comment-with-value"),
        pytest.param("\n<!-- never <system/>", "line 2: .*never closed", id="open-comment"),
        pytest.param("<system a='1' a='2'/>", "a is given twice", id="twice"),
        pytest.param(f"<system a='{'x' * 254}'/>", "longer than the 253", id="long"),
        pytest.param(
            "<system" + "".join(f" a{n}='1'" for n in range(17)) + "/>", "NCCL keeps 16", id="many"
        ),
        pytest.param("<system>" + "<cpu/>" * 255 + "</system>", "at most 255", id="too-big"),
        pytest.param("<system a='1\t2'/>", 'name="value"', id="tab-in-value"),
        pytest.param("\udcff<system/>", "not UTF-8", id="not-utf-8"),
        pytest.param("\ufeff<system/>", "line 1: NCCL cannot read", id="byte-order-mark"),
    ],
)
def test_what_nccl_cannot_read_is_named_with_what_to_do(text: str, said: str) -> None:
    with pytest.raises(TopologyError, match=said):
        syntax.read(text)


@pytest.mark.parametrize("text", ["<!-- a --><system/>", "<!--\nb\n-->\r\n<system />\n<!--c-->"])
def test_comments_and_line_ends_are_skipped(text: str) -> None:
    assert syntax.read(text).name == "system"


_PIECES = (
    *(
        "<system>",
        "</system>",
        "<cpu>",
        "<cpu/>",
        "</cpu>",
        "<!--",
        "-->",
        "<!-- a",
        "<pci a='1'/>",
    ),
    *(' b="2"', "<", ">", "/", "=", "'", '"', " ", "\n", "\r", "\t", "text", "<?xml?>", "\udcff"),
)


@given(st.lists(st.sampled_from(_PIECES), max_size=12).map("".join))
def test_what_is_taken_is_what_an_xml_parser_says(text: str) -> None:
    """Anything else is refused with a reason, never with another exception."""
    try:
        tag = syntax.read(text)
    except TopologyError:
        return
    assert _same(tag, ElementTree.fromstring(text))
