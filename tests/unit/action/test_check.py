# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""``check`` in a play: one round trip, findings of the host's own files, and no secret told."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

FACTS = [{"steadygpu.host.gpu_facts": {}}, {"steadygpu.host.runtime_facts": {}}]
SECRET = "hf_AbCdEfGhIjKlMnOpQrStUvWxYz012345"  # shaped like a token, and none
COMPOSE = f"""services:
  broken:
    image: ubuntu
    environment:
      HF_TOKEN: {SECRET}
    deploy:
      resources:
        reservations:
          devices:
            - driver: nvidia
              count: 1
              device_ids: ['0']
              capabilities: [gpu]
"""


@pytest.fixture
def stack(tmp_path: Path) -> Path:
    """A directory with a Compose project that no engine takes."""
    directory = tmp_path / "stack"
    directory.mkdir()
    (directory / "compose.yaml").write_text(COMPOSE)
    return directory


def task(**arguments: Any) -> dict[str, Any]:
    return {"steadygpu.host.check": arguments, "ignore_errors": True}


def test_files_are_judged_on_the_controller_after_one_round_trip(controller, stack):
    *_facts, found = controller.play(*FACTS, task(paths=[str(stack)]), check=True)
    rules = {f["rule"] for f in found["findings"] if f["file"].startswith(str(stack))}
    assert "count-and-device-ids" in rules
    assert found["changed"] is False
    assert controller.round_trips == 3, "two for the facts, one for the check"


def test_no_secret_and_no_text_of_a_file_is_in_the_result(controller, stack):
    *_facts, found = controller.play(*FACTS, task(paths=[str(stack)]))
    text = json.dumps(found)
    assert SECRET not in text
    assert "evidence" not in found
    assert set(found["invocation"]["module_args"]["facts"]["docker"]) == {"status"}
    assert "more" not in found
    assert any("HF_TOKEN" in f["seen"] for f in found["findings"])


def test_it_fails_where_it_is_asked_to_and_accepts_with_a_reason(controller, stack):
    *_facts, failed, accepted = controller.play(
        *FACTS,
        task(paths=[str(stack)], fail_on="error"),
        task(paths=[str(stack)], accept={"count-and-device-ids": "a test of ours"}),
    )
    assert failed["failed"]
    assert "count-and-device-ids" in failed["msg"]
    assert "count-and-device-ids" not in {f["rule"] for f in accepted["findings"]}
    assert accepted["accepted"] >= 1


def test_without_facts_it_says_what_to_gather_first(controller):
    (found,) = controller.play(task())
    assert found["failed"]
    assert "steadygpu.host.gpu_facts" in found["msg"]


# Stands for ssh: what it is told to run on the "host" runs here, after a line for the log.
SSH = """#!/bin/sh
for command in "$@"; do :; done
exec /bin/sh -c "$command"
"""


def test_no_log_of_the_connection_shows_the_texts_of_files(controller, stack, tmp_path):
    ssh = tmp_path / "ssh"
    ssh.write_text(SSH)
    ssh.chmod(0o755)
    tasks = [*FACTS, task(paths=[str(stack)])]
    play = [{"hosts": "far", "gather_facts": False, "tasks": tasks}]
    (tmp_path / "far.json").write_text(json.dumps(play))
    program = str(Path(sys.executable).with_name("ansible-playbook"))
    inventory = f"far ansible_ssh_executable={ssh} ansible_python_interpreter={sys.executable}\n"
    (tmp_path / "hosts").write_text(inventory)
    done = subprocess.run(
        [program, "-vvv", "--diff", "-i", str(tmp_path / "hosts"), str(tmp_path / "far.json")],
        env={
            **os.environ,
            "ANSIBLE_CONFIG": str(tmp_path / "ansible.cfg"),
            "ANSIBLE_COLLECTIONS_PATH": str(controller.collections),
            "ANSIBLE_HOME": str(tmp_path / "ansible"),
            "ANSIBLE_PIPELINING": "1",
            "ANSIBLE_STDOUT_CALLBACK": "ansible.builtin.default",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    shown = done.stdout + done.stderr
    assert "count-and-device-ids" in shown, shown[-3000:]
    assert SECRET not in shown
    assert "censored due to no log" in shown
