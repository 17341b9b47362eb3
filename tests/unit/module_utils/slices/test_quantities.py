# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.steadygpu.host.plugins.module_utils.slices.quantities import (
    QuantityError,
    format_indices,
    format_size,
    format_span_us,
    parse_indices,
    parse_percent,
    parse_size,
    parse_span_us,
)


@given(st.integers(min_value=0, max_value=1 << 60), st.booleans())
def test_a_size_survives_being_written_and_read(amount: int, decimal: bool) -> None:
    assert parse_size(format_size(amount, decimal), decimal) == amount


@given(st.integers(min_value=0, max_value=10**12))
def test_a_time_span_survives_being_written_and_read(span_us: int) -> None:
    assert parse_span_us(format_span_us(span_us)) == span_us


@given(st.sets(st.integers(min_value=0, max_value=8191), min_size=1, max_size=40))
def test_cpu_numbers_survive_being_written_and_read(numbers: set[int]) -> None:
    assert parse_indices(format_indices(numbers)) == tuple(sorted(numbers))


@given(st.text(max_size=12))
def test_any_text_is_a_size_or_a_clear_error(text: str) -> None:
    said = ""
    try:
        size = parse_size(text)
    except QuantityError as error:
        said = str(error)
    assert "such as 8G" in said or size >= 0


@pytest.mark.parametrize(
    ("text", "size"),
    [("8G", 8589934592), ("1.5G", 1610612736), ("4096", 4096), ("0", 0), ("512K", 524288)],
)
def test_sizes_are_powers_of_1024(text: str, size: int) -> None:
    assert parse_size(text) == size


def test_io_bandwidth_is_in_powers_of_1000() -> None:
    assert parse_size("5M", decimal=True) == 5000000


@pytest.mark.parametrize("text", ["8GB", "8Gi", "8g", "-1", "", "8 G", "٣G"])
def test_other_spellings_of_a_size_are_refused(text: str) -> None:
    with pytest.raises(QuantityError):
        parse_size(text)


@pytest.mark.parametrize("text", ["300", "50.123%", "%", "-5%"])
def test_a_percentage_needs_its_sign_and_at_most_two_decimals(text: str) -> None:
    with pytest.raises(QuantityError):
        parse_percent(text)


@pytest.mark.parametrize("text", ["3-1", "0-x", "0-99999999", "1--2"])
def test_a_range_that_cannot_be_is_refused(text: str) -> None:
    with pytest.raises(QuantityError):
        parse_indices(text)


def test_cpu_lists_may_use_spaces_or_commas() -> None:
    assert parse_indices("0-2, 5 7") == (0, 1, 2, 5, 7)
