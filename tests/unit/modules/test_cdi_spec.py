# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.testing import patch_module_args

from ansible_collections.steadygpu.host.plugins.module_utils.cdi import env_file, units
from ansible_collections.steadygpu.host.plugins.module_utils.heal.model import UnitState
from ansible_collections.steadygpu.host.plugins.modules import cdi_spec

SPEC = json.dumps({"cdiVersion": "0.5.0", "kind": "nvidia.com/gpu", "devices": [{"name": "0"}]})


def _run(
    capsys: pytest.CaptureFixture[str], path: Path, **options: Any
) -> tuple[int, dict[str, Any]]:
    asked = {"path": str(path), "socket": str(path.parent / "none.sock"), **options}
    with patch_module_args(asked), pytest.raises(SystemExit) as ended:
        cdi_spec.main()
    return int(ended.value.code or 0), json.loads(capsys.readouterr().out)


def _tool(directory: Path) -> str:
    tool = directory / "ctk"
    tool.write_text(f"#!/bin/sh\necho '{SPEC}'\n")
    tool.chmod(0o755)
    return str(tool)


def test_check_mode_without_the_tool_says_what_will_happen(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "nvidia.yaml"
    status, result = _run(capsys, path, ctk="no-such-ctk", _ansible_check_mode=True)
    assert (status, result["changed"]) == (0, True)
    assert "once no-such-ctk is installed" in result["actions"][0]
    assert not path.exists()


def test_without_the_tool_it_says_what_to_install(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, result = _run(capsys, tmp_path / "nvidia.yaml", ctk="no-such-ctk")
    assert status == 1
    assert "install nvidia-container-toolkit-base" in result["msg"]


def test_check_run_again_and_remove(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, ctk = tmp_path / "nvidia.json", _tool(tmp_path)
    _status, predicted = _run(capsys, path, ctk=ctk, _ansible_check_mode=True)
    assert (predicted["changed"], path.exists()) == (True, False)
    _status, done = _run(capsys, path, ctk=ctk)
    assert (done["changed"], done["devices"]) == (True, ["0"])
    assert done["actions"] == predicted["actions"]
    assert path.read_text().strip() == SPEC
    _status, again = _run(capsys, path, ctk=ctk)
    assert (again["changed"], again["actions"]) == (False, [])
    _status, gone = _run(capsys, path, state="absent")
    assert (gone["changed"], path.exists()) == (True, False)


def test_it_says_why_which_version_and_who_refreshes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "nvidia.json"
    path.write_text(SPEC.replace("0.5.0", "5"))
    status, result = _run(capsys, path, ctk=_tool(tmp_path), _ansible_check_mode=True)
    assert (status, result["changed"], result["cdi_version"]) == (0, True, "0.5.0")
    assert result["stale"][0].startswith("it is not usable: cdiVersion is '5'")
    assert result["refreshed_by"] == "nobody"
    assert result["diff"][0]["before"] == path.read_text()


def test_refresh_changes_nothing_in_check_mode_and_names_all(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    states = {name: UnitState() for name in units._NAMES}
    monkeypatch.setattr(units, "read_units", lambda: states)
    monkeypatch.setattr(units, "read_drop_ins", dict)
    monkeypatch.setattr(env_file, "read", lambda: "")
    path, ctk = tmp_path / "nvidia.json", _tool(tmp_path)
    status, result = _run(capsys, path, ctk=ctk, refresh=True, _ansible_check_mode=True)
    assert (status, result["refreshed_by"]) == (0, "own")
    assert "write /etc/systemd/system/steadygpu-cdi.service" in result["actions"]
    states["nvidia-cdi-refresh.service"] = UnitState("loaded", "enabled")
    asked = {"device_name_strategy": ["index"], "refresh": True, "_ansible_check_mode": True}
    status, result = _run(capsys, path, ctk=ctk, **asked)
    assert (status, result["refreshed_by"]) == (0, "vendor")
    assert f"write {env_file.PATH}" in result["actions"]
    assert "DEVICE_NAME_STRATEGIES=" in result["diff"][1]["after"]
    monkeypatch.setattr(env_file, "read", lambda: "NVIDIA_CTK_CDI_OUTPUT_FILE_PATH=/x.yaml\n")
    status, result = _run(capsys, path, ctk=ctk, **asked)
    assert status == 1
    assert "is not of this collection" in result["msg"]
