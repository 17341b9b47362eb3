# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""``checkpoint`` on the controller: which run it says it is, and whose window it takes over.

The plays are real; the module on the "host" is a stand-in that holds a window and writes nothing.
"""

from __future__ import annotations

import dataclasses
import getpass
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.steadygpu.host.plugins.action import checkpoint as plugin

BEGIN = {"steadygpu.host.checkpoint": {"state": "begin"}}

# Holds a window for the run that the file names, and refuses every other one.
MODULE = """\
#!/usr/bin/python
from __future__ import annotations
from ansible.module_utils.basic import AnsibleModule

NAMES = ["run", "who", "what", "window", "why", "ticket", "takeover", "state"]


def main() -> None:
    module = AnsibleModule({name: {"type": "raw"} for name in NAMES}, supports_check_mode=True)
    with open("HOLDER", encoding="utf-8") as handle:
        holder = handle.read()
    if holder not in ("", module.params["run"]) and not module.params["takeover"]:
        module.fail_json(msg="another run is at it", busy_run=holder)
    module.exit_json(changed=False, seen=module.params)


if __name__ == "__main__":
    main()
"""


@pytest.fixture
def holder(tmp_path: Path, controller: Any) -> Path:
    """The file that says which run holds the window; plays run with the stand-in."""
    file = tmp_path / "holder"
    file.write_text("")
    tree = tmp_path / "collections" / "ansible_collections"
    host = tree / "steadygpu" / "host"
    (host / "plugins" / "modules").mkdir(parents=True)
    real = controller.collections / "ansible_collections"
    (tree / "ansible").symlink_to(real / "ansible")
    for name in ("meta", "galaxy.yml"):
        (host / name).symlink_to(real / "steadygpu" / "host" / name)
    for name in ("action", "callback", "module_utils", "plugin_utils"):
        (host / "plugins" / name).symlink_to(real / "steadygpu" / "host" / "plugins" / name)
    module = host / "plugins" / "modules" / "checkpoint.py"
    module.write_text(MODULE.replace("HOLDER", str(file)))
    controller.collections = tmp_path / "collections"
    return file


@pytest.fixture
def gone() -> plugin.Run:
    """A run of this controller whose process is over."""
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    return dataclasses.replace(plugin.this_run(), pid=ended.pid)


def test_a_run_is_told_from_others_and_says_who_and_what(controller: Any, holder: Path) -> None:
    silent, spoken = controller.play(
        BEGIN, {"steadygpu.host.checkpoint": {"who": "night shift", "what": "new limits"}}
    )
    (other,) = controller.play(BEGIN, check=True)
    first, second, third = (
        plugin.parse_run(result["seen"]["run"]) for result in (silent, spoken, other)
    )
    assert first is not None
    assert third is not None
    assert first == second != third
    # Its process is that of ansible-playbook, which is over, and not a worker of a single task.
    here = plugin.this_run()
    assert dataclasses.replace(first, pid=here.pid, start=here.start) == here
    assert plugin.has_ended(first, here)
    assert silent["seen"]["who"] == f"{getpass.getuser()}@{socket.gethostname()}"
    assert silent["seen"]["what"] == "localhost"  # the name of a play without one
    assert (spoken["seen"]["who"], spoken["seen"]["what"]) == ("night shift", "new limits")


def test_a_window_of_a_dead_run_is_taken_over_and_said(
    controller: Any, holder: Path, gone: plugin.Run
) -> None:
    holder.write_text(str(gone))
    (result,) = controller.play(BEGIN)
    assert result["seen"]["takeover"]
    assert any(f"pid {gone.pid} on" in text and "is gone" in text for text in result["warnings"])
    assert controller.round_trips == 2


def test_a_window_of_a_living_run_is_not(controller: Any, holder: Path) -> None:
    run = str(plugin.this_run())
    holder.write_text(run)
    (result,) = controller.play({**BEGIN, "ignore_errors": True})
    assert result["failed"]
    assert result["busy_run"] == run
    assert controller.round_trips == 1


@pytest.mark.parametrize("elsewhere", [{"host": "other"}, {"boot": "b-2"}, {"namespace": "7"}])
def test_of_a_run_elsewhere_nothing_is_known(gone: plugin.Run, elsewhere: dict[str, Any]) -> None:
    here = plugin.this_run()
    assert plugin.has_ended(gone, here)
    assert not plugin.has_ended(dataclasses.replace(gone, **elsewhere), here)


def test_a_pid_that_was_given_to_another_process_is_not_the_run() -> None:
    here = plugin.this_run()
    assert not plugin.has_ended(here, here)
    assert plugin.has_ended(dataclasses.replace(here, start="1"), here)


def test_a_process_that_nobody_has_waited_for_is_over() -> None:
    here = plugin.this_run()
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    try:
        zombie = dataclasses.replace(here, pid=child, start=_start(child))
        assert plugin.has_ended(zombie, here)
    finally:
        os.waitpid(child, 0)


def test_what_a_controller_cannot_tell_is_never_a_reason_to_take_over(gone: plugin.Run) -> None:
    for part in ("host", "boot", "namespace"):
        both = {part: "unknown"}
        here = dataclasses.replace(plugin.this_run(), **both)
        assert not plugin.has_ended(dataclasses.replace(gone, **both), here)


def test_a_run_survives_its_text() -> None:
    here = plugin.this_run()
    assert plugin.parse_run(str(here)) == here
    assert plugin.parse_run(f"{here} and more") is None
    assert plugin.parse_run("steadygpu checkpoint, pid 1") is None


@pytest.mark.parametrize(
    ("variables", "who"),
    [
        ({"awx_user_name": "ada", "awx_job_id": 42}, "ada (AWX job 42)"),
        ({"tower_user_name": "ada", "tower_job_id": "42"}, "ada (AWX job 42)"),
        ({"awx_job_id": 42}, "AWX (AWX job 42)"),
        ({"awx_user_name": "ada"}, "ada"),
    ],
)
def test_in_awx_it_is_the_person_who_launched_the_job(variables: dict[str, Any], who: str) -> None:
    assert plugin.person(variables, "awx-job-42") == who


def test_behind_sudo_it_is_the_person_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(getpass, "getuser", lambda: "root")
    monkeypatch.setenv("SUDO_USER", "ada")
    assert plugin.person({}, "desk") == "ada@desk"
    monkeypatch.setattr(getpass, "getuser", lambda: "bob")
    assert plugin.person({}, "desk") == "bob@desk"


def _start(pid: int) -> str:
    """When a process started, in the kernel's ticks (proc(5), field 22)."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
