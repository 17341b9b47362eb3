# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a running dockerd has not taken, as facts tell it."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils import process
from ansible_collections.steadygpu.host.plugins.module_utils.engine import pending
from ansible_collections.steadygpu.host.plugins.module_utils.engine.daemon_json import Record

INFO = {
    "LiveRestoreEnabled": False,
    "CDISpecDirs": [],
    "Runtimes": {"runc": {"path": "runc"}},
    "DefaultRuntime": "runc",
    "CgroupDriver": "systemd",
    "LoggingDriver": "json-file",
    "Labels": [],
    "Debug": False,
}


def look(
    config: dict[str, Any],
    flags: dict[str, str] | None = None,
    record: Record | None = None,
    taken: bool = False,
    hook: pending.Hook | None = None,
    version: str = "26.1.5",
) -> pending.Pending:
    daemon = pending.Daemon(version, flags or {}, 1000.0)
    return pending.judge(config, INFO, daemon, record or Record(), taken, hook)


def test_what_is_in_force_is_not_pending() -> None:
    config = {"debug": False, "log-driver": "json-file", "features": {"buildkit": True}}
    assert look(config) == pending.Pending()


@pytest.mark.parametrize(
    ("config", "restart"),
    [
        ({"features": {"cdi": True}}, True),
        ({"exec-opts": ["native.cgroupdriver=cgroupfs"]}, True),
        ({"log-driver": "journald"}, True),
        ({"runtimes": {"nvidia": {"path": "/x"}}}, False),
        ({"live-restore": True}, False),
        ({"labels": ["a=1"]}, False),
    ],
)
def test_a_key_that_is_not_in_force_is_named(config: dict[str, Any], restart: bool) -> None:
    found = look(config)
    (told,) = found.restart if restart else found.reload
    assert next(iter(config)) in told
    assert len(found.restart) + len(found.reload) == 1


def test_a_flag_of_the_unit_is_not_the_files() -> None:
    assert look({"log-driver": "journald"}, flags={"--log-driver": "json-file"}).restart == ()


def test_a_key_the_daemon_does_not_show_is_known_from_our_record() -> None:
    record = Record(pending=("default-ulimits",))
    config = {"default-ulimits": {"n": {"Name": "n", "Hard": 1}}}
    assert "default-ulimits" in look(config, record=record).restart[0]
    assert look(config, record=record, taken=True) == pending.Pending()


@pytest.mark.parametrize(("since", "told"), [(999.0, 0), (1001.0, 1)])
def test_tk_001_a_hook_younger_than_the_daemon_needs_its_restart(since: float, told: int) -> None:
    hook = pending.Hook("nvidia-container-runtime-hook", since)
    assert len(look({}, hook=hook).restart) == told


@pytest.mark.parametrize(
    ("version", "there", "found"),
    [
        ("26.1.5", "nvidia-container-runtime-hook", True),
        ("29.1.0", "nvidia-cdi-hook", False),
        ("29.2.0", "nvidia-cdi-hook", True),
        ("29.2.0", "nvidia-container-runtime-hook", True),
        ("26.1.5", "", False),
    ],
)
def test_rt_025_each_release_looks_for_its_own_hook(
    version: str, there: str, found: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "_SEARCH_PATH", str(tmp_path))
    if there:
        (tmp_path / there).touch(mode=0o755)
    hook = pending.hook(version, None)
    assert (hook is not None) == found


def test_an_upgrade_of_the_toolkit_asks_for_no_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "nvidia-container-runtime-hook"
    program.touch(mode=0o755)
    monkeypatch.setattr(process, "_SEARCH_PATH", f"{tmp_path}:{os.defpath}")
    monkeypatch.setattr(pending, "_TOOLKIT_DIRECTORY", "/")  # older than this test
    started = time.time() - 10
    hook = pending.hook("26.1.5", started)
    assert hook is not None
    if pending._birth("/"):  # Not every file system knows it.
        assert hook.since < started
    monkeypatch.setattr(pending, "_TOOLKIT_DIRECTORY", str(tmp_path / "none"))
    hook = pending.hook("26.1.5", started)
    assert hook is not None
    assert hook.since > started
