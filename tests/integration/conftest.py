# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A lab host as a converged site left it, fresh for every story."""

from __future__ import annotations

import fcntl
import json
import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from converged import LAB, ROOT, snapshot_name


@dataclass
class Run:
    """How a playbook ended: its exit status and everything a person saw."""

    rc: int
    output: str

    def tasks_changed(self, host: str) -> int:
        """The number of changed tasks in the recap of one host."""
        found = re.search(rf"^{host}\s.*changed=(\d+)", self.output, re.MULTILINE)
        assert found, f"no recap for {host} in:\n{self.output}"
        return int(found.group(1))


@dataclass
class LabHost:
    """One running lab machine; everything goes through ssh or Ansible as a user's would."""

    name: str

    def sh(self, command: str, check: bool = True) -> str:
        """Run a shell command on the host; its output. A failure fails the test."""
        done = subprocess.run(
            [*LAB, "ssh", self.name, command], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0 or not check, f"{command}: {done.stdout}{done.stderr}"
        return done.stdout.strip()

    def reboot(self) -> None:
        """Reboot and wait until it is up again."""
        subprocess.run([*LAB, "reboot", self.name], check=True)

    def play(self, *arguments: str, playbook: str = "site.yml") -> Run:
        """Run a playbook against this host alone."""
        argv = ["ansible-playbook", "-i", "inventories/lab", playbook, *arguments]
        done = subprocess.run(
            argv,
            cwd=ROOT,
            env=self._env(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        return Run(done.returncode, done.stdout)

    def module(self, name: str, arguments: dict[str, Any] | None = None) -> dict[str, Any]:
        """Run one module of the collection; what it returned, failed or not."""
        argv = ["ansible", "-i", "inventories/lab", "gpu_hosts", "-m", "steadygpu.host." + name]
        argv += ["-a", json.dumps(arguments)] if arguments else []
        env = dict(
            self._env(),
            ANSIBLE_LOAD_CALLBACK_PLUGINS="1",
            ANSIBLE_STDOUT_CALLBACK="ansible.posix.json",
        )
        done = subprocess.run(argv, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
        # The report callback prints after the JSON.
        answer, _end = json.JSONDecoder().raw_decode(done.stdout)
        result = answer["plays"][0]["tasks"][0]["hosts"][self.name]
        assert isinstance(result, dict)
        return result

    def _env(self) -> dict[str, str]:
        env = dict(os.environ, STEADYGPU_LAB_HOSTS=self.name, ANSIBLE_NOCOLOR="1")
        env["ANSIBLE_CONFIG"] = str(ROOT / "ansible.cfg")
        env["ANSIBLE_COLLECTIONS_PATH"] = str(ROOT / "build" / "collections")
        return env


def _lab(*arguments: str) -> None:
    subprocess.run([*LAB, *arguments], check=True)


@pytest.fixture(scope="session")
def converged() -> str:
    """The name of the converged snapshot; made here when no Molecule run has left it."""
    name = snapshot_name()
    with (ROOT / "build" / "converged.lock").open("w") as lock:
        # One of the parallel workers makes it, the others wait.
        fcntl.flock(lock, fcntl.LOCK_EX)
        start = [*LAB, "start", "integration-probe", "--from", name]
        probe = subprocess.run(start, capture_output=True, text=True, check=False)
        if probe.returncode == 0:
            _lab("stop", "integration-probe")
        elif "no snapshot" in probe.stderr:
            _converge_and_freeze(name)
        else:
            pytest.fail(probe.stderr)
    return name


def _converge_and_freeze(name: str) -> None:
    machine = LabHost("integration-base")
    _lab("start", machine.name, "--suite", "trixie", "--profile", "dgx-a100")
    try:
        run = machine.play()
        assert run.rc == 0, run.output
        _lab("freeze", machine.name, name)
    finally:
        _lab("stop", machine.name)


@pytest.fixture
def host(converged: str) -> Iterator[LabHost]:
    """A fresh copy of the converged host, gone after the test."""
    machine = LabHost("integration-" + os.environ.get("PYTEST_XDIST_WORKER", "alone"))
    _lab("start", machine.name, "--from", converged)
    try:
        yield machine
    finally:
        _lab("stop", machine.name)
