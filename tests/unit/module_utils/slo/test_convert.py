# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rows 121 and 122: settings of an article become our policy, and nothing is lost unsaid."""

from __future__ import annotations

import json
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.steadygpu.host.plugins.module_utils.slo import model, read, values
from ansible_collections.steadygpu.host.plugins.module_utils.slo.convert import (
    Converted,
    Given,
    convert,
)
from ansible_collections.steadygpu.host.plugins.module_utils.slo.model import Objective
from steadygpu_agent.slo import as_yaml

# As the article has them, with the line breaks that it lost.
PLUGIN = """\
pluginConfig:
  name: "availability-enforcer"
  args:
    minAvailablePods: 3
    maxLatencyMs: 200
"""
POLICY = """\
apiVersion: scheduling.slo/v1
kind: SLOPolicy
spec:
  target: "workload-a"
  availability: "99.95%"
  latency:
    p95: "200ms"
"""
DOTTED = """\
slo.target: workload-a
slo.targetAvailability: 99.95%
slo.latency.p95.ms: 200
"""
WORKLOAD = Objective("workload-a", Decimal("0.9995"), None, {"p95": 200_000})


def told(found: Converted, kind: str) -> str:
    return "\n".join(str(one) for one in found.those(kind))


def test_a_number_of_pods_stays_a_number_and_a_share_is_asked_for() -> None:
    found = convert(PLUGIN, Given("workload-a"))
    assert found.objectives == (Objective("workload-a", None, 3, {"p95": 200_000}),)
    changed = told(found, "changed")
    assert "minAvailablePods: kept as min_replicas 3" in changed
    assert "a number of pods is no share of time" in changed
    assert "a maximum has no equal: 5 of 100 answers may be slower" in changed
    assert "3 replicas say nothing of a share of time; add it: --avail" in told(found, "needed")
    assert "'availability-enforcer' is code of a scheduler" in told(found, "no_equal")
    assert found.usable


def test_a_share_stays_a_share_and_a_number_is_asked_for() -> None:
    found = convert(POLICY)
    assert found.objectives == (WORKLOAD,)
    assert "add what minAvailablePods said: --min-replicas N" in told(found, "needed")
    assert "no cluster has the kind SLOPolicy of scheduling.slo/v1" in told(found, "no_equal")
    assert "has no window; 30d is what is counted over" in told(found, "changed")


def test_the_table_and_the_example_of_the_article_mean_the_same() -> None:
    # The table says slo.latency.p95.ms, the example latency.p95 with a unit.
    assert convert(DOTTED).objectives == convert(POLICY).objectives
    nested = "slo: {target: workload-a, targetAvailability: 0.9995, latency: {p95: {ms: 200}}}"
    assert convert(nested).objectives == (WORKLOAD,)


def test_the_old_settings_and_the_new_together_lose_nothing() -> None:
    found = convert(PLUGIN + "---\n" + POLICY, Given("workload-a"))
    assert found.objectives == (Objective("workload-a", Decimal("0.9995"), 3, {"p95": 200_000}),)
    assert (found.those("needed"), found.those("error")) == ([], [])


def test_what_the_user_adds_fills_what_nobody_says() -> None:
    share = Given("a", Decimal("0.999"), 2)
    assert convert(PLUGIN, share).objectives == (
        Objective("a", Decimal("0.999"), 3, {"p95": 200_000}),
    )
    assert convert(POLICY, share).objectives[0].min_replicas == 2
    assert convert(POLICY, share).objectives[0].availability == Decimal("0.9995")


def test_two_that_contradict_each_other_are_an_error() -> None:
    found = convert(POLICY + "---\n" + POLICY.replace("200ms", "300ms"))
    assert "latency.p95 of workload-a is another than before" in told(found, "error")
    assert not found.usable


def test_what_has_no_equal_is_named_with_its_place() -> None:
    text = POLICY.replace("spec:", "metadata: {name: x, labels: {a: b}}\nspec:\n  preempt: true")
    found = convert(text)
    places = {(one.path, one.line) for one in found.those("no_equal")}
    assert {("spec.preempt", 5), ("metadata.labels", 3)} <= places
    assert found.objectives[0].target == "workload-a"
    unnamed = POLICY.replace('  target: "workload-a"\n', "").replace(
        "spec:", "metadata: {name: x}\nspec:"
    )
    assert convert(unnamed).objectives[0].target == "x"


def test_a_configuration_of_the_schedulers_profiles_is_understood() -> None:
    text = """\
kind: KubeSchedulerConfiguration
profiles:
  - schedulerName: gpu
    pluginConfig:
      - name: a
        args: {minAvailablePods: 2, target: web, cooldown: 5}
      - name: b
        args: {maxLatencyMs: 1500, target: batch}
"""
    found = convert(text)
    assert found.objectives == (
        Objective("web", None, 2),
        Objective("batch", None, None, {"p95": 1_500_000}),
    )
    assert "profiles[0].pluginConfig[0].args.cooldown: cooldown has no equal" in told(
        found, "no_equal"
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (PLUGIN, "the settings name no target; say whose they are: --target NAME"),
        (POLICY.replace("200ms", "200"), "'200' has no unit; is it 200ms or 200s?"),
        (POLICY.replace("99.95%", "99.95"), "is it 99.95%?"),
        (POLICY.replace("99.95%", "120%"), "out of range"),
        (POLICY.replace("p95", "p96"), "is it p9"),
        (POLICY.replace("spec:", "spec: 3\nx:"), "the policy has no spec"),
        (PLUGIN.replace("3", "50%"), "'50%' is no number of replicas"),
        (PLUGIN.replace("3", "0"), "wanted is 1 or more"),
        ("a: 1", "neither pluginConfig nor kind: SLOPolicy"),
        ("", "no settings of a scheduler"),
        ("- a", "it is no mapping"),
        ("a: [", ""),
        ("kind: SLOPolicy\nspec: {target: a}", "nothing is asked for a"),
    ],
)
def test_what_cannot_be_taken_is_an_error_with_the_way_out(text: str, words: str) -> None:
    found = convert(text)
    assert not found.usable
    assert words in told(found, "error")
    assert found.those("error")


@st.composite
def objectives(draw: st.DrawFn) -> Objective:
    """Any objective that a policy can hold."""
    share = draw(st.none() | st.integers(1, 10**7).map(lambda n: (Decimal(n) / 10**7).normalize()))
    replicas = draw(st.integers(1, 999999))
    names = draw(st.lists(st.sampled_from(model.QUANTILES), unique=True))
    numbers = sorted(
        draw(st.lists(st.integers(1, 10**12), min_size=len(names), max_size=len(names)))
    )
    ordered = [name for name in model.QUANTILES if name in names]
    target = draw(st.text(min_size=1).filter(lambda t: t.strip() and t.isprintable()))
    window = draw(st.integers(1, 366 * 86_400_000_000))
    return Objective(target, share, replicas, dict(zip(ordered, numbers)), window)


@settings(max_examples=40)
@given(objectives())
def test_a_policy_survives_the_way_through_a_file(one: Objective) -> None:
    assert read.from_text(as_yaml([one])) == ((one,), [])
    assert read.from_text(json.dumps(model.document((one,)))) == ((one,), [])
    # What is ours already stays what it is.
    assert convert(as_yaml([one])).objectives == (one,)


@given(st.integers(1, 366 * 86_400_000_000))
def test_a_duration_is_exact(microseconds: int) -> None:
    assert values.duration_us(values.duration_text(microseconds)) == microseconds


@pytest.mark.parametrize(
    ("written", "microseconds"),
    [
        ("200ms", 200_000),
        ("0.2s", 200_000),
        ("1.5h", 5_400_000_000),
        ("3 µs", 3),
        ("30d", 2592000000000),
    ],
)
def test_durations(written: str, microseconds: int) -> None:
    assert values.duration_us(written) == microseconds


@pytest.mark.parametrize("written", ["", "5", "-5ms", "5 parsecs", "0ms", "0.5us", "400d", "1e3s"])
def test_what_is_no_duration(written: str) -> None:
    with pytest.raises(values.ValueFaultError):
        values.duration_us(written)


FAULTY = """\
version: 2
objectives:
  - target: a
    availability: 99
    minreplicas: 3
    latency: {p95: 2s, p99: 1s}
  - target: b
  - target: a
    min_replicas: true
  - 3
  - min_replicas: 3
"""


def test_all_faults_of_a_policy_are_told_at_once() -> None:
    _found, remarks = read.from_text(FAULTY)
    told = {(one.line, one.path): f"{one.said}; {one.advice}" for one in remarks}
    assert told[1, "version"] == "the version is 2; write 1"
    assert "is it 99%?" in told[4, "objectives[0].availability"]
    assert "is it min_replicas?" in told[5, "objectives[0]"]
    assert "faster than a lower one" in told[6, "objectives[0].latency"]
    assert "it asks for nothing" in told[7, "objectives[1]"]
    assert "neither a text nor a number" in told[9, "objectives[2].min_replicas"]
    assert "an objective is a mapping" in told[10, "objectives[3]"]
    assert "it names no target" in told[11, "objectives[4].target"]
