# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a person reads from ``steadygpu heal``, and its exit status."""

from __future__ import annotations

import argparse
import json
from typing import Any

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.evidence import gather
from ansible_collections.steadygpu.host.plugins.module_utils.heal import healing
from ansible_collections.steadygpu.host.plugins.module_utils.heal.model import (
    ByHand,
    Done,
    Plan,
    Step,
)
from ansible_collections.steadygpu.host.plugins.module_utils.heal.plan import UnknownStepError
from steadygpu_agent import heal, heal_run

STEP = Step(
    "gpu-access",
    "trainer",
    "container trainer was given /dev/nvidia0 and may not open it any more",
    "container trainer may open /dev/nvidia0",
    ("systemctl set-property --runtime docker-a.scope 'DeviceAllow=/dev/nvidia0 rwm'",),
    "it ends with the container",
)
LEFT = ByHand("cdi-order", "Docker is not ordered", "it would be a cycle", ("systemctl cat x",))
HEALED = Done(STEP, True, "container trainer may open /dev/nvidia0", STEP.commands)
FAILED = Done(STEP, False, "container trainer still may not open /dev/nvidia0")


def _run(monkeypatch: pytest.MonkeyPatch, outcome: Any, *words: str) -> tuple[int, list[Any]]:
    asked: list[Any] = []

    def instead(*given: Any) -> Any:
        asked.extend(given)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    monkeypatch.setattr(healing, "heal", instead)
    monkeypatch.setattr(gather, "gather", lambda gpu_host, deadline_s: {})
    monkeypatch.setattr("os.geteuid", lambda: 0)
    parser = argparse.ArgumentParser()
    heal.register(parser.add_subparsers())
    arguments = parser.parse_args(["heal", *words])
    return arguments.run(arguments), asked


def test_the_dry_run_shows_each_step_with_its_undo(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    outcome = healing.Outcome(Plan((STEP,), (), ("container trainer",)))
    status, asked = _run(monkeypatch, outcome)
    assert (status, asked[0]) == (3, False)
    out = capsys.readouterr().out
    for words in (STEP.id, STEP.seen, STEP.commands[0], STEP.undo, "To be recreated", "--apply"):
        assert words in out


@pytest.mark.parametrize(
    ("outcome", "status", "words"),
    [
        (healing.Outcome(Plan()), 0, "nothing to heal"),
        (healing.Outcome(Plan((STEP,)), (HEALED,), True), 0, "healed: 1"),
        (healing.Outcome(Plan((STEP,)), (FAILED,), True), 1, "FAILED"),
        (healing.Outcome(Plan((), (LEFT,))), 1, "it would be a cycle"),
        (healing.Outcome(Plan((STEP,), (LEFT,)), (HEALED,), True), 1, "left for a person: 1"),
        (healing.HealError("another steadygpu heal runs here"), 1, ""),
        (UnknownStepError("no step x"), 2, ""),
    ],
)
def test_the_exit_status_tells_how_the_host_is(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    outcome: Any,
    status: int,
    words: str,
) -> None:
    assert _run(monkeypatch, outcome, "--apply")[0] == status
    assert words in capsys.readouterr().out


def test_json_has_before_and_after(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    outcome = healing.Outcome(Plan((STEP,)), (HEALED,), True)
    _status, asked = _run(monkeypatch, outcome, "--apply", "--json", "--only", "gpu-access")
    found = json.loads(capsys.readouterr().out)
    assert asked[:2] == [True, ["gpu-access"]]
    assert found["done"][0]["seen"] == STEP.seen
    assert found["done"][0]["after"] == HEALED.after


def test_without_root_it_does_not_say_that_all_is_well(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    arguments = argparse.Namespace(apply=False, only=[], json=False, deadline=1.0)
    assert heal_run.run(arguments) == 2
    assert "wanted is root" in capsys.readouterr().err


MISMATCH = {
    "gpu": {
        "source": "nvml",
        "driver": {"status": "mismatch", "version": "550.163.01", "library_version": "550.54.14"},
        "devices": [],
    }
}
NO_UVM = {
    "gpu": {
        "source": "nvml",
        "driver": {"status": "loaded", "version": "580.95.05", "library_version": "580.95.05"},
        "devices": [{"index": 0, "uuid": "GPU-a", "minor": 0}],
        "modules": {"nvidia": True, "nvidia_uvm": False},
        "nodes": [],
    }
}


def test_what_only_a_person_can_repair_is_named_with_its_commands(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _run(monkeypatch, healing.Outcome(Plan(), facts=MISMATCH))
    assert "driver-library-mismatch: for a person" in capsys.readouterr().out


def test_nothing_is_said_twice(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    step = Step("uvm", "", "seen", "wanted", ("nvidia-modprobe -u -c 0",), "undo")
    _run(monkeypatch, healing.Outcome(Plan((step,)), facts=NO_UVM))
    assert "uvm-missing" not in capsys.readouterr().out
    _run(monkeypatch, healing.Outcome(Plan(), facts=NO_UVM))
    assert "uvm-missing" in capsys.readouterr().out


def test_the_checks_of_this_very_machine_can_be_asked() -> None:
    # Nothing is pretended here: a call that no longer fits would be the end of every run.
    facts = {"gpu": {}, "docker": {"status": "absent"}}
    assert isinstance(heal_run.others(healing.Outcome(Plan(), facts=facts), 5.0), list)


def test_no_secret_of_the_host_is_shown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    left = ByHand("cdi-spec:x", "http://me:hidden-word@proxy", "why", ())
    for words in ([], ["--json"]):
        _run(monkeypatch, healing.Outcome(Plan((), (left,))), *words)
        assert "hidden-word" not in capsys.readouterr().out
