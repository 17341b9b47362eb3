# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Plays run for real against this machine, in directories of the test's own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

CHECKOUT = Path(__file__).resolve().parents[3]
COLLECTIONS = CHECKOUT / "build" / "collections"


class Controller:
    """Runs tasks with ``ansible-playbook`` and a connection to this very machine."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.collections = COLLECTIONS  # where the plays find this collection
        self._log = directory / "round-trips"
        self._config = directory / "ansible.cfg"  # empty: nobody's own settings count
        self._config.touch()
        # The interpreter of the "host" notes each time a module is run with it.
        self._python = directory / "python"
        self._python.write_text(f'#!/bin/sh\necho >>{self._log}\nexec {sys.executable} "$@"\n')
        self._python.chmod(0o755)

    @property
    def round_trips(self) -> int:
        """How often a module ran on the host since the last play began."""
        return len(self._log.read_text().splitlines()) if self._log.exists() else 0

    def play(self, *tasks: dict[str, Any], check: bool = False) -> list[dict[str, Any]]:
        """The result of each task of one play, up to the first that failed."""
        self._log.unlink(missing_ok=True)
        playbook = self.directory / "play.json"
        playbook.write_text(
            json.dumps([{"hosts": "localhost", "gather_facts": False, "tasks": list(tasks)}])
        )
        done = subprocess.run(
            [
                str(Path(sys.executable).with_name("ansible-playbook")),
                *["-i", "localhost,", "-c", "local", "--diff", *(["--check"] if check else [])],
                *["-e", f"ansible_python_interpreter={self._python}", str(playbook)],
            ],
            env={
                **os.environ,
                "ANSIBLE_CONFIG": str(self._config),
                "ANSIBLE_COLLECTIONS_PATH": str(self.collections),
                "ANSIBLE_HOME": str(self.directory / "ansible"),
                "ANSIBLE_LOCAL_TEMP": str(self.directory / "ansible" / "tmp"),
                "ANSIBLE_PIPELINING": "1",
                "ANSIBLE_STDOUT_CALLBACK": "ansible.posix.json",
            },
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.stdout.startswith("{"), done.stdout + done.stderr
        (play,) = json.loads(done.stdout)["plays"]
        return [task["hosts"]["localhost"] for task in play["tasks"]]


@pytest.fixture
def controller(tmp_path: Path) -> Controller:
    """A controller whose host is this machine."""
    return Controller(tmp_path)
