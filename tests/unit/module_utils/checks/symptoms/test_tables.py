# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The tables behind ``steadygpu explain``: whole, quiet where nothing is wrong, and quick."""

from __future__ import annotations

import json
import pathlib
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.steadygpu.host.plugins.module_utils.checks.explain import (
    Standing,
    all_symptoms,
    explain,
)
from ansible_collections.steadygpu.host.plugins.module_utils.checks.host import HostView
from ansible_collections.steadygpu.host.plugins.module_utils.checks.symptoms import search
from ansible_collections.steadygpu.host.tests.unit.module_utils.checks import rule_examples

DATA = json.loads(
    (pathlib.Path(__file__).parents[4] / "data" / "messages.json").read_text(encoding="utf-8")
)
SYMPTOMS = all_symptoms()
UNKNOWN_ERROR = "Failed to initialize NVML: Unknown Error"


def _causes(text, host=None):
    return [
        judged.cause.id for found in explain(text, host or HostView()) for judged in found.causes
    ]


def test_every_symptom_is_whole():
    assert len({symptom.id for symptom in SYMPTOMS}) == len(SYMPTOMS)
    for symptom in SYMPTOMS:
        assert bool(symptom.normal) != bool(symptom.causes), symptom.id
        assert symptom.normal or symptom.tell_apart, symptom.id
        assert symptom.sources, symptom.id
        ids = [cause.id for cause in symptom.causes]
        assert len(set(ids)) == len(ids), symptom.id
        for cause in symptom.causes:
            assert all((cause.title, cause.why, cause.proof, cause.shows, cause.fix)), cause.id
            assert cause.sources, cause.id


@pytest.mark.parametrize(("says", "cause"), DATA["known"])
def test_a_known_message_leads_to_its_cause(says, cause):
    first = [found.causes[0].cause.id for found in explain(says, HostView()) if found.causes]
    assert cause in first


@pytest.mark.parametrize("says", DATA["quiet"])
def test_of_ordinary_output_nothing_is_said(says):
    assert [found.quoted for found in explain(says, HostView())] == []


def test_unknown_error_has_at_least_six_causes_and_one_command_that_tells_them_apart():
    (found,) = explain(UNKNOWN_ERROR, HostView())
    assert len(found.causes) >= 6
    assert "DeviceAllow" in found.symptom.tell_apart
    assert "\n" not in found.symptom.tell_apart


def _unknown_error_on(changes):
    (found,) = explain(UNKNOWN_ERROR, rule_examples.host_with(changes))
    return {judged.cause.id: judged.standing for judged in found.causes}


def test_facts_confirm_the_hook_that_lost_its_gpu():
    lost = {
        "docker.cgroup_driver": "systemd",
        "evidence.containers": [
            {"id": "a", "name": "t", "gpus": "hook", "running": True, "lost": ["/dev/nvidia0"]}
        ],
    }
    assert _unknown_error_on(lost)["gpus-flag-and-systemd-reload"] is Standing.CONFIRMED


def test_facts_rule_the_hook_out():
    by_cdi = {
        "evidence.containers": [
            {"id": "a", "name": "t", "gpus": "cdi", "running": True, "lost": []}
        ]
    }
    assert _unknown_error_on(by_cdi)["gpus-flag-and-systemd-reload"] is Standing.RULED_OUT


def test_facts_confirm_a_missing_uvm():
    (found, *_rest) = explain(
        "CUDA_ERROR_UNKNOWN", rule_examples.host_with({"gpu.modules.nvidia_uvm": False})
    )
    assert (found.causes[0].cause.id, found.causes[0].standing) == (
        "uvm-missing",
        Standing.CONFIRMED,
    )


def test_every_question_to_the_facts_can_be_answered_for_any_host():
    hosts = [HostView(), HostView(live=True), rule_examples.host_with({})]
    for symptom in SYMPTOMS:
        for cause in symptom.causes:
            for host in hosts:
                if cause.holds:
                    assert cause.holds(host) in (True, False, None), cause.id


def test_what_is_looked_for_first_never_hides_a_match():
    for says, _cause in DATA["known"]:
        flat = search.flatten(says)
        for symptom in SYMPTOMS:
            for pattern in symptom.patterns:
                slow = search.compiled(pattern).search(flat)
                quick = search.first((pattern,), flat, flat.lower())
                assert bool(slow) == bool(quick), pattern


@pytest.mark.parametrize(
    ("pattern", "wanted"),
    [
        (r"GPU has fallen off the bus", ("gpu has fallen off the bus",)),
        (r"(open|opening) of /dev/x{0,40}EPERM", (" of /dev/",)),
        (r"aaaa|b\.bb.{0,9}c", ("aaaa", "b.bb")),
        (r"\d+|abcd", ()),
        (r"colou?r", ("colo",)),
    ],
)
def test_the_text_that_a_pattern_needs(pattern, wanted):
    assert search.needs(pattern) == wanted


def test_a_long_log_is_searched_quickly():
    log = search.flatten("NVRM: container docker GPU nvidia error failed CUDA NCCL xid\n" * 40000)
    began = time.monotonic()
    for symptom in SYMPTOMS:
        search.first(symptom.patterns, log, log.lower())
    # Measured 0.3 s; the bound only tells a pattern that backtracks from one that does not.
    assert time.monotonic() - began < 20


@settings(max_examples=2 * settings.default.max_examples // 5)
@given(st.text(max_size=300))
def test_any_text_ends_with_an_answer(text):
    assert isinstance(explain(text, HostView()), tuple)
