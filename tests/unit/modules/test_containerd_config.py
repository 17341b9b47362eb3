# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.testing import patch_module_args

from ansible_collections.steadygpu.host.plugins.modules import containerd_config
from ansible_collections.steadygpu.host.tests.unit.module_utils.containerd.fake_containerd import (
    NEW,
    FakeContainerd,
)

SECRET = "hunter2222"


def _run(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    host: FakeContainerd,
    **options: Any,
) -> tuple[int, dict[str, Any]]:
    """The module in check mode, against a containerd in memory."""
    monkeypatch.setattr(containerd_config, "Containerd", lambda *_given: host)
    asked = {"_ansible_check_mode": True, "_ansible_diff": True, **options}
    with patch_module_args(asked), pytest.raises(SystemExit) as ended:
        containerd_config.main()
    return int(ended.value.code or 0), json.loads(capsys.readouterr().out)


def test_check_mode_predicts_and_writes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    host = FakeContainerd(tmp_path, NEW)
    host.write("config.toml", "version = 2\n")
    before = host.texts()
    status, result = _run(capsys, monkeypatch, host, config={"oom_score": -9})
    assert (status, result["changed"], result["applied"]) == (0, True, "restart")
    assert "changed oom_score from 0 to -9" in result["actions"]
    files = [one["before_header"].rpartition("/")[2] for one in result["diff"]]
    assert files == ["steadygpu.toml", "config.toml"]
    assert "oom_score = -9" in result["diff"][0]["after"]
    assert (host.texts(), host.done) == (before, [])


def test_nothing_asked_changes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    host = FakeContainerd(tmp_path, NEW)
    status, result = _run(capsys, monkeypatch, host)
    assert (status, result["changed"], result["diff"], result["drop_in"]) == (0, False, [], None)


@pytest.mark.parametrize("key", ["configs", "bogus"])
def test_no_secret_is_returned(
    key: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    host = FakeContainerd(tmp_path, NEW)
    auth = {"mirror.example.com": {"auth": {"password": SECRET}}}
    config = {"plugins": {"io.containerd.cri.v1.images": {"registry": {key: auth}}}}
    status, result = _run(capsys, monkeypatch, host, config=config)
    assert status == (0 if key == "configs" else 1)
    assert SECRET not in json.dumps(result)
