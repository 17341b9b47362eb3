# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Sections of one fact key, gathered by two modules, do not push each other out."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.steadygpu.host.plugins.plugin_utils.facts import merge_sections


def test_the_other_modules_sections_stay():
    former = {"schema": 1, "gpu": {"source": "nvml"}, "docker": {"status": "absent"}}
    gathered = {"schema": 1, "docker": {"status": "running"}}
    assert merge_sections(former, gathered) == {
        "schema": 1,
        "gpu": {"source": "nvml"},
        "docker": {"status": "running"},
    }


def test_a_section_is_replaced_whole():
    former = {"schema": 1, "gpu": {"devices": [1, 2], "stale": True}}
    assert merge_sections(former, {"schema": 1, "gpu": {"devices": [1]}})["gpu"] == {"devices": [1]}


def test_facts_of_another_schema_are_dropped():
    assert merge_sections({"schema": 0, "gpu": {}}, {"schema": 1, "os": {}}) == {
        "schema": 1,
        "os": {},
    }


@given(st.one_of(st.none(), st.text(), st.lists(st.integers()), st.integers()))
def test_what_is_no_fact_dictionary_is_not_merged(former):
    assert merge_sections(former, {"schema": 1, "os": {}}) == {"schema": 1, "os": {}}
