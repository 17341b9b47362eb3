# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a run of site.yml costs on a lab host, against the price of one ssh round trip.

Usage: ``make bench``. It starts a bare lab host, runs site.yml twice and prints a table: seconds,
tasks, tasks that went to the host, and seconds per remote task as a ratio to a remote task that
does nothing (``ansible.builtin.ping``) on the same host in the same run.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
LAB = [sys.executable, str(ROOT / "tests" / "lab")]
HOST = "bench"
# What Ansible answers on the controller, without a round trip.
_LOCAL_ACTIONS = {
    "ansible.builtin." + name
    for name in ("assert", "debug", "fail", "include_role", "include_tasks", "meta", "set_fact")
} | {"ansible.builtin.validate_argument_spec"}


@dataclass
class Site:
    """One run of site.yml: wall seconds, and its tasks as (action, seconds)."""

    seconds: float
    tasks: list[tuple[str, float]]

    @property
    def remote(self) -> list[tuple[str, float]]:
        """The tasks that went to the host."""
        return [task for task in self.tasks if task[0] not in _LOCAL_ACTIONS]


def _ansible(program: str, *arguments: str) -> dict[str, Any]:
    env = dict(
        os.environ,
        STEADYGPU_LAB_HOSTS=HOST,
        ANSIBLE_STDOUT_CALLBACK="ansible.posix.json",
        ANSIBLE_LOAD_CALLBACK_PLUGINS="1",
    )
    argv = [program, "-i", "inventories/lab", *arguments]
    done = subprocess.run(argv, cwd=ROOT, env=env, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(argv)} failed:\n{done.stdout}")
    # The report callback prints after the JSON.
    answer, _end = json.JSONDecoder().raw_decode(done.stdout[done.stdout.index("{") :])
    assert isinstance(answer, dict)
    return answer


def _tasks(answer: dict[str, Any]) -> list[tuple[str, float]]:
    """Every task that was not skipped on the host, with the seconds it took."""
    found = []
    for task in (task for play in answer["plays"] for task in play["tasks"]):
        result = task["hosts"].get(HOST)
        if result and not result.get("skipped"):
            times = task["task"]["duration"]
            begin, end = (_stamp(times[key]) for key in ("start", "end"))
            found.append((result["action"], end - begin))
    return found


def _stamp(text: str) -> float:
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def _site() -> Site:
    began = time.monotonic()
    answer = _ansible("ansible-playbook", "site.yml")
    return Site(time.monotonic() - began, _tasks(answer))


def main() -> None:
    """Measure and print."""
    subprocess.run(
        [*LAB, "start", HOST, "--suite", "trixie", "--profile", "dgx-a100"],
        check=True,
        stdout=sys.stderr,
    )
    try:
        first, second = _site(), _site()
        pings = [
            _tasks(_ansible("ansible", "gpu_hosts", "-m", "ansible.builtin.ping"))[0][1]
            for _attempt in range(5)
        ]
    finally:
        subprocess.run([*LAB, "stop", HOST], check=True, stdout=sys.stderr)
    ping = median(pings)
    print("| run | seconds | tasks | remote tasks | seconds per remote task | against a ping |")
    print("|---|---|---|---|---|---|")
    for name, site in (("bare host", first), ("second run", second)):
        each = sum(seconds for _action, seconds in site.remote) / len(site.remote)
        print(
            f"| {name} | {site.seconds:.0f} | {len(site.tasks)} | {len(site.remote)} "
            f"| {each:.1f} | {each / ping:.1f} × |"
        )
    print(f"\nOne ping: {ping:.2f} s (median of {len(pings)}).")


if __name__ == "__main__":
    main()
