# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.testing import patch_module_args

from ansible_collections.steadygpu.host.plugins.module_utils.engine import toolkit_config as core
from ansible_collections.steadygpu.host.plugins.module_utils.engine.toolkit import (
    ConfigFile,
    ToolkitInfo,
)
from ansible_collections.steadygpu.host.plugins.modules import toolkit_config

MODE = {"nvidia-container-runtime": {"mode": "jit-cdi"}}


@pytest.fixture(autouse=True)
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A host without the toolkit, whose records are in a directory of the test's."""
    info = ToolkitInfo("absent", None, None, ConfigFile("", "absent"))
    monkeypatch.setattr(toolkit_config, "read_toolkit", lambda packages, deadline_s: info)
    monkeypatch.setattr(core, "RECORD_PATH", str(tmp_path / "owned" / "toolkit_config.json"))


def run(
    capsys: pytest.CaptureFixture[str], path: Path, **options: Any
) -> tuple[int, dict[str, Any]]:
    asked = {"path": str(path), "_ansible_diff": True, **options}
    with patch_module_args(asked), pytest.raises(SystemExit) as ended:
        toolkit_config.main()
    return int(ended.value.code or 0), json.loads(capsys.readouterr().out)


def test_check_mode_on_a_bare_host_predicts_and_writes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "etc" / "config.toml"
    status, result = run(capsys, path, config=MODE, _ansible_check_mode=True)
    assert (status, result["changed"], result["mode"]) == (0, True, "jit-cdi")
    assert result["actions"] == ['set nvidia-container-runtime.mode = "jit-cdi"']
    assert "Containers that run keep what they have" in result["effect"]
    assert result["diff"]["after"] == '[nvidia-container-runtime]\nmode = "jit-cdi"\n'
    assert list(tmp_path.iterdir()) == []


def test_present_twice_and_absent_twice(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "config.toml"
    assert run(capsys, path, config=MODE)[1]["changed"] is True
    _status, again = run(capsys, path, config=MODE)
    assert (again["changed"], again["actions"], again["effect"]) == (False, [], "")
    assert run(capsys, path, state="absent")[1]["changed"] is True
    assert run(capsys, path, state="absent")[1]["changed"] is False
    assert not path.exists()


@pytest.mark.parametrize(
    ("text", "config", "words"),
    [
        (b"", {"nvidia-container-runtime": {"mode": "bogus"}}, "mode is 'bogus', wanted one of"),
        (b"[a", MODE, "line 1 column 3"),
        (b"\xff", MODE, "cannot be read or written: it is not UTF-8 at byte 0"),
    ],
)
def test_what_is_wrong_is_one_clear_message(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    text: bytes,
    config: dict[str, Any],
    words: str,
) -> None:
    path = tmp_path / "config.toml"
    path.write_bytes(text)
    status, result = run(capsys, path, config=config)
    assert status == 1
    assert words in result["msg"]
    assert path.read_bytes() == text


def test_a_secret_in_the_environment_is_not_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = {"nvidia-container-cli": {"environment": ["REGISTRY_PASSWORD=hunter2hunter2"]}}
    _status, result = run(capsys, tmp_path / "config.toml", config=config)
    assert result["changed"] is True
    shown = json.dumps({"actions": result["actions"], "diff": result["diff"]})
    assert "hunter2hunter2" not in shown
