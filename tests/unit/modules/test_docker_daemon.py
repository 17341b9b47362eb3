# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.testing import patch_module_args

from ansible_collections.steadygpu.host.plugins.modules import docker_daemon


def _predict(
    capsys: pytest.CaptureFixture[str], path: Path, **options: Any
) -> tuple[int, dict[str, Any]]:
    """The module in check mode, which is all that may run on a developer's machine."""
    asked = {
        "path": str(path),
        "restart": "never",
        "socket": str(path.parent / "none.sock"),
        "_ansible_check_mode": True,
        "_ansible_diff": True,
        **options,
    }
    with patch_module_args(asked), pytest.raises(SystemExit) as ended:
        docker_daemon.main()
    return int(ended.value.code or 0), json.loads(capsys.readouterr().out)


def test_check_mode_predicts_and_writes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "docker" / "daemon.json"
    status, result = _predict(capsys, path, config={"features": {"cdi": True}})
    assert (status, result["changed"]) == (0, True)
    assert "set features.cdi = true" in result["actions"]
    assert json.loads(result["diff"]["after"]) == {"features": {"cdi": True}}
    assert list(tmp_path.iterdir()) == []


def test_nothing_asked_changes_nothing_even_over_a_broken_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "daemon.json"
    path.write_text("{ not json")
    status, result = _predict(capsys, path)
    assert (status, result["changed"], result["applied"]) == (0, False, "none")


def test_a_broken_file_is_one_clear_message(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "daemon.json"
    path.write_text('{"debug": true\n"labels": []}')
    status, result = _predict(capsys, path, config={"debug": False})
    assert status == 1
    assert "line 2 column 1" in result["msg"]
    assert path.read_text() == '{"debug": true\n"labels": []}'
