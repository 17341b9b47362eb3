# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A measurement that is kept: of these GPUs and links, in any order, or not used."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.steadygpu.host.plugins.module_utils.topology import remembered
from ansible_collections.steadygpu.host.plugins.module_utils.topology.bandwidth import Measured
from ansible_collections.steadygpu.host.plugins.module_utils.topology.model import (
    Gpu,
    TopologyError,
)

GPUS = (Gpu("GPU0", uuid="GPU-a"), Gpu("GPU1", uuid="GPU-b"), Gpu("GPU2", uuid="GPU-c"))
LEVELS = [["X", "NV4", "SYS"], ["NV4", "X", None], ["SYS", None, "X"]]
MATRIX = [[None, 90.0, 11.0], [80.0, None, 20.0], [12.0, 21.0, None]]
KEPT = remembered.record(Measured("device_to_device_memcpy_read_ce", MATRIX), GPUS, LEVELS)
AGAIN = "run nvbandwidth again (steadygpu topo --bandwidth FILE --remember)"


def as_now(order: tuple[int, ...]) -> tuple[tuple[Gpu, ...], list[list[str | None]]]:
    """The machine after its GPUs were numbered anew: GPU k is the former ``order[k]``."""
    gpus = tuple(Gpu(f"GPU{new}", uuid=GPUS[old].uuid) for new, old in enumerate(order))
    return gpus, [[LEVELS[i][j] for j in order] for i in order]


def test_the_same_machine_has_what_was_measured():
    assert remembered.stale(KEPT, GPUS, LEVELS) is None
    assert remembered.in_order(KEPT, GPUS) == MATRIX


@given(st.permutations(range(3)))
def test_gpus_in_another_order_keep_their_pairs(order):
    gpus, levels = as_now(tuple(order))
    assert remembered.stale(KEPT, gpus, levels) is None
    found = remembered.in_order(KEPT, gpus)
    for i, former in enumerate(order):
        for j, other in enumerate(order):
            assert found[i][j] == MATRIX[former][other]


def test_two_cards_swapped_between_their_slots_are_other_links():
    """The UUIDs moved, the slots did not: what was NV4 apart is SYS apart now."""
    gpus = (GPUS[2], GPUS[1], GPUS[0])
    text = remembered.stale(KEPT, gpus, LEVELS)
    assert text is not None
    assert "measured on other links" in text


def test_a_card_that_was_replaced_is_named():
    new = (*GPUS[:2], Gpu("GPU2", uuid="GPU-d"))
    text = remembered.stale(KEPT, new, LEVELS)
    assert text is not None
    assert "measured on other GPUs (gone GPU-c; new GPU-d) and is not used" in text
    assert AGAIN in text


@pytest.mark.parametrize(
    ("gpus", "said"),
    [
        (GPUS[:2], "(gone GPU-c)"),
        ((*GPUS, Gpu("GPU3", uuid="GPU-d")), "(new GPU-d)"),
        ((*GPUS[:2], Gpu("GPU2")), "(gone GPU-c; new GPU2 without UUID)"),
        ((*GPUS, GPUS[0]), "(two share a UUID)"),
    ],
    ids=["one-less", "one-more", "no-uuid", "twice"],
)
def test_another_number_of_gpus_is_other_gpus(gpus, said):
    text = remembered.stale(KEPT, gpus, [["X"] * len(gpus)] * len(gpus))
    assert text is not None
    assert said in text


@pytest.mark.parametrize(
    ("word", "said"),
    [("NV2", "GPU0 and GPU1: NV4 then, NV2 now"), (None, "GPU0 and GPU1: NV4 then, - now")],
    ids=["weaker", "unknown"],
)
def test_a_link_lost_since_then_is_named(word, said):
    lost = [["X", word, "SYS"], [word, "X", None], ["SYS", None, "X"]]
    text = remembered.stale(KEPT, GPUS, lost)
    assert text is not None
    assert f"measured on other links ({said}) and is not used" in text


@pytest.mark.parametrize(
    ("matrix", "gpus", "said"),
    [
        ([[None, 9.0], [9.0, None]], GPUS, "the matrix is of 2 GPUs and this host has 3"),
        (MATRIX, GPUS[:2], "the matrix is of 3 GPUs and this host has 2"),
        (MATRIX, (*GPUS[:2], Gpu("GPU2")), "not every GPU has a UUID of its own (GPU2)"),
        (MATRIX, (*GPUS[:2], GPUS[1]), "not every GPU has a UUID of its own (two of them"),
        ([[None] * 3] * 3, GPUS, "measured no pair of GPUs"),
    ],
    ids=["smaller", "larger", "no-uuid", "twice", "nothing"],
)
def test_what_cannot_be_of_this_host_is_not_kept(matrix, gpus, said):
    with pytest.raises(TopologyError) as caught:
        remembered.record(Measured("read_ce", matrix), gpus, LEVELS)
    assert said in str(caught.value)


def test_what_is_kept_is_read_back():
    assert remembered.parse(remembered.render(KEPT)) == KEPT
    assert list(json.loads(remembered.render(KEPT))) == ["format", "tool", "gpus", "levels", "gb_s"]


GOOD = json.loads(remembered.render(KEPT))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no JSON"),
        (remembered.render(KEPT)[:-20], "no JSON"),
        ("[" * 100_000, "no JSON"),
        ("[]", "a JSON list, wanted is an object"),
        (json.dumps({**GOOD, "format": 2}), "format '2', wanted is 1"),
        (json.dumps({**GOOD, "tool": "\x1b[2J"}), "no name of a tool"),
        (json.dumps({**GOOD, "gpus": ["GPU-a"] * 3}), "no list of different UUIDs"),
        (json.dumps({**GOOD, "gpus": [["GPU-a"]]}), "no list of different UUIDs"),
        (json.dumps({**GOOD, "gpus": ["GPU-a", "GPU-b"]}), "no matrix of 2 rows"),
        (json.dumps({**GOOD, "levels": [["X", "FAR", "SYS"]] * 3}), "levels is no matrix"),
        (json.dumps({**GOOD, "levels": [["X"]] * 3}), "levels is no matrix"),
        (json.dumps({**GOOD, "gb_s": [[1, 2, float("nan")]] * 3}), "gb_s is no matrix"),
        (json.dumps({**GOOD, "gb_s": [[1, 2, 10**400]] * 3}), "gb_s is no matrix"),
        (json.dumps({**GOOD, "gb_s": [[1, 2, True]] * 3}), "gb_s is no matrix"),
        (json.dumps({**GOOD, "gb_s": [[1, 2, -3]] * 3}), "gb_s is no matrix"),
    ],
    ids=[
        *("empty", "cut", "deep", "list", "format", "escape", "twice", "nested", "fewer-gpus"),
        *("word", "short-row", "nan", "huge", "bool", "negative"),
    ],
)
def test_a_garbled_file_is_told_by_what_is_wrong(text, said):
    with pytest.raises(TopologyError) as caught:
        remembered.parse(text)
    assert said in str(caught.value)
    assert AGAIN in str(caught.value)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=2),
    max_leaves=6,
)


@given(st.sampled_from(sorted(GOOD)), _JSON)
def test_an_edited_file_is_understood_or_refused(key, value):
    try:
        found = remembered.parse(json.dumps({**GOOD, key: value}))
    except TopologyError:
        return
    if remembered.stale(found, GPUS, LEVELS) is None:
        assert len(remembered.in_order(found, GPUS)) == len(GPUS)
