# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import copy
import json
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.steadygpu.host.plugins.module_utils.checks.facts_host import from_facts
from ansible_collections.steadygpu.host.plugins.module_utils.checks.host import HostView
from ansible_collections.steadygpu.host.plugins.module_utils.checks.judge import judge
from ansible_collections.steadygpu.host.plugins.module_utils.checks.registry import all_rules

BASE = json.loads((Path(__file__).parents[4] / "data" / "rules" / "base_host.json").read_text())
FACTS = {key: value for key, value in BASE.items() if key != "evidence"}
EVIDENCE = BASE["evidence"]
# Only the rules that judge a host: what they get is not theirs to trust.
RULES = {name: rule for name, rule in all_rules().items() if rule.reads is HostView}


def test_a_healthy_host():
    host = from_facts(FACTS, EVIDENCE, "gpu1")
    assert host.live
    assert host.os == "debian 13"
    assert host.version("docker") == "29.7.2"
    assert host.version("docker_cli") == "29.7.2"
    assert host.version("cgroup") == "2"
    assert host.version("driver") == host.version("library") == "580.178.04"
    assert [gpu.numa_node for gpu in host.gpus] == [0, 0, 1, 1]
    assert host.nodes == {0: "0-15", 1: "16-31"}
    assert host.cpu_count == 32
    assert host.vendors == {"nvidia"}
    assert "nvidia.com/gpu=all" in host.cdi_devices
    assert host.hook_on_path is True
    assert host.packages["nvidia-driver"].held
    assert host.weights_work is False


def test_nothing_is_said_of_a_healthy_host():
    assert judge([], from_facts(FACTS, EVIDENCE), RULES) == []


def test_without_evidence_the_facts_alone_fill_what_they_can():
    host = from_facts(FACTS)
    assert host.cpus == "0-15,16-31"
    assert host.memory_mib == 515000
    assert (host.hook_on_path, host.weights_work, host.rootless) == (None, None, None)


def test_gpus_that_cannot_be_named_are_not_known_rather_than_none():
    for change in ({"hidden": ["/dev/nvidia0"]}, {"status": "unresponsive"}):
        facts = copy.deepcopy(FACTS)
        facts["gpu"]["devices"] = []
        facts["gpu"]["driver"].update(change)
        assert from_facts(facts).gpus is None
    facts["gpu"]["driver"].update({"hidden": [], "status": "absent"})
    facts["gpu"]["pci"] = []
    assert from_facts(facts).gpus == ()


def test_an_engine_that_does_not_answer_leaves_its_runtimes_unknown():
    facts = copy.deepcopy(FACTS)
    facts["docker"].update(status="stopped", runtimes=[], cgroup_driver=None)
    host = from_facts(facts)
    assert (host.runtimes, host.cdi_enabled, host.cgroup_driver) == (None, None, None)


def _paths(tree, path=()):
    if isinstance(tree, (dict, list)) and tree:
        items = tree.items() if isinstance(tree, dict) else enumerate(tree)
        for key, value in items:
            yield (*path, key)
            yield from _paths(value, (*path, key))


PATHS = sorted(_paths(BASE), key=str)
ANYTHING = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=5)
    | st.lists(st.none() | st.integers() | st.text(max_size=3) | st.just({}), max_size=2)
    | st.dictionaries(st.text(max_size=3), st.integers(), max_size=2)
)


@settings(max_examples=2 * settings.default.max_examples // 3)
@given(st.lists(st.tuples(st.sampled_from(PATHS), ANYTHING), min_size=1, max_size=3))
def test_no_damage_to_facts_or_evidence_stops_the_rules(changes):
    whole = copy.deepcopy(BASE)
    for path, value in changes:
        tree = whole
        for step in path[:-1]:
            try:
                tree = tree[step]
            except (KeyError, IndexError, TypeError):
                break
        else:
            if isinstance(tree, dict) or (isinstance(tree, list) and path[-1] < len(tree)):
                tree[path[-1]] = copy.deepcopy(value)
    evidence = whole.pop("evidence")
    host = from_facts(whole, evidence if isinstance(evidence, dict) else None)
    judge([], host, RULES)
