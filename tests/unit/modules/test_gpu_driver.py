# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
from typing import Any

import pytest
from ansible.module_utils.testing import patch_module_args

from ansible_collections.steadygpu.host.plugins.modules import gpu_driver
from ansible_collections.steadygpu.host.tests.unit.module_utils.driver_set.driver_host import (
    OLD,
    DriverHost,
    driven,
    host,
    machine,
)

__all__ = ["driven", "host", "machine"]


@pytest.fixture
def run(
    driven: DriverHost, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Any:
    """Runs the module on the made-up host."""
    monkeypatch.setattr(gpu_driver.host, "Host", lambda socket: driven)

    def act(**options: Any) -> dict[str, Any]:
        with patch_module_args(options), pytest.raises(SystemExit):
            gpu_driver.main()
        answer: dict[str, Any] = json.loads(capsys.readouterr().out)
        return answer

    return act


def test_check_do_and_do_again(run: Any) -> None:
    foreseen = run(_ansible_check_mode=True)
    done = run()
    for answer in (foreseen, done):
        assert answer["changed"]
        assert answer["driver"] == {
            "installed": OLD,
            "loaded": OLD,
            "library": OLD,
            "flavour": "open",
            "wanted_flavour": "open",
            "origin": "packages",
            "secure_boot": "disabled",
        }
        assert [one["after_header"] for one in answer["diff"]] == [
            "/etc/modprobe.d/steadygpu-driver.conf",
            "/etc/modules-load.d/steadygpu-driver.conf",
        ]
    assert foreseen["actions"] == done["actions"]
    assert {one["verdict"] for one in done["settings"]} == {"effective"}
    again = run()
    assert (again["changed"], again["actions"]) == (False, [])
    assert all(one["held"] for one in again["packages"].values())
    assert run(state="absent")["changed"]


def test_a_refusal_says_that_nothing_was_changed(driven: DriverHost, run: Any) -> None:
    answer = run(mode="install", version="999.10")
    assert (answer["failed"], answer["refused"]) == (True, True)
    assert "999.10" in answer["msg"]
    assert driven.machine.held == set()


def test_versions_that_yaml_took_for_numbers(run: Any) -> None:
    assert "590.44" in run(mode="install", version=590.44)["msg"]
