# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.steadygpu.host.plugins.module_utils.checks.readers.interpolate import (
    interpolate,
)

KNOWN = {"SET": "1", "EMPTY": ""}


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("plain", "plain"),
        ("$SET", "1"),
        ("${SET}", "1"),
        ("a${SET}b$SET", "a1b1"),
        ("${NOT-2}", "2"),
        ("${NOT:-2}", "2"),
        ("${EMPTY-2}", ""),
        ("${EMPTY:-2}", "2"),
        ("${NOT:-${ALSO_NOT:-3}}", "3"),
        ("${NOT:-${SET}}", "1"),
        ("${SET:+yes}", "yes"),
        ("${EMPTY:+yes}", ""),
        ("${EMPTY+yes}", "yes"),
        ("${NOT+yes}", ""),
        ("${SET:?set it}", "1"),
        ('${NOT:-{"a":1}}', '{"a":1}'),
        ("$$SET", "$SET"),
        ("pa$$word$", "pa$word$"),
        ("echo $(hostname) $1", "echo $(hostname) $1"),
    ],
)
def test_as_compose_puts_variables_in(text, wanted):
    assert interpolate(text, KNOWN).text == wanted


@pytest.mark.parametrize("text", ["$NOT", "${NOT}", "${NOT:?set it}", "${NOT?}"])
def test_an_unknown_variable_stays_and_is_named(text):
    result = interpolate(text, KNOWN)
    assert result.text == "${NOT}"
    assert result.open_names == {"NOT"}


@pytest.mark.parametrize("text", ["${A[@]}", "${", "${A", "${}", "${A:=1}", "${!A}", "${#A}"])
def test_what_compose_refuses_is_named(text):
    assert interpolate(text, KNOWN).invalid == (text,)


def test_defaults_in_defaults_without_end_are_refused():
    text = "${A:-" * 500 + "}" * 500
    assert interpolate(text, {}).invalid


@settings(max_examples=3 * settings.default.max_examples)
@given(st.text(alphabet="${}:-+?AB_ 1", max_size=40))
def test_any_text_comes_to_an_end(text):
    result = interpolate(text, KNOWN)
    assert isinstance(result.text, str)
    if "$" not in text:
        assert result.text == text
