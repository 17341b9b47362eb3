# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.testing import patch_module_args

from ansible_collections.steadygpu.host.plugins.module_utils import process
from ansible_collections.steadygpu.host.plugins.module_utils.engine import living
from ansible_collections.steadygpu.host.plugins.modules import docker_daemon


def _run(
    capsys: pytest.CaptureFixture[str], path: Path, **options: Any
) -> tuple[int, dict[str, Any]]:
    """The module, by default in check mode: all that may run beside a developer's own Docker."""
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
    status, result = _run(capsys, path, config={"features": {"cdi": True}})
    assert (status, result["changed"]) == (0, True)
    assert "set features.cdi = true" in result["actions"]
    assert json.loads(result["diff"]["after"]) == {"features": {"cdi": True}}
    assert list(tmp_path.iterdir()) == []


def test_nothing_asked_changes_nothing_even_over_a_broken_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "daemon.json"
    path.write_text("{ not json")
    status, result = _run(capsys, path)
    assert (status, result["changed"], result["applied"]) == (0, False, "none")


def test_a_broken_file_is_one_clear_message(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "daemon.json"
    path.write_text('{"debug": true\n"labels": []}')
    status, result = _run(capsys, path, config={"debug": False})
    assert status == 1
    assert "line 2 column 1" in result["msg"]
    assert path.read_text() == '{"debug": true\n"labels": []}'


SECRETS = {
    "proxies": {"https-proxy": "http://deploy:s3cr3t-pw@proxy.example.com:3128"},
    "log-opts": {"max-size": "10m"},
    "registry-mirrors": ["https://ci:hunter2222@mirror.example.com"],
    "labels": ["token=abcd1234efgh"],
}


@pytest.mark.parametrize("there", [{}, {"proxies": {"https-proxy": "http://a:former99@old"}}])
def test_no_secret_is_returned_logged_or_in_an_error(
    there: dict[str, Any],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    logged: list[str] = []
    monkeypatch.setattr(
        docker_daemon.AnsibleModule,
        "log",
        lambda self, msg, log_args=None: logged.append(f"{msg} {log_args}"),
    )
    path = tmp_path / "daemon.json"
    path.write_text(json.dumps(there))
    status, result = _run(capsys, path, config=SECRETS)
    assert status == (1 if there else 0)
    if not there:
        assert "10m" in json.dumps(result["actions"])
        assert "@proxy.example.com" in result["diff"]["after"]
    assert "proxies.https-proxy" in json.dumps(result)
    assert result["invocation"]["module_args"]["config"]["log-opts"] == {"max-size": "10m"}
    everything = json.dumps(result) + "".join(logged)
    assert "Invoked with" in everything
    for secret in ("s3cr3t", "hunter2", "abcd1234", "former99"):
        assert secret not in everything


def test_a_new_file_with_a_secret_is_for_root_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(docker_daemon, "record_path_of", lambda path: str(tmp_path / "record"))
    monkeypatch.setattr(process, "_SEARCH_PATH", str(tmp_path))
    path = tmp_path / "daemon.json"
    status, result = _run(capsys, path, config=SECRETS, _ansible_check_mode=False)
    assert (status, result["applied"]) == (0, "not_running")
    assert [oct(os.stat(one).st_mode)[-3:] for one in (path, tmp_path / "record")] == ["600", "600"]
    assert json.loads(path.read_text()) == SECRETS


@pytest.fixture
def stopped_docker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A host whose docker.service is stopped and cannot be started; systemctl's diary."""
    programs = tmp_path / "bin"
    programs.mkdir()
    diary = tmp_path / "diary"
    systemctl = programs / "systemctl"
    systemctl.write_text(
        "#!/bin/sh\n"
        "case $1 in\n"
        "show) printf 'Id=docker.service\\nLoadState=loaded\\nActiveState=inactive\\n';;\n"
        f"*) echo $1 >> {diary}; [ $1 != start ] || {{ echo will not >&2; exit 1; }};;\n"
        "esac\n"
    )
    systemctl.chmod(0o755)
    monkeypatch.setattr(process, "_SEARCH_PATH", str(programs))
    monkeypatch.setattr(docker_daemon, "record_path_of", lambda path: str(tmp_path / "record"))
    # A developer's own engine may have containers.
    monkeypatch.setattr(living, "identities", lambda flags: [])
    return diary


def test_check_mode_predicts_the_start(
    tmp_path: Path, stopped_docker: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "daemon.json"
    _status, result = _run(capsys, path, start=True, config={"debug": True})
    assert (result["applied"], result["actions"][-1]) == ("start", "start docker")
    _status, result = _run(capsys, path, start=True)
    assert (result["changed"], result["actions"]) == (True, ["start docker"])
    _status, result = _run(capsys, path)
    assert (result["changed"], result["applied"]) == (False, "none")
    assert not path.exists()
    assert not stopped_docker.exists()


def test_a_start_that_fails_is_a_message_and_leaves_no_file(
    tmp_path: Path, stopped_docker: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "daemon.json"
    status, result = _run(
        capsys, path, start=True, config={"debug": True}, _ansible_check_mode=False
    )
    assert status == 1
    for words in ("will not", "was put back", "stopped, as it was"):
        assert words in result["msg"]
    assert not path.exists()
    assert stopped_docker.read_text().split() == ["reset-failed", "start", "stop"]


def test_check_mode_refuses_a_start_that_would_end_containers(
    tmp_path: Path,
    stopped_docker: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(living, "identities", lambda flags: ["5f" * 32])
    path = tmp_path / "daemon.json"
    status, result = _run(capsys, path, start=True)
    assert (status, "5f5f5f5f5f5f" in result["msg"]) == (1, True)
    status, result = _run(capsys, path, start=True, config={"live-restore": True})
    assert (status, result["applied"]) == (0, "start")
    assert not stopped_docker.exists()
