# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Owned keys in TOML; ``test_daemon_json`` has the same for JSON."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.steadygpu.host.plugins.module_utils.engine import json_text
from ansible_collections.steadygpu.host.plugins.module_utils.engine.owned_keys import (
    ForeignOwnerError,
    Layout,
    put,
    take_back,
)
from ansible_collections.steadygpu.host.plugins.module_utils.engine.owned_record import (
    Record,
    dump_record,
    load_record,
)
from ansible_collections.steadygpu.host.plugins.module_utils.trees import toml_edit

TOML = Layout(toml_edit, keyed_lists=("options",))
JSON = Layout(json_text)

HAND_WRITTEN = """# ours, said the admin
name = 'host' # single quotes

[a]
#x = 0
y = 0x10

[b.c]
z = [
  1, # one
]
"""


def test_toml_keeps_what_others_wrote_and_comes_back_to_the_byte() -> None:
    wanted = {
        "a": {"x": 1, "y": 17},
        "b": {"w": True, "c": {"z": [1, 2]}},
        "new": {"deep": {"k": 1}},
    }
    merged = put(TOML, HAND_WRITTEN, Record(), wanted, takeover=True)
    assert merged.text is not None
    assert "#x = 0\nx = 1\ny = 17\n" in merged.text
    assert "  1, # one\n  2,\n" in merged.text
    assert set(merged.actions) >= {"set a.x = 1", "changed a.y from 16 to 17"}
    again = put(TOML, merged.text, merged.record, wanted)
    assert (again.text, again.actions) == (merged.text, ())
    stored = load_record(dump_record(merged.record))
    assert take_back(TOML, merged.text, stored).text == HAND_WRITTEN


@pytest.mark.parametrize("blank", [None, "", "\n", "# only a comment\n", "[a]\n"])
def test_toml_that_said_nothing_says_nothing_again(blank: str | None) -> None:
    merged = put(TOML, blank, Record(), {"a": {"x": 1}, "k": "v"})
    assert toml_edit.parse(merged.text or "") == {"a": {"x": 1}, "k": "v"}
    assert take_back(TOML, merged.text, merged.record).text == blank


def test_a_comment_that_somebody_put_into_a_file_of_ours_stays() -> None:
    merged = put(TOML, None, Record(), {"k": 1})
    edited = "# mine\n" + (merged.text or "")
    assert take_back(TOML, edited, merged.record).text == "# mine\n"


def test_a_foreign_toml_value_is_named() -> None:
    with pytest.raises(ForeignOwnerError, match=r"a\.y is 16, wanted 1;.*b is "):
        put(
            TOML,
            "b = 5\n" + HAND_WRITTEN.partition("[b.c]")[0],
            Record(),
            {"a": {"y": 1}, "b": {"c": 1}},
        )


def test_words_of_a_keyed_list_have_owners_in_toml_too() -> None:
    text = 'options = ["a=1"]\n'
    merged = put(TOML, text, Record(), {"options": ["b=2"]})
    assert merged.text == 'options = ["a=1", "b=2"]\n'
    assert take_back(TOML, merged.text, merged.record).text == text


@pytest.mark.parametrize(("layout", "text"), [(JSON, '{"p": "old"}\n'), (TOML, 'p = "old"\n')])
def test_a_secret_is_shown_as_its_owner_wants_in_every_sentence(layout: Layout, text: str) -> None:
    def show(key: tuple[str, ...], value: Any) -> str:
        return f"<{key[-1]}>" if value else "nothing"

    with pytest.raises(ForeignOwnerError) as caught:
        put(layout, text, Record(), {"p": "new"}, show=show)
    merged = put(layout, text, Record(), {"p": "new", "q": "more"}, takeover=True, show=show)
    changed = (merged.text or "").replace("more", "other")
    back = take_back(layout, changed, merged.record, show=show)
    said = " ".join([str(caught.value), *merged.actions, *back.actions])
    assert not any(word in said for word in ("old", "new", "more", "other"))
    assert back.actions == (
        "left q = <q>: somebody changed it after us",
        "p restored to <p>",
    )


NAMES = st.sampled_from(["a", "b", "c", "x y"])
LEAVES = st.one_of(st.booleans(), st.integers(0, 9), st.text("ab'\n", max_size=3))
WANTED = st.dictionaries(
    NAMES,
    LEAVES | st.lists(LEAVES, max_size=3) | st.dictionaries(NAMES, LEAVES, max_size=2),
    max_size=3,
)
TEXTS = st.lists(
    st.sampled_from(
        ["a = 1", "b = [1, 2] # two", "c.a = true", "# a = 1", "", "[a]", "[b.c]", "[c]", "b = 'x'"]
    ),
    max_size=7,
).map("\n".join)


def fits(document: dict[str, Any], wanted: dict[str, Any]) -> bool:
    """Does no value change between a table and something else? What it was comes back in another
    form then, with the same meaning.
    """
    for key, value in wanted.items():
        if key in document:
            both = isinstance(document[key], dict), isinstance(value, dict)
            if both[0] != both[1] or (all(both) and not fits(document[key], value)):
                return False
    return True


@given(TEXTS, WANTED)
def test_toml_present_then_absent_is_identity_on_bytes(text: str, wanted: dict[str, Any]) -> None:
    try:
        document = toml_edit.parse(text)
    except toml_edit.TomlTextError:
        return
    if not fits(document, wanted):
        return
    merged = put(TOML, text, Record(), wanted, takeover=True)
    seen = toml_edit.parse(merged.text or "")
    for key, value in wanted.items():
        if isinstance(value, dict):
            assert all(seen[key][inner] == leaf for inner, leaf in value.items())
        else:
            assert seen[key] == value
    assert put(TOML, merged.text, merged.record, wanted).actions == ()
    assert take_back(TOML, merged.text, load_record(dump_record(merged.record))).text == text
