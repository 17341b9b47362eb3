# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The quick scanner says of every text what PyYAML's own says, places and errors included."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.steadygpu.host.plugins.module_utils.trees import yaml_quick

yaml = pytest.importorskip("yaml")

PIECES = (
    *(
        "a: b",
        "- ",
        "  ",
        "\n",
        "\n\n",
        "# note\n",
        " # note",
        "#",
        "key",
        ": ",
        ":",
        ", ",
        "---\n",
    ),
    *("...", "[", "]", "{", "}", "? ", "&x ", "*x", "!t ", "|\n  text\n", ">-\n", "'q'", '"d\\n"'),
    *("%YAML 1.1\n", "\t", "\r\n", "\r", "\x85", "\u2028", "\ufeff", "é", "\U0001f600", "\0", "'"),
)


def told(text, loader):
    """Every event with its places, and the error that ends them."""
    found = []
    try:
        for event in yaml.parse(text, Loader=loader):
            start, end = event.start_mark, event.end_mark
            places = [(mark.index, mark.line, mark.column) for mark in (start, end)]
            found.append((repr(event), places))
    except yaml.YAMLError as error:
        found.append((type(error).__name__, str(error)))
    return found


@settings(max_examples=4 * settings.default.max_examples)
@given(st.lists(st.sampled_from(PIECES), max_size=30).map("".join))
def test_events_places_and_errors_are_those_of_pyyaml(text):
    assert told(text, yaml_quick.loader(yaml)) == told(text, yaml.SafeLoader)
