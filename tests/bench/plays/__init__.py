# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Plays against a lab host, timed task by task."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
LAB = [sys.executable, str(ROOT / "tests" / "lab")]
# What Ansible answers on the controller, without a round trip.
_LOCAL_NAMES = {
    "assert",
    "debug",
    "fail",
    "include_role",
    "include_tasks",
    "include_vars",
    "meta",
    "set_fact",
    "validate_argument_spec",
}


@dataclass(frozen=True)
class Run:
    """One run: wall seconds, and the tasks that were not skipped as (action, seconds)."""

    seconds: float
    tasks: list[tuple[str, float]]

    @property
    def remote(self) -> list[tuple[str, float]]:
        """The tasks that went to the host."""
        return [
            task for task in self.tasks if task[0].split("ansible.builtin.")[-1] not in _LOCAL_NAMES
        ]


def ansible(host: str, program: str, *arguments: str, **environment: str) -> Run:
    """Run an Ansible program against one lab host. Ends the bench where that fails."""
    env = dict(
        os.environ,
        STEADYGPU_LAB_HOSTS=host,
        ANSIBLE_STDOUT_CALLBACK="ansible.posix.json",
        ANSIBLE_LOAD_CALLBACK_PLUGINS="1",
        **environment,
    )
    argv = [program, "-i", "inventories/lab", *arguments]
    began = time.monotonic()
    done = subprocess.run(argv, cwd=ROOT, env=env, stdout=subprocess.PIPE, text=True, check=False)
    seconds = time.monotonic() - began
    if done.returncode:
        raise SystemExit(f"{' '.join(argv)} failed:\n{done.stdout}")
    # The report callback prints after the JSON.
    answer, _end = json.JSONDecoder().raw_decode(done.stdout[done.stdout.index("{") :])
    return Run(seconds, _tasks(answer, host))


def lab(*arguments: str) -> str:
    """What a verb of the lab printed on its standard output."""
    done = subprocess.run([*LAB, *arguments], check=True, stdout=subprocess.PIPE, text=True)
    return done.stdout


def _tasks(answer: dict[str, Any], host: str) -> list[tuple[str, float]]:
    found = []
    for task in (task for play in answer["plays"] for task in play["tasks"]):
        result = task["hosts"].get(host)
        if result and not result.get("skipped"):
            times = task["task"]["duration"]
            begin, end = (_stamp(times[key]) for key in ("start", "end"))
            found.append((result["action"], end - begin))
    return found


def _stamp(text: str) -> float:
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()
