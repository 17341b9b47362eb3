# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Files from elsewhere: what is refused, and that errors name the line."""

from __future__ import annotations

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.topology import xmltext
from ansible_collections.steadygpu.host.plugins.module_utils.topology.model import TopologyError

LAUGHS = """<?xml version="1.0"?>
<!DOCTYPE topology [
 <!ENTITY a "ha">
 <!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">
]>
<topology>&b;</topology>
"""


def read(text: str) -> xmltext.Element:
    return xmltext.read(text, ("topology",), "wanted is a topology")


def test_a_file_that_declares_entities_is_refused_by_its_line() -> None:
    with pytest.raises(TopologyError, match="line 3: the file declares an XML entity"):
        read(LAUGHS)


def test_an_entity_declared_behind_the_root_is_refused_too() -> None:
    inner = '<topology/>\n<!DOCTYPE x [<!ENTITY a "ha">]>\n<topology>&a;</topology>'
    with pytest.raises(TopologyError):
        read(f"<topology>\n{inner}</topology>")


def test_an_external_entity_is_not_fetched(tmp_path: object) -> None:
    secret = '<!DOCTYPE topology [<!ENTITY s SYSTEM "file:///etc/passwd">]><topology>&s;</topology>'
    with pytest.raises(TopologyError, match="declares an XML entity"):
        read(secret)


def test_more_than_20_mb_are_not_parsed() -> None:
    with pytest.raises(TopologyError, match="more than the 20000000 that are read"):
        read("<topology>" + "x" * xmltext.MOST_BYTES + "</topology>")


def test_a_deep_nest_is_refused_before_it_is_walked() -> None:
    with pytest.raises(TopologyError, match="nested more than 200 deep"):
        read("<topology>" + "<a>" * 5000 + "</a>" * 5000 + "</topology>")


def test_a_prompt_before_and_text_after_are_left_out_and_lines_stay_right() -> None:
    root = read("$ cat topo.xml\n<?xml version='1.0'?>\n<topology>\n<a/></topology>\n$ exit")
    assert [(child.tag, getattr(child, "line", None)) for child in root] == [("a", 4)]
    assert root.line == 3


def test_an_empty_root_needs_no_closing_tag() -> None:
    assert read("see: <topology name='a/>b' /> and <topology>").get("name") == "a/>b"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("nothing", "no <topology> in the text: wanted is a topology"),
        ("<topology>\n<a></b></topology>", "line 2: mismatched tag"),
        ("<topology>\n<a>", "line 2: no element found"),
        ("<topology a='1' a='2'></topology>", "line 1: duplicate attribute"),
    ],
)
def test_the_line_and_what_was_wanted_are_told(text: str, said: str) -> None:
    with pytest.raises(TopologyError) as raised:
        read(text)
    assert said in str(raised.value)


def test_of_two_files_in_one_text_the_first_is_read() -> None:
    assert [one.tag for one in read("<topology><a/></topology>\n<topology><b/></topology>")] == [
        "a"
    ]


def test_what_nvidia_smi_does_not_escape_is_read_all_the_same() -> None:
    root = read("<topology><a>R&D \x1b[1m&lt;3&#65; & more</a></topology>")
    assert root[0].text == "R&D [1m<3A & more"
