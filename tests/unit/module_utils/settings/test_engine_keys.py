# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Keys of Docker and the toolkit that numa and hardening ask for are verified like the rest."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.engine import (
    daemon_record,
    toolkit,
    toolkit_config,
)
from ansible_collections.steadygpu.host.plugins.module_utils.engine.daemon_json import CONFIG_PATH
from ansible_collections.steadygpu.host.plugins.module_utils.engine.owned_record import (
    Record,
    dump_record,
)
from ansible_collections.steadygpu.host.plugins.module_utils.settings import engine_keys, record
from ansible_collections.steadygpu.host.plugins.module_utils.settings.survey import survey

MEMLOCK = {"Name": "memlock", "Hard": -1, "Soft": -1}
INJECTION = "accept-nvidia-visible-devices-envvar-when-unprivileged"
NUMA = {"daemon_keys": ["default-ulimits.memlock", "default-shm-size"]}
HARDENING = {"daemon": {"no-new-privileges": True}, "toolkit": {INJECTION: False}}


def write(root: Path, path: str, text: str) -> None:
    place = root / path.lstrip("/")
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text)


@pytest.fixture
def host(tmp_path: Path) -> Path:
    ours = Record().claim(("default-shm-size",), "256m", None)
    for key, value in MEMLOCK.items():
        ours = ours.claim(("default-ulimits", "memlock", key), value, None)
    ours = ours.claim(("no-new-privileges",), True, None)
    write(tmp_path, daemon_record.RECORD_PATH, dump_record(ours))
    docker(tmp_path)
    toolkits = Record().claim((INJECTION,), False, None)
    write(tmp_path, toolkit_config.RECORD_PATH, dump_record(toolkits))
    write(tmp_path, toolkit.CONFIG_PATH, f"{INJECTION} = false\n")
    root = str(tmp_path)
    record.save(record.Record("numa", extra=NUMA), root)
    record.save(record.Record("hardening", extra=HARDENING), root)
    return tmp_path


def docker(root: Path, **changes: Any) -> None:
    config = {
        "default-shm-size": "256m",
        "default-ulimits": {"memlock": MEMLOCK},
        "no-new-privileges": True,
        **changes,
    }
    write(root, CONFIG_PATH, json.dumps(config))


def verdicts(root: Path) -> dict[str, tuple[str, str]]:
    return {one.setting.name: (one.owner, one.setting.verdict) for one in survey(str(root))}


def test_all_of_them_are_read_back(host: Path) -> None:
    assert verdicts(host) == {
        "Docker no-new-privileges": ("hardening", "effective"),
        f"toolkit {INJECTION}": ("hardening", "effective"),
        "Docker default-ulimits.memlock.Hard": ("numa", "effective"),
        "Docker default-ulimits.memlock.Name": ("numa", "effective"),
        "Docker default-ulimits.memlock.Soft": ("numa", "effective"),
        "Docker default-shm-size": ("numa", "effective"),
    }


def test_a_key_that_somebody_changed_or_deleted_differs(host: Path) -> None:
    docker(host, **{"no-new-privileges": False, "default-ulimits": {}})
    write(host, toolkit.CONFIG_PATH, "")
    found = verdicts(host)
    assert found["Docker no-new-privileges"] == ("hardening", "differs")
    assert found["Docker default-ulimits.memlock.Hard"] == ("numa", "differs")
    assert found["Docker default-shm-size"] == ("numa", "effective")
    assert found[f"toolkit {INJECTION}"] == ("hardening", "differs")


def test_a_value_that_was_there_before_us_is_as_it_is_to_be(host: Path) -> None:
    write(host, daemon_record.RECORD_PATH, dump_record(Record()))
    assert verdicts(host)["Docker no-new-privileges"] == ("hardening", "effective")
    assert verdicts(host)["Docker default-ulimits.memlock"] == ("numa", "effective")


def test_what_docker_takes_at_its_restart_is_pending(host: Path) -> None:
    path = host / daemon_record.RECORD_PATH.lstrip("/")
    said = json.loads(path.read_text())
    path.write_text(json.dumps({**said, "pending": ["no-new-privileges"]}))
    assert verdicts(host)["Docker no-new-privileges"] == ("hardening", "pending")


def test_what_cannot_be_read_differs_and_raises_nothing(host: Path) -> None:
    write(host, CONFIG_PATH, "{")
    write(host, toolkit.CONFIG_PATH, "= 1")
    assert {verdict for _owner, verdict in verdicts(host).values()} == {"differs"}
    assert engine_keys.read({}, str(host)) == []
