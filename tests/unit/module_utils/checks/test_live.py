# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A host is judged whole: what its facts and its files both say is said once, with the line."""

from __future__ import annotations

import copy
import json

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.checks import live
from ansible_collections.steadygpu.host.plugins.module_utils.checks.host import HostView
from ansible_collections.steadygpu.host.plugins.module_utils.checks.registry import all_rules
from ansible_collections.steadygpu.host.tests.unit.module_utils.checks import rule_examples

BASE = json.loads((rule_examples.FOLDER / "base_host.json").read_text())
SPEC = """cdiVersion: "0.7.0"
kind: nvidia.com/gpu
devices:
  - name: "0"
    containerEdits: {deviceNodes: [{path: /dev/nvidia0}]}
"""
OPEN = '{"hosts": ["tcp://0.0.0.0:2375"]}'


def judged(texts=None, **facts):
    found = copy.deepcopy(BASE)
    evidence = found.pop("evidence")
    evidence.update(facts.pop("evidence", {}))
    evidence["texts"] = texts or {}
    for name, values in facts.items():
        found[name].update(values)
    return live.judge_host(found, evidence, "host").findings


def places(findings, *rules):
    return [(f.rule, f.at.file, f.at.line) for f in findings if f.rule in rules]


@pytest.mark.parametrize(
    ("texts", "told"),
    [
        ({}, [("cdi-spec-newer-than-engine", "host", 0)]),
        ({"/run/cdi/nvidia.yaml": SPEC}, [("cdi-version-above-engine", "/run/cdi/nvidia.yaml", 1)]),
    ],
)
def test_a_cdi_spec_that_was_read_is_not_told_of_the_host_too(texts, told):
    spec = {"path": "/var/run/cdi/nvidia.yaml", "status": "valid", "cdi_version": "0.7.0"}
    docker = {"version": "25.0.5"}
    cdi = {"specs": [spec]}
    found = judged(texts, docker=docker, cdi=cdi)
    assert places(found, "cdi-spec-newer-than-engine", "cdi-version-above-engine") == told


@pytest.mark.parametrize(
    ("texts", "told"),
    [
        ({}, [("engine-listens-without-tls", "host", 0)]),
        (
            {"/etc/docker/daemon.json": OPEN},
            [("docker-api-without-tls", "/etc/docker/daemon.json", 1)],
        ),
        (
            # What the file says is a warning, what the host does is an error: both stand.
            {"/etc/docker/daemon.json": OPEN.replace("0.0.0.0", "127.0.0.1")},
            [
                ("engine-listens-without-tls", "host", 0),
                ("docker-api-without-tls", "/etc/docker/daemon.json", 1),
            ],
        ),
    ],
)
def test_an_open_port_is_told_where_it_is_configured(texts, told):
    listener = {"process": "dockerd", "address": "0.0.0.0:2375"}
    found = judged(texts, evidence={"listeners": [listener]})
    assert places(found, "engine-listens-without-tls", "docker-api-without-tls") == told


def test_a_weight_that_no_disk_honours_is_told_once():
    texts = {"/etc/systemd/system/ai.slice": "[Slice]\nIOWeight=800\n"}
    found = [f for f in judged(texts) if "weight" in f.rule]
    assert places(found, "unit-io-weight-inert") == [
        ("unit-io-weight-inert", "/etc/systemd/system/ai.slice", 2)
    ]
    assert len(found) == 1


def test_only_rules_on_hosts_give_way_and_only_to_rules_on_files():
    rules = all_rules()
    for rule in rules.values():
        assert not rule.told_by or rule.reads is HostView
        assert all(rules[name].reads is not HostView for name in rule.told_by)
