# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What dockerd --validate accepts (seen on 26.1.5 and 28.5.2) and what we refuse."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.engine.daemon_judge import (
    Daemon,
    Judgement,
    judge,
)


def look(
    after: dict[str, Any],
    before: dict[str, Any] | None = None,
    version: str | None = "26.1.5",
    touched: tuple[str, ...] | None = None,
) -> Judgement:
    drivers = ["json-file", "journald"] if version else []
    daemon = Daemon(version, drivers, "systemd", lambda path: path != "/missing")
    return judge(before or {}, after, tuple(after) if touched is None else touched, daemon)


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"features": {"gpu-scheduler": True}}, "features.gpu-scheduler: no Docker release has it"),
        ({"features": {"cid": True}}, "did you mean cdi?"),
        ({"features": {"swarm-nftables": True}}, "needs Docker 29.6.0 or newer, this is 26.1.5"),
        ({"features": {"cdi": "true"}}, "features.cdi must be true or false"),
        ({"gpu-manager": {"policy": "spread"}}, "dockerd has no such key"),
        ({"live_restore": True}, "did you mean live-restore?"),
        ({"nri-opts": {"enable": True}}, "nri-opts needs Docker 29.2.0 or newer, this is 26.1.5"),
        ({"graph": "/srv"}, "graph is gone since Docker 24.0.0"),
        ({"default-runtime": "nvidia"}, "runtimes does not define"),
        ({"runtimes": {"n": {"path": "/missing"}}}, "no such program"),
        ({"runtimes": {"n": {}}}, "neither path nor runtimeType"),
        ({"runtimes": {"n": {"path": "/x", "runtimeType": "y"}}}, "only one"),
        (
            {"runtimes": {"n": {"path": "/x", "options": {}, "args": []}}},
            "n.args: a runtime",
        ),
        ({"runtimes": {"n": {"path": "/x", "runtimeArgs": "--debug"}}}, "must be a list of texts"),
        (
            {"runtimes": {"n": {"runtimeType": "y", "runtimeArgs": ["a"]}}},
            "go with path",
        ),
        ({"runtimes": {"n": "/usr/bin/x"}}, "runtimes.n must be an object"),
        ({"exec-opts": ["native.cgroupdriver=bogus"]}, "wanted systemd or cgroupfs"),
        ({"exec-opts": ["native.umask=normal"]}, "the only one is native.cgroupdriver"),
        ({"log-driver": "loki"}, "this daemon has journald, json-file"),
        ({"log-opts": {"max-sise": "10m"}}, "did you mean max-size?"),
        ({"cgroup-parent": "/docker"}, "must end in .slice"),
        ({"bridge": "br0", "bip": "10.0.0.1/24"}, "exclude each other"),
        ({"default-ulimits": {"n": {"Name": "n", "Hart": 1}}}, "a limit has Name, Hard and Soft"),
        ({"default-ulimits": {"n": {"Name": "n", "Hard": 1, "Soft": 2}}}, "above Hard"),
        ({"max-concurrent-downloads": "3"}, "a whole number without quotes"),
    ],
)
def test_what_dockerd_wrongly_accepts_is_an_error(config: dict[str, Any], words: str) -> None:
    assert words in " ".join(look(config).errors)
    assert look(config, config, touched=()).errors == ()


@pytest.mark.parametrize(
    "config",
    [
        {"features": {"cdi": True, "containerd-snapshotter": False}, "live-restore": True},
        {"runtimes": {"n": {"path": "/x", "runtimeArgs": ["--debug"]}}, "default-runtime": "n"},
        {"runtimes": {"k": {"runtimeType": "io.containerd.kata.v2", "options": {"a": 1}}}},
        {"exec-opts": ["native.cgroupdriver=systemd"], "cgroup-parent": "batch.slice"},
        {"log-driver": "journald", "log-opts": {"tag": "x", "mode": "non-blocking"}},
        {"log-driver": "none"},
        {"default-ulimits": {"memlock": {"Name": "memlock", "Hard": -1, "Soft": -1}}},
        {"default-runtime": "io.containerd.runc.v2"},
        {"insecure-registries": None},
    ],
)
@pytest.mark.parametrize("version", ["26.1.5+dfsg1", None])
def test_what_is_right_passes(config: dict[str, Any], version: str | None) -> None:
    assert look(config, version=version) == Judgement((), ())


def test_a_release_newer_than_our_tables_may_know_more() -> None:
    config = {"features": {"new-thing": True}, "new-key": 1, "runtimes": {"n": {}}}
    judged = look(config, version="30.1.0")
    assert len(judged.warnings) == 2
    assert judged.errors == (
        "runtimes.n has neither path nor runtimeType: no container could start with it",
    )


def test_what_stood_there_before_is_told_and_never_refused() -> None:
    foreign = {"features": {"gpu": True}, "runtimes": {"old": {"path": "/missing"}}}
    after = {
        "features": {"gpu": True, "cdi": True},
        "runtimes": {"old": {"path": "/missing"}, "new": {"path": "/x"}},
    }
    judged = look(after, foreign)
    assert judged.errors == ()
    assert "features.gpu" in judged.warnings[0]
    assert "/missing" in judged.warnings[1]


def test_a_bare_host_is_judged_by_the_tables_alone() -> None:
    assert look({"log-driver": "awslogs", "features": {"cdi": True}}, version=None).errors == ()
    assert "splunk" in look({"log-driver": "loki"}, version=None).errors[0]
    assert look({"log-driver": "grafana/loki:3"}, version=None).errors == ()
    assert "no such key" in look(json.loads('{"ai-scheduler": "on"}'), version=None).errors[0]


def test_cg_013_a_parent_that_is_no_slice_is_refused_before_there_is_a_docker() -> None:
    bare = Daemon(None, [], None, lambda _path: True)
    for parent in ("/gpdb", "gpdb.service"):
        config: dict[str, Any] = {"cgroup-parent": parent}
        assert "must end in .slice" in " ".join(look(config).errors)
        assert "must end in .slice" in " ".join(judge({}, config, tuple(config), bare).errors)
    config = {"cgroup-parent": "/gpdb", "exec-opts": ["native.cgroupdriver=cgroupfs"]}
    assert judge({}, config, tuple(config), bare).errors == ()
