# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Kernel lists and masks."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.steadygpu.host.plugins.module_utils.topology import lists


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("0-3", (0, 1, 2, 3)),
        ("6,14,22,30", (6, 14, 22, 30)),
        ("0,2-4", (0, 2, 3, 4)),
        ("0-15:1/4", (0, 4, 8, 12)),
        ("0-7:2/4", (0, 1, 4, 5)),
        (" 3 ", (3,)),
        ("", None),
        ("N/A", None),
        ("4-2", None),
        ("0-999999", None),
        ("1,,2", None),
    ],
)
def test_lists_as_linux_writes_them(text: str, numbers: tuple[int, ...] | None) -> None:
    assert lists.numbers(text) == numbers


@given(st.sets(st.integers(0, 400)))
def test_a_list_is_read_back(values: set[int]) -> None:
    text = lists.text_of(values)
    assert (lists.numbers(text) or ()) == tuple(sorted(values))


@given(st.sets(st.integers(0, 400)))
def test_a_mask_is_read_back(values: set[int]) -> None:
    mask = sum(1 << value for value in values)
    words = []
    while mask or not words:
        words.append(f"{mask & 0xFFFFFFFF:08x}")
        mask >>= 32
    assert lists.of_mask(",".join(reversed(words))) == tuple(sorted(values))


def test_hwloc_leaves_empty_words_out_and_writes_endless_sets() -> None:
    assert lists.of_mask("0x00000001,,0x00000002") == (1, 64)
    assert lists.of_mask("0xf...f,0x00000003") == (0, 1)
    with pytest.raises(ValueError, match="invalid literal"):
        lists.of_mask("cpus")
