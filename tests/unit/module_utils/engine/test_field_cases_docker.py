# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Field cases of Docker's configuration that docker_daemon prevents or repairs, by their ids."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.engine import pending
from ansible_collections.steadygpu.host.plugins.module_utils.engine.daemon_json import Record
from ansible_collections.steadygpu.host.plugins.module_utils.engine.daemon_plan import (
    DaemonRefusedError,
)
from ansible_collections.steadygpu.host.tests.unit.module_utils.engine.fake_docker import (
    CDI,
    NVIDIA,
    Host,
)

CASES = json.loads(
    (Path(__file__).parents[3] / "data" / "field_cases.json").read_text(encoding="utf-8")
)["cases"]


def given(identity: str) -> str:
    """The input of a case."""
    return str(next(case["input"] for case in CASES if case["id"] == identity))


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


def test_rt_001_a_broken_file_is_named_and_stays(host: Host) -> None:
    docker = host.docker()
    host.write(given("RT-001"))
    with pytest.raises(DaemonRefusedError, match="line 1 column"):
        host.run(docker, NVIDIA)
    assert (host.text(), docker.done) == (given("RT-001"), [])


def test_rt_002_a_default_runtime_needs_its_definition(host: Host) -> None:
    wanted = json.loads(given("RT-002"))
    with pytest.raises(DaemonRefusedError, match="runtimes does not define"):
        host.run(host.docker(), wanted)
    assert host.run(host.docker(), {**wanted, **NVIDIA}).applied == "reload"


def test_rt_003_a_file_that_was_not_loaded_is_pending_and_then_loaded(host: Host) -> None:
    case = json.loads(given("RT-003"))
    config = case["daemon_json"]
    info = {
        "Runtimes": {name: {} for name in case["docker_info_runtimes"]},
        "DefaultRuntime": case["docker_info_default_runtime"],
    }
    daemon = pending.Daemon("28.5.2", {}, 1.0)
    found = pending.judge(config, info, daemon, Record(), False, None)
    assert "runtime nvidia is missing" in found.reload[0]
    assert 'default-runtime is "runc", wanted "nvidia"' in found.reload[1]
    host.write(json.dumps(config))
    docker = host.docker()
    docker.live = {}
    assert host.run(docker, config).applied == "reload"
    assert docker.live["default-runtime"] == "nvidia"


def test_rt_007_earlier_settings_stay(host: Host) -> None:
    host.write('{"log-driver": "journald", "data-root": "/srv/docker"}')
    host.run(host.docker(), NVIDIA)
    assert json.loads(host.text() or "") == {
        "log-driver": "journald",
        "data-root": "/srv/docker",
        **NVIDIA,
    }


def test_rt_008_enabling_cdi_keeps_the_other_features(host: Host) -> None:
    before = json.loads(given("RT-008"))
    host.write(given("RT-008"))
    host.run(host.docker(), CDI)
    after = json.loads(host.text() or "")
    assert after == {**before, "features": {**before["features"], "cdi": True}}
    assert list(after["features"]) == ["buildkit", "containerd-snapshotter", "cdi"]


def test_rt_009_of_all_flags_only_runtimes_go_together_with_the_file(host: Host) -> None:
    assert "--add-runtime=nvidia=" in given("RT-009")
    flags = {"--add-runtime": "nvidia=/usr/bin/nvidia-container-runtime", "--host": "fd://"}
    docker = host.docker(flags=flags)
    assert host.run(docker, {"runtimes": {"slow": {"path": "/usr/bin/runc"}}}).applied == "reload"
    with pytest.raises(DaemonRefusedError, match="hosts is a flag of docker"):
        host.run(docker, {"hosts": ["fd://"]})


def test_rt_011_the_name_runc_is_reserved(host: Host) -> None:
    with pytest.raises(DaemonRefusedError, match="reserved"):
        host.run(host.docker(), json.loads(given("RT-011")))


def test_rt_027_containers_live_on_and_no_other_engine_is_restarted(host: Host) -> None:
    docker = host.docker(running=("train",))
    host.run(docker, json.loads(given("RT-027")))
    host.run(docker, CDI)
    assert (docker.done, docker.killed) == (["reload", "restart"], [])


def test_rt_029_generic_resources_need_a_restart_and_a_swarm_node_is_drained_first(
    host: Host,
) -> None:
    wanted: dict[str, Any] = json.loads(given("RT-029"))
    docker = host.docker(running=("task",), swarm=True)
    with pytest.raises(DaemonRefusedError, match="drain this Swarm node"):
        host.run(docker, wanted)
    assert (host.text(), docker.killed) == (None, [])
