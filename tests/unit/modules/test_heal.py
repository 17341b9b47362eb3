# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The module ``heal``: check mode shows, a run heals, a step that does not help fails the task."""

from __future__ import annotations

import json
from typing import Any

import pytest
from ansible.module_utils.testing import patch_module_args

from ansible_collections.steadygpu.host.plugins.module_utils.heal import healing
from ansible_collections.steadygpu.host.plugins.module_utils.heal.model import (
    ByHand,
    Done,
    Plan,
    Step,
)
from ansible_collections.steadygpu.host.plugins.modules import heal

STEP = Step("uvm", "", "nvidia_uvm is not loaded", "it is", ("nvidia-modprobe -u -c 0",), "undo")
LEFT = ByHand("cdi-order", "seen", "why")


def _run(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, done: bool, **options: Any
) -> tuple[int, dict[str, Any]]:
    def pretend(apply: bool, only: Any, deadline_s: float, socket: str) -> healing.Outcome:
        after = Done(STEP, done, "it is" if done else "it is not", STEP.commands)
        steps = () if only == ["cdi-spec"] else (STEP,)
        return healing.Outcome(
            Plan(steps, (LEFT,), ("container trainer",)), (after,) if apply and steps else (), apply
        )

    monkeypatch.setattr(healing, "heal", pretend)
    monkeypatch.setattr("os.geteuid", lambda: 0)
    with patch_module_args(options), pytest.raises(SystemExit) as ended:
        heal.main()
    return int(ended.value.code or 0), json.loads(capsys.readouterr().out)


def test_check_mode_shows_what_a_run_does(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    status, shown = _run(capsys, monkeypatch, True, _ansible_check_mode=True)
    assert (status, shown["changed"]) == (0, True)
    assert shown["actions"] == list(STEP.commands)
    assert "healed" not in shown["steps"][0]
    _status, done = _run(capsys, monkeypatch, True)
    assert (done["changed"], done["actions"]) == (True, shown["actions"])
    assert done["steps"][0]["healed"] is True
    assert done["recreate"] == ["container trainer"]
    assert done["by_hand"][0]["id"] == "cdi-order"
    assert done["diff"] == {
        "before": "uvm: nvidia_uvm is not loaded\n",
        "after": "uvm: it is\n",
    }


def test_a_host_with_nothing_to_heal_is_unchanged(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    status, result = _run(capsys, monkeypatch, True, only=["cdi-spec"])
    assert (status, result["changed"], result["steps"]) == (0, False, [])


def test_a_step_that_did_not_help_fails_the_task_by_name(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    status, result = _run(capsys, monkeypatch, False)
    assert status == 1
    assert "uvm: it is not" in result["msg"]


def test_a_kind_that_is_none_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    asked = {"only": ["gpus"], "_ansible_check_mode": True, "socket": "/nowhere.sock"}
    with patch_module_args(asked), pytest.raises(SystemExit):
        heal.main()
    assert "kinds are uvm" in json.loads(capsys.readouterr().out)["msg"]


def test_a_user_is_not_told_that_all_is_well(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    with patch_module_args({"_ansible_check_mode": True}), pytest.raises(SystemExit):
        heal.main()
    assert "wanted is root" in json.loads(capsys.readouterr().out)["msg"]
