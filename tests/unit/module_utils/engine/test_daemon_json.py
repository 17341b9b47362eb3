# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.steadygpu.host.plugins.module_utils.engine.daemon_json import (
    ForeignOwnerError,
    Record,
    dump_record,
    load_record,
    put,
    take_back,
)
from ansible_collections.steadygpu.host.plugins.module_utils.engine.json_text import (
    JsonTextError,
    parse,
)

HAND_WRITTEN = """{
    "log-driver": "journald",
    "dns": ["10.0.0.1", "10.0.0.2"],
    "runtimes": {
        "kata": {"runtimeType": "io.containerd.kata.v2"}
    },
    "max-size":   1e3
}
"""


def test_a_hand_written_file_keeps_every_line_of_its_own() -> None:
    merged = put(HAND_WRITTEN, Record(), {"features": {"cdi": True}, "live-restore": True})
    assert merged.text is not None
    for line in HAND_WRITTEN.splitlines()[1:-2]:
        assert line in merged.text
    assert '"max-size":   1e3,\n    "features": {\n        "cdi": true\n    },' in merged.text
    assert parse(merged.text)["features"] == {"cdi": True}


def test_taking_back_restores_the_very_bytes() -> None:
    wanted = {
        "runtimes": {"nvidia": {"path": "/usr/bin/nvidia-container-runtime"}},
        "exec-opts": ["native.cgroupdriver=systemd"],
        "log-opts": {"tag": "x"},
    }
    merged = put(HAND_WRITTEN, Record(), wanted)
    assert take_back(merged.text, merged.record).text == HAND_WRITTEN


def test_nothing_wanted_touches_nothing() -> None:
    for text in (None, "", HAND_WRITTEN, "not even json"):
        assert put(text, Record(), {}) == (put(text, Record(), {"features": {}}))
        assert put(text, Record(), {}).text == text


def test_a_missing_file_appears_and_vanishes_again() -> None:
    merged = put(None, Record(), {"live-restore": True})
    assert merged.text == '{\n  "live-restore": true\n}\n'
    assert take_back(merged.text, merged.record).text is None


@pytest.mark.parametrize("blank", ["", "\n", "{}", "{}\n", "{\n}\n", "{ }", '{"features": {}}\n'])
def test_an_empty_file_comes_back_as_it_was(blank: str) -> None:
    merged = put(blank, Record(), {"features": {"cdi": True}, "debug": True})
    assert take_back(merged.text, merged.record).text == blank


def test_a_foreign_value_is_named_and_nothing_changes() -> None:
    with pytest.raises(ForeignOwnerError) as caught:
        put(
            '{"live-restore": false, "features": {"cdi": false}}',
            Record(),
            {"live-restore": True, "features": {"cdi": True}},
        )
    assert "live-restore is false, wanted true" in str(caught.value)
    assert "features.cdi is false, wanted true" in str(caught.value)
    assert "takeover: true" in str(caught.value)


def test_takeover_gives_the_former_value_back() -> None:
    before = '{"live-restore": false, "exec-opts": ["a=1", "native.cgroupdriver=cgroupfs"]}'
    wanted = {"live-restore": True, "exec-opts": ["native.cgroupdriver=systemd"]}
    merged = put(before, Record(), wanted, takeover=True)
    assert parse(merged.text or "") == {
        "live-restore": True,
        "exec-opts": ["a=1", "native.cgroupdriver=systemd"],
    }
    assert take_back(merged.text, merged.record).text == before


def test_a_value_that_is_right_already_stays_theirs() -> None:
    before = '{"live-restore": true}\n'
    merged = put(before, Record(), {"live-restore": True})
    assert (merged.text, merged.actions) == (before, ())
    assert take_back(merged.text, merged.record).text == before


def test_our_own_key_may_change_and_still_goes_back_to_what_was_first() -> None:
    before = '{"default-runtime": "runc"}\n'
    first = put(before, Record(), {"default-runtime": "a"}, takeover=True)
    second = put(first.text, first.record, {"default-runtime": "b"})
    assert take_back(second.text, second.record).text == before


def test_a_key_changed_by_somebody_after_us_is_left_to_them() -> None:
    merged = put("{}\n", Record(), {"debug": True, "log-level": "info"})
    edited = (merged.text or "").replace('"info"', '"warn"')
    back = take_back(edited, merged.record)
    assert parse(back.text or "") == {"log-level": "warn"}
    assert any("somebody changed it after us" in action for action in back.actions)


def test_taking_back_one_key_keeps_the_others_of_ours() -> None:
    merged = put("{}\n", Record(), {"features": {"cdi": True, "buildkit": True}})
    back = take_back(merged.text, merged.record, {"features": {"cdi": None}})
    assert parse(back.text or "") == {"features": {"buildkit": True}}
    assert take_back(back.text, back.record).text == "{}\n"


def test_true_is_not_one() -> None:
    with pytest.raises(ForeignOwnerError):
        put('{"debug": 1}', Record(), {"debug": True})


def test_null_is_nobodys_value() -> None:
    merged = put('{"runtimes": null}', Record(), {"runtimes": {"n": {"path": "/n"}}})
    assert parse(merged.text or "") == {"runtimes": {"n": {"path": "/n"}}}
    assert take_back(merged.text, merged.record).text == '{"runtimes": null}'


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{\n  "a": 1,\n  "b" 2\n}', "line 3 column 7"),
        ("[]", "holds a list"),
        ("null", "holds a null"),
        ('\ufeff{"a": 1}', "byte order mark"),
        ('{"a": "\x00"}', "NUL"),
        ('{"a": 1, "a": 2}', "'a' appears twice"),
        ('{"a": NaN}', "NaN is not JSON"),
        ('{"a": 1} x', "line 1 column 10"),
    ],
)
def test_a_broken_file_is_refused_with_its_place(text: str, words: str) -> None:
    with pytest.raises(JsonTextError, match=words):
        put(text, Record(), {"debug": True})


KEYS = st.sampled_from(["features", "runtimes", "log-opts", "labels", "debug", "x", "y", 'é"\\'])
SCALARS = st.none() | st.booleans() | st.integers() | st.text(max_size=5)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=6,
)
OBJECTS = st.dictionaries(KEYS, VALUES, max_size=5)
WANTED = st.dictionaries(
    KEYS,
    st.booleans() | st.lists(st.integers(), max_size=2) | st.dictionaries(KEYS, st.integers()),
    max_size=4,
)
LAYOUT = st.sampled_from([None, 2, 4, "\t"])


@settings(max_examples=300, deadline=None)
@given(OBJECTS, WANTED, LAYOUT, st.sampled_from(["", "\n"]))
def test_present_then_absent_is_identity_on_bytes(
    document: dict[str, Any], wanted: dict[str, Any], layout: Any, end: str
) -> None:
    text: str | None = json.dumps(document, indent=layout, ensure_ascii=False) + end
    merged = put(text, Record(), wanted, takeover=True)
    again = put(merged.text, merged.record, wanted)
    assert (again.text, again.actions) == (merged.text, ())
    stored = load_record(dump_record(merged.record))
    assert take_back(merged.text, stored).text == text


@settings(max_examples=300, deadline=None)
@given(OBJECTS, WANTED)
def test_foreign_keys_are_untouched_and_wanted_ones_hold(
    document: dict[str, Any], wanted: dict[str, Any]
) -> None:
    merged = put(json.dumps(document), Record(), wanted, takeover=True)
    result = parse(merged.text or "")
    for key, value in document.items():
        if key not in wanted:
            assert result[key] == value
    order = [key for key in result if key in document]
    assert order == list(document)
    for key, value in wanted.items():
        if isinstance(value, dict):
            for inner, leaf in value.items():
                assert result[key][inner] == leaf
        else:
            assert result[key] == value


@settings(max_examples=200, deadline=None)
@given(OBJECTS, WANTED)
def test_a_record_written_before_a_file_that_never_was_is_harmless(
    document: dict[str, Any], wanted: dict[str, Any]
) -> None:
    """Killed between the two writes: the claims are there, the old file too."""
    text = json.dumps(document, indent=2) + "\n"
    claimed = put(text, Record(), wanted, takeover=True).record
    assert take_back(text, claimed).text == text
    assert put(text, claimed, wanted).text == put(text, Record(), wanted, takeover=True).text


@pytest.mark.parametrize("text", [None, "", "{}\n", '{"debug": true}'])
def test_taking_back_nothing_touches_nothing(text: str | None) -> None:
    merge = take_back(text, Record())
    assert (merge.text, merge.actions) == (text, ())
