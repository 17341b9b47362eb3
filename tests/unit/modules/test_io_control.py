# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
from typing import Any

import pytest
from ansible.module_utils.testing import patch_module_args

from ansible_collections.steadygpu.host.plugins.module_utils.io_control.manage import Outcome
from ansible_collections.steadygpu.host.plugins.module_utils.settings.model import Setting
from ansible_collections.steadygpu.host.plugins.modules import io_control


def run(arguments: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    with patch_module_args(arguments), pytest.raises(SystemExit):
        io_control.main()
    answer = json.loads(capsys.readouterr().out)
    assert isinstance(answer, dict)
    return answer


def test_what_was_done_and_what_the_kernel_says(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    setting = Setting("vda scheduler", "bfq", "bfq", "effective")
    outcome = Outcome(["set vda scheduler to bfq"], [], [], [setting], {"vda": "acts"})
    monkeypatch.setattr(io_control, "keep", lambda _wishes, _check: outcome)
    answer = run({"devices": {"vda": {"scheduler": "bfq"}}}, capsys)
    assert answer["changed"]
    assert answer["settings"][0]["verdict"] == "effective"
    assert answer["weights"] == {"vda": "acts"}


@pytest.mark.parametrize("arguments", [{}, {"state": "absent"}, {"devices": {}}])
def test_no_disk_wanted_is_all_put_back(
    arguments: dict[str, Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(io_control, "absent", lambda _check: Outcome(["put vda back"]))
    assert run(arguments, capsys)["actions"] == ["put vda back"]


def test_162_flags_of_the_articles_are_no_keys(capsys: pytest.CaptureFixture[str]) -> None:
    answer = run({"devices": {"vda": {"io-weight": 500}}}, capsys)
    assert answer["failed"]
    assert "vda: no io-weight: wanted scheduler, iocost, model, qos" in answer["msg"]
