# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The same wanted state by another role and by ours, each on its own copy of one busy host.

Usage: ``python tests/bench/side_by_side.py CHECKOUT`` with a checkout of ansible-role-docker
(geerlingguy.docker). The host has a Docker with one running container and no configuration; wanted
are ``live-restore`` and ``features.cdi``. Printed are the containers that were killed, tasks and
seconds, of a first and of a second run.
"""

from __future__ import annotations

import json
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from plays import Run, ansible, lab

HOST, SNAPSHOT = "side", "side-busy"
WANTED = {"live-restore": True, "features": {"cdi": True}}
# Debian's own Docker for both; what else the other role would install or remove is left out.
THEIRS = {
    "docker_add_repo": False,
    "docker_packages": ["docker.io"],
    "docker_obsolete_packages": [],
    "docker_install_compose_plugin": False,
    "docker_daemon_options": WANTED,
}
PREPARE = (
    "set -e; apt-get update -qq; DEBIAN_FRONTEND=noninteractive apt-get install -qq -y"
    " --no-install-recommends docker.io docker-cli >/dev/null 2>&1;"
    " tar -C /usr -c bin/busybox | docker import - busybox >/dev/null;"
    " docker run -d --name job busybox /bin/busybox sleep 1000000 >/dev/null"
)
PID = "docker inspect -f '{{.State.Pid}} {{.State.Running}}' job"


@dataclass(frozen=True)
class Side:
    """What one of them did: two runs, and how many containers lost their process in the first."""

    name: str
    first: Run
    second: Run
    killed: int


def main() -> int:
    """Measure and print; the exit status."""
    if len(sys.argv) != 2 or not Path(sys.argv[1], "tasks", "main.yml").is_file():
        print("side_by_side: left out, it needs a checkout of ansible-role-docker as its argument")
        return 0
    lab("start", HOST, "--suite", "trixie", "--profile", "t4")
    lab("ssh", HOST, PREPARE)
    lab("freeze", HOST, SNAPSHOT)
    lab("stop", HOST)
    with tempfile.TemporaryDirectory() as folder:
        roles = Path(folder, "roles")
        roles.mkdir()
        (roles / "geerlingguy.docker").symlink_to(Path(sys.argv[1]).resolve())
        sides = [
            _side("geerlingguy.docker", _play(folder, "geerlingguy.docker", True), THEIRS, folder),
            _side(
                "our role engine",
                _play(folder, "steadygpu.host.engine", False),
                {"engine_config": WANTED},
                folder,
            ),
            _side("our whole site.yml", "site.yml", {"engine_config": WANTED}, folder),
        ]
    print("| | containers killed | tasks | seconds | second run: tasks | seconds |")
    print("|---|---|---|---|---|---|")
    for side in sides:
        print(
            f"| {side.name} | {side.killed} of 1 | {len(side.first.tasks)} "
            f"| {side.first.seconds:.0f} | {len(side.second.tasks)} | {side.second.seconds:.0f} |"
        )
    return 0


def _play(folder: str, role: str, facts: bool) -> str:
    path = Path(folder, role + ".yml")
    play = {"hosts": "gpu_hosts", "gather_facts": facts, "become": True, "roles": [role]}
    path.write_text(json.dumps([play]), encoding="utf-8")
    return str(path)


def _side(name: str, play: str, variables: dict[str, object], folder: str) -> Side:
    print(f"side_by_side: {name} ...", file=sys.stderr)
    lab("start", HOST, "--from", SNAPSHOT)
    try:
        before = lab("ssh", HOST, PID).split()
        first, second = (
            ansible(
                HOST,
                "ansible-playbook",
                play,
                "-e",
                json.dumps(variables),
                ANSIBLE_ROLES_PATH=str(Path(folder, "roles")),
            )
            for _run in range(2)
        )
        after = lab("ssh", HOST, PID).split()
    finally:
        lab("stop", HOST)
    return Side(name, first, second, int(before != after))


if __name__ == "__main__":
    sys.exit(main())
