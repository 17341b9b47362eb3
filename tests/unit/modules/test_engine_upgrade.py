# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.testing import patch_module_args

from ansible_collections.steadygpu.host.plugins.module_utils.upgrade import machine, offers, read
from ansible_collections.steadygpu.host.plugins.module_utils.upgrade.model import Host
from ansible_collections.steadygpu.host.plugins.module_utils.upgrade.wanted import Offers
from ansible_collections.steadygpu.host.plugins.modules import engine_upgrade
from ansible_collections.steadygpu.host.tests.unit.module_utils.upgrade.fake_machine import (
    FakeMachine,
    upgraded,
)
from ansible_collections.steadygpu.host.tests.unit.module_utils.upgrade.upgrade_hosts import (
    FORKY,
    MADISON,
    host,
)


def run(capsys: pytest.CaptureFixture[str], **options: Any) -> tuple[int, dict[str, Any]]:
    with patch_module_args({"update_cache": False, **options}), pytest.raises(SystemExit) as ended:
        engine_upgrade.main()
    return int(ended.value.code or 0), json.loads(capsys.readouterr().out)


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[Host]:
    """The host that the module finds, to be replaced by a test."""
    found = [host()]
    monkeypatch.setattr(read, "read", lambda *asked: found[0])
    there = Offers(offers.parse_madison(MADISON))
    monkeypatch.setattr(offers, "read", lambda *asked: there)
    return found


def test_a_plan_is_no_change(seen: list[Host], capsys: pytest.CaptureFixture[str]) -> None:
    status, result = run(capsys, version="28.5.2", _ansible_check_mode=True, _ansible_diff=True)
    assert (status, result["changed"], result["blockers"]) == (0, False, [])
    assert result["status"] == "running"
    assert result["packages"] == FORKY
    assert '"docker": "26.1.5+dfsg1"' in result["diff"]["before"]
    assert '"docker": "28.5.2+dfsg4-5"' in result["diff"]["after"]


def test_blockers_are_told_and_the_plan_is_given_all_the_same(
    seen: list[Host], capsys: pytest.CaptureFixture[str]
) -> None:
    seen[0] = host(info={})
    status, result = run(capsys, version="28.5.2")
    assert (status, result["blockers"]) == (0, ["live-restore-off"])
    assert "trainer" in result["refusal"]
    accepted = run(capsys, version="28.5.2", accept={"live-restore-off": "drained"})[1]
    assert (accepted["blockers"], accepted["refusal"]) == ([], "")


def test_a_release_that_nobody_has_is_a_message(
    seen: list[Host], capsys: pytest.CaptureFixture[str]
) -> None:
    status, result = run(capsys, version="27.5.1")
    assert (status, result["refused"]) == (1, True)
    assert "docker.io 27.5.1" in result["msg"]


def test_files_that_are_not_there_are_a_message(
    seen: list[Host], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, result = run(capsys, files=[str(tmp_path / "none.deb")])
    assert (status, "none.deb" in result["msg"]) == (1, True)


def test_a_switch_restarts_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fake = FakeMachine(upgraded())
    monkeypatch.setattr(machine, "Machine", lambda *asked: fake)
    asked: dict[str, Any] = {"step": "switch", "containers": {"trainer": 4711}}
    would = run(capsys, _ansible_check_mode=True, **asked)[1]
    status, result = run(capsys, **asked)
    assert (status, result["changed"]) == (0, True)
    assert result["actions"] == ["restart containerd.service", "restart docker.service"]
    assert result["actions"] == would["actions"]
    assert result["containers"] == {"trainer": 4711}
    assert run(capsys, **asked)[1]["changed"] is False


def test_a_refused_switch_is_a_message(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    refused = host(installed=FORKY, info={}, docker=upgraded().docker)
    monkeypatch.setattr(machine, "Machine", lambda *asked: FakeMachine(refused))
    status, result = run(capsys, step="switch")
    assert (status, result["refused"]) == (1, True)
    assert "trainer" in result["msg"]


def test_a_run_that_was_killed_in_the_package_manager_is_finished(
    seen: list[Host], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    installed = {name: version for name, version in FORKY.items() if name != "docker.io"}
    seen[0] = host(installed=installed, unfinished={"docker.io": FORKY["docker.io"]})
    refreshed: list[str] = []
    monkeypatch.setattr(engine_upgrade, "refresh", lambda module: refreshed.append("apt"))
    status, result = run(capsys, version="28.5.2", update_cache=True)
    assert (status, refreshed) == (0, [])
    assert result["actions"][0] == f"bring docker.io from half done to {FORKY['docker.io']}"


def test_a_job_that_ended_between_plan_and_switch_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(machine, "Machine", lambda *asked: FakeMachine(upgraded()))
    warned: list[str] = []
    monkeypatch.setattr(
        engine_upgrade.AnsibleModule, "warn", lambda module, text: warned.append(text)
    )
    status, result = run(capsys, step="switch", containers={"trainer": 4711, "short": 4712})
    assert (status, result["lost"]) == (0, ["short"])
    assert warned == ["by the time of the switch container short is gone"]
