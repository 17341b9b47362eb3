# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The table of dockerd's keys: releases, flags and types."""

from __future__ import annotations

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.engine import (
    daemon_judge,
    daemon_keys,
    daemon_rules,
)


@pytest.mark.parametrize(
    ("name", "version", "known"),
    [
        ("runtimes", "20.10.24", True),
        ("cdi-spec-dirs", "24.0.9", False),
        ("cdi-spec-dirs", "26.1.5+dfsg1", True),
        ("nri-opts", "29.1.5", False),
        ("nri-opts", "29.2.0", True),
        ("graph", "23.0.6", True),
        ("graph", "24.0.0", False),
        ("oom-score-adjust", "25.0.17", True),
        ("oom-score-adjust", "26.1.5", False),
    ],
)
def test_a_key_is_in_some_releases(name, version, known):
    assert daemon_keys.KEYS[name].in_release(version) is known


def test_a_flag_may_be_younger_than_its_key():
    assert daemon_keys.KEYS["features"].in_release("26.1.5")
    assert not daemon_keys.flag_in_release("feature", "26.1.5")
    assert daemon_keys.flag_in_release("feature", "28.5.2")


def test_flags_and_keys_know_each_other():
    assert daemon_keys.key_of_flag("add-runtime").name == "runtimes"
    assert daemon_keys.key_of_flag("insecure-registry").name == "insecure-registries"
    assert daemon_keys.key_of_flag("config-file") is None
    assert daemon_keys.is_flag("config-file")
    assert not daemon_keys.is_flag("ai-scheduler")


def test_every_short_flag_is_a_flag():
    assert all(daemon_keys.is_flag(long) for long in daemon_keys.SHORT_FLAGS.values())


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("debug", "true"),
        ("debug", 1),
        ("mtu", "1450"),
        ("mtu", True),
        ("mtu", 1450.5),
        ("dns", "10.0.0.2"),
        ("dns", [1]),
        ("log-opts", {"max-file": 3}),
        ("features", {"cdi": "true"}),
        ("runtimes", {"nvidia": "nvidia-container-runtime"}),
        ("default-shm-size", 67108864),
    ],
)
def test_what_the_decoder_refuses(name, value):
    assert daemon_keys.type_fault(daemon_keys.KEYS[name].kind, value) is not None


@pytest.mark.parametrize("name", daemon_keys.KEYS)
def test_null_is_right_for_every_key(name):
    assert daemon_keys.type_fault(daemon_keys.KEYS[name].kind, None) is None


def test_the_api_range_of_a_release():
    assert daemon_keys.api_range("26.1.5") == ("1.24", "1.45")
    assert daemon_keys.api_range("29.1.0") == ("1.44", "1.52")
    assert daemon_keys.api_range("29.7.2") == ("1.40", "1.55")
    assert daemon_keys.api_range("19.03.1") is None


def test_all_that_a_reload_takes_is_a_key():
    every = {**dict.fromkeys(daemon_keys.KEYS, "x"), "features": {}, "exec-opts": []}
    change = daemon_rules.classify({}, every, "29.7.2")
    assert set(change.hot) <= set(daemon_keys.KEYS)
    assert "runtimes" in change.hot


def test_what_is_planned_and_what_is_checked_know_the_same_features():
    wanted = {"features": dict.fromkeys(daemon_keys.FEATURES, True)}
    daemon = daemon_judge.Daemon("29.7.2", [], None, bool)
    assert daemon_judge.judge({}, wanted, ["features"], daemon).errors == ()
