# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.steadygpu.host.plugins.module_utils.rollback.storage.retention import (
    Kept,
    going,
)

DAY = 86400.0
NOW = 100 * DAY


def daily(count: int) -> list[Kept]:
    """One a day, the last one at NOW."""
    return [Kept(str(number), number, NOW - (count - 1 - number) * DAY) for number in range(count)]


def test_the_oldest_go_by_count() -> None:
    assert going(daily(5), keep=3, max_age_days=None, now=NOW) == ["0", "1"]


def test_the_old_ones_go_by_age() -> None:
    assert going(daily(5), keep=20, max_age_days=2.5, now=NOW) == ["0", "1"]
    # On the day itself it is not older yet.
    assert going(daily(5), keep=20, max_age_days=4, now=NOW) == []


def test_what_is_needed_stays() -> None:
    assert going(daily(5), keep=1, max_age_days=1, now=NOW, needed={"0", "2"}) == ["1", "3"]


def test_the_newest_stays_however_old_it_is() -> None:
    assert going(daily(2), keep=1, max_age_days=1, now=NOW + 1000 * DAY) == ["0"]


def test_a_clock_that_jumped_ahead_leaves_some_to_go_back_to() -> None:
    ahead = NOW + 1000 * DAY
    assert going(daily(6), keep=20, max_age_days=90, now=ahead) == ["0", "1", "2"]


def test_newer_goes_by_the_sequence_and_not_by_the_clock() -> None:
    # The clock jumped back by years between the two.
    jumped = [Kept("first", 1, NOW), Kept("second", 2, 10.0)]
    assert going(jumped, keep=1, max_age_days=None, now=20.0) == ["first"]


def test_a_time_to_come_has_no_age() -> None:
    ahead = [Kept("a", 1, NOW + 500 * DAY), Kept("b", 2, NOW + 600 * DAY)]
    assert going(ahead, keep=20, max_age_days=1, now=NOW) == []


def test_what_cannot_be_read_goes_by_count_only() -> None:
    damaged = [Kept("a", 1, None), Kept("b", 2, NOW)]
    assert going(damaged, keep=20, max_age_days=1, now=NOW + 99 * DAY) == []
    assert going(damaged, keep=1, max_age_days=1, now=NOW) == ["a"]


times = st.none() | st.floats(0, 200 * DAY)


@given(
    st.lists(times, max_size=12),
    st.integers(1, 15),
    st.none() | st.floats(0, 300),
    st.floats(0, 200 * DAY),
    st.sets(st.integers(0, 11)),
)
def test_what_stays_and_what_goes(
    taken: list[float | None], keep: int, age: float | None, now: float, needed: set[int]
) -> None:
    kept = [Kept(str(number), number, moment) for number, moment in enumerate(taken)]
    gone = going(kept, keep, age, now, {str(number) for number in needed})
    assert not {int(one) for one in gone} & needed
    assert gone == sorted(gone, key=int)
    if kept:
        assert kept[-1].id not in gone
    # Without an age, exactly the newest stay, and what is needed.
    if age is None:
        assert len(kept) - len(gone) == len(
            {*range(len(kept))[-keep:], *needed} & {*range(len(kept))}
        )
