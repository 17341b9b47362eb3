# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.testing import patch_module_args

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
