# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.engine.docker_api import (
    EngineError,
    EngineUnreachableError,
    ExecResult,
)
from ansible_collections.steadygpu.host.plugins.module_utils.probe import budget, runner
from ansible_collections.steadygpu.host.plugins.module_utils.probe.judge import Check
from ansible_collections.steadygpu.host.plugins.module_utils.probe.runner import (
    Options,
    ProbeError,
    expectation,
    verify,
)

NODES = {"/dev/nvidia0": "195:0", "/dev/nvidia1": "195:1"}
DENIED = "Operation not permitted"
WITH_DEVICE = (
    "node /dev/nvidia-uvm opened\nnode /dev/nvidia0 opened\nnode /dev/nvidiactl opened\n"
    f"made 195:0 opened\nmade 195:1 {DENIED}\nend\n"
)
WITHOUT = f"made 195:0 {DENIED}\nmade 195:1 {DENIED}\nend\n"


class Engine:
    """A pretended engine: containers with and without the device, and what they see."""

    def __init__(self) -> None:
        self.alive: dict[str, Mapping[str, Any]] = {}
        self.foreign: dict[str, dict[str, Any]] = {}
        self.tags: list[str] = []
        self.updated: list[str] = []
        self.reloads = 0
        self.loses_at_reload = False
        self.start_faults: list[Exception] = []
        self.info_faults: list[Exception] = []
        self.deadline_s = 0.0
        self.clock = 0.0
        self.exec_takes_s = 0.0

    def info(self) -> dict[str, Any]:
        for fault in self.info_faults:
            raise fault
        return {"CgroupDriver": "systemd", "DefaultRuntime": "runc"}

    def containers(
        self, include_stopped: bool = True, filters: Mapping[str, Sequence[str]] | None = None
    ) -> list[dict[str, Any]]:
        ours = [{"Id": i, "Labels": c["Labels"], "Names": ["/" + i]} for i, c in self.alive.items()]
        others = [{"Id": i, "Labels": {}, "Names": ["/" + i]} for i in self.foreign]
        return ours if filters else ours + others

    def create_container(self, name: str, config: Mapping[str, Any]) -> str:
        self.alive[name] = config
        return name

    def start(self, _container: str) -> None:
        for fault in self.start_faults:
            raise fault

    def inspect(self, container: str) -> dict[str, Any]:
        return self.foreign.get(container, {"State": {"Pid": 1}})

    def update(self, container: str, _resources: Mapping[str, Any]) -> None:
        self.updated.append(container)

    def exec_run(self, container: str, _argv: Sequence[str]) -> ExecResult:
        self.clock += min(self.exec_takes_s, self.deadline_s)
        if self.exec_takes_s > self.deadline_s:
            raise EngineUnreachableError("no whole answer to POST /exec")
        if "DeviceRequests" not in self.alive[container]["HostConfig"]:
            return ExecResult(0, WITHOUT, "")
        lost = self.loses_at_reload and self.reloads
        text = WITH_DEVICE.replace("nvidia0 opened", f"nvidia0 {DENIED}") if lost else WITH_DEVICE
        return ExecResult(0, text, "")

    def remove(self, container: str, force: bool) -> None:
        assert force
        if container in self.foreign:
            raise AssertionError("a container of somebody else was removed")
        del self.alive[container]

    def images(self) -> list[dict[str, Any]]:
        return [{"RepoTags": self.tags}]

    def import_image(self, _tar: bytes, repo: str, tag: str) -> None:
        self.tags.append(f"{repo}:{tag}")

    def remove_image(self, image: str) -> None:
        self.tags.remove(image)

    def daemon_reload(self, _deadline_s: float) -> None:
        self.reloads += 1


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Engine:
    pretended = Engine()
    monkeypatch.setattr(runner, "DockerClient", lambda *_arguments: pretended)
    monkeypatch.setattr(runner, "_LOCK", str(tmp_path / "lock"))
    monkeypatch.setattr(runner, "_has_systemd", lambda: True)
    monkeypatch.setattr(runner.units, "daemon_reload", pretended.daemon_reload)
    monkeypatch.setattr(runner.host, "gpu_nodes", lambda: dict(NODES))
    monkeypatch.setattr(runner.host, "has_merged_usr", lambda: True)
    monkeypatch.setattr(runner.host, "node_of", lambda _device: "/dev/nvidia0")
    monkeypatch.setattr(runner, "cgroups_with_gpus", list)
    monkeypatch.setattr(budget, "monotonic", lambda: pretended.clock)
    return pretended


def by_id(checks: list[Check]) -> dict[str, Check]:
    return {check.id: check for check in checks}


def test_a_good_host_is_proved_and_left_as_it_was(engine: Engine) -> None:
    checks = verify(Options())
    assert [check.ok for check in checks] == [True] * 8
    assert (engine.reloads, len(engine.updated)) == (1, 1)
    assert (engine.alive, engine.tags) == ({}, [])


def test_leftovers_of_a_killed_run_go_and_foreign_containers_stay(engine: Engine) -> None:
    engine.alive["leftover"] = {"Labels": {"steadygpu.probe": "1"}, "HostConfig": {}}
    engine.foreign["training"] = {"HostConfig": {}, "Config": {}}
    verify(Options())
    assert engine.alive == {}
    assert list(engine.foreign) == ["training"]


def test_a_gpu_that_is_lost_at_the_reload_fails_the_two_later_checks(engine: Engine) -> None:
    engine.loses_at_reload = True
    checks = by_id(verify(Options()))
    assert checks["gpu_opens"].ok is True
    assert checks["holds_after_reload"].ok is False
    assert checks["holds_after_update"].ok is False


def test_no_reload_while_a_legacy_container_could_lose_its_gpu(engine: Engine) -> None:
    engine.foreign["training"] = {
        "HostConfig": {"DeviceRequests": [{"Driver": "nvidia", "Capabilities": [["gpu"]]}]}
    }
    check = by_id(verify(Options()))["holds_after_reload"]
    assert engine.reloads == 0
    assert check.ok is None
    assert "container training" in check.advice


def test_the_reload_can_be_left_out(engine: Engine) -> None:
    check = by_id(verify(Options(daemon_reload=False)))["holds_after_reload"]
    assert (engine.reloads, check.ok, check.advice) == (0, None, "daemon_reload is false")


@pytest.mark.parametrize(
    ("reason", "advice"),
    [
        ("CDI device injection failed: unresolvable CDI devices nvidia.com/gpu=0", "no CDI spec"),
        ('could not select device driver "cdi" with capabilities: []', "switch CDI on"),
        ("no space left on device", "journalctl"),
    ],
)
def test_a_container_that_does_not_start_is_a_failed_check_and_is_removed(
    engine: Engine, reason: str, advice: str
) -> None:
    engine.start_faults = [EngineError(500, "POST /start", reason)]
    (check,) = verify(Options())
    assert check.ok is False
    assert reason in check.seen
    assert advice in check.advice
    assert (engine.alive, engine.tags) == ({}, [])


def test_an_engine_that_does_not_answer_is_one_clear_error(engine: Engine) -> None:
    engine.info_faults = [EngineUnreachableError("there is no such socket")]
    with pytest.raises(ProbeError, match="no such socket"):
        verify(Options())


def test_the_image_can_be_kept_and_is_not_imported_twice(engine: Engine) -> None:
    verify(Options(keep_image=True))
    verify(Options(keep_image=True))
    assert len(engine.tags) == 1


def test_only_one_probe_at_a_time(engine: Engine) -> None:
    with runner._lock(), pytest.raises(ProbeError, match="another GPU verification"):
        verify(Options())
    assert engine.alive == {}


def test_the_deadline_is_one_for_the_whole_proof_and_keeps_what_was_proved(engine: Engine) -> None:
    # Two looks of two containers fit, the third look does not.
    engine.exec_takes_s = 12.0
    checks = verify(Options(deadline_s=50.0))
    assert [check.ok for check in checks] == [True] * 7 + [False]
    assert checks[-1].id == "in_time"
    assert "stopped after 7 proved" in checks[-1].seen
    assert (engine.alive, engine.tags) == ({}, [])


def test_time_that_ran_out_between_two_requests_is_told_too(engine: Engine) -> None:
    engine.exec_takes_s = 25.0
    check = verify(Options(deadline_s=50.0))[-1]
    assert (check.id, check.ok) == ("in_time", False)
    assert "the 50 s of deadline_s are over" in check.seen
    assert engine.alive == {}


@pytest.mark.parametrize(
    ("options", "nodes", "says"),
    [
        (Options(), {}, "no GPU node"),
        (Options(expect_node="/dev/nvidia9"), NODES, "should be /dev/nvidia9"),
        (Options(device="nvidia.com/gpu=all"), NODES, "expect_node"),
    ],
)
def test_a_probe_that_cannot_begin_says_why(
    options: Options, nodes: dict[str, str], says: str
) -> None:
    with pytest.raises(ProbeError, match=says):
        expectation(options, nodes, None)


def test_the_user_knows_better_than_the_driver_which_node_to_expect() -> None:
    options = Options(device="nvidia.com/gpu=GPU-1", expect_node="/dev/nvidia1")
    assert expectation(options, NODES, "/dev/nvidia0").number == "195:1"
    assert expectation(Options(), NODES, "/dev/nvidia1").number == "195:1"
