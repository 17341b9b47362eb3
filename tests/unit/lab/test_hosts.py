# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The hosts of a checkout, and the inventory of those that run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.steadygpu.host.tests.lab import host, inventory, vm
from ansible_collections.steadygpu.host.tests.lab.cache import Cache
from ansible_collections.steadygpu.host.tests.lab.console import LabError

SCRIPT = host.CHECKOUT / "inventories" / "lab" / "hosts.py"


class Lab:
    """A cache in which processes named like qemu pass for lab hosts."""

    def __init__(self, root: Path) -> None:
        self.hosts = host.Hosts(Cache(root), {}, checkout=root)
        self._processes: list[subprocess.Popen[bytes]] = []

    def add(
        self, name: str, running: bool = True, ready: bool = True, needs: tuple[str, ...] = ()
    ) -> None:
        directory = self.hosts.directory(name)
        directory.mkdir(parents=True)
        manifest: dict[str, Any] = {
            "name": name,
            "suite": "trixie",
            "profile": "t4",
            "snapshot": None,
            "accelerator": "tcg",
            "port": 2201,
            "needs": list(needs),
            "ready": ready,
        }
        (directory / "entry.json").write_text(json.dumps(manifest))
        if not running:
            (directory / vm.PID_FILE).write_text(str(os.getpid()))
            return
        process = subprocess.Popen(
            [
                "qemu-system-x86_64",
                "-c",
                "print(flush=True); input()",
                f"file={directory / vm.DISK}",
            ],
            executable=sys.executable,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert process.stdout is not None
        process.stdout.readline()
        self._processes.append(process)
        (directory / vm.PID_FILE).write_text(str(process.pid))

    def end(self) -> None:
        for process in self._processes:
            process.kill()
            process.communicate()

    def inventory(self, **environ: str) -> dict[str, Any]:
        return inventory.inventory(self.hosts.cache, self.hosts, environ)


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    made = Lab(tmp_path)
    yield made
    made.end()


def test_without_hosts_the_group_is_empty(lab: Lab) -> None:
    assert lab.inventory() == {"gpu_hosts": {"hosts": []}, "_meta": {"hostvars": {}}}


def test_a_running_host_can_be_connected_to(lab: Lab) -> None:
    lab.add("lab1")
    answer = lab.inventory()
    assert answer["gpu_hosts"]["hosts"] == ["lab1"]
    variables = answer["_meta"]["hostvars"]["lab1"]
    assert variables["ansible_host"] == "127.0.0.1"
    assert variables["ansible_port"] == 2201
    assert variables["lab_suite"] == "trixie"
    assert Path(variables["ansible_ssh_private_key_file"]).exists()
    assert "StrictHostKeyChecking=yes" in variables["ansible_ssh_common_args"]


def test_only_named_hosts_when_names_are_given(lab: Lab) -> None:
    lab.add("one")
    lab.add("two")
    assert lab.inventory()["gpu_hosts"]["hosts"] == ["one", "two"]
    assert lab.inventory(STEADYGPU_LAB_HOSTS=" two,three")["gpu_hosts"]["hosts"] == ["two"]


def test_a_host_with_a_stale_pid_or_still_starting_is_not_listed(lab: Lab) -> None:
    lab.add("dead", running=False)
    lab.add("starting", ready=False)
    assert lab.inventory()["gpu_hosts"]["hosts"] == []
    assert lab.hosts.names() == ["dead", "starting"]


def test_stop_removes_what_a_dead_host_left(lab: Lab) -> None:
    lab.add("dead", running=False)
    assert lab.hosts.stop("dead") is True
    assert lab.hosts.names() == []
    assert lab.hosts.stop("dead") is False


def test_two_checkouts_do_not_see_each_other(lab: Lab, tmp_path: Path) -> None:
    lab.add("mine")
    other = host.Hosts(lab.hosts.cache, {}, checkout=tmp_path / "other")
    assert other.names() == []
    with pytest.raises(LabError, match="no lab host 'mine'"):
        other.get("mine")


def test_a_host_that_runs_as_something_else_is_not_taken(lab: Lab) -> None:
    lab.add("lab1")
    assert lab.hosts.start(host.Request("lab1", "trixie", "t4"))["name"] == "lab1"
    with pytest.raises(LabError, match="already runs with suite 'trixie', asked for 'forky'"):
        lab.hosts.start(host.Request("lab1", "forky"))


def test_a_snapshot_that_a_host_runs_on_is_not_replaced(lab: Lab) -> None:
    lab.add("maker")
    ident = "snapshots/" + lab.hosts.directory("base").name
    with lab.hosts.cache.building(ident, {"checkout": "/"}) as work:
        (work / vm.DISK).touch()
    lab.add("user", needs=(ident,))
    with pytest.raises(LabError, match="cannot be replaced while user stand"):
        lab.hosts.freeze("maker", "base")


def test_an_unknown_snapshot_says_how_to_make_it(lab: Lab) -> None:
    with pytest.raises(LabError, match=r"no snapshot 'base' .* freeze NAME base"):
        lab.hosts.start(host.Request("lab1", "trixie", snapshot="base"))
    assert lab.hosts.names() == []


def test_dead_hosts_and_snapshots_of_gone_checkouts_are_collected(lab: Lab) -> None:
    lab.add("old", running=False)
    os.utime(lab.hosts.directory("old"), (1_700_000_000, 1_700_000_000))
    lab.add("fresh", running=False)
    with lab.hosts.cache.building("snapshots/gone", {"checkout": "/nonexistent"}):
        pass
    lab.hosts.collect()
    assert lab.hosts.names() == ["fresh"]
    assert lab.hosts.cache.find("snapshots/gone") is None


@pytest.mark.parametrize("name", ["", "-a", "a_b", "../x", "A", "a" * 50])
def test_names_that_are_no_host_names_are_refused(lab: Lab, name: str) -> None:
    with pytest.raises(LabError, match="cannot name a lab host"):
        lab.hosts.start(host.Request(name, "trixie"))


def test_the_script_answers_ansible(tmp_path: Path) -> None:
    environ = dict(os.environ, XDG_CACHE_HOME=str(tmp_path))
    for arguments, expected in (
        (["--list"], {"gpu_hosts": {"hosts": []}, "_meta": {"hostvars": {}}}),
        (["--host", "lab1"], {}),
    ):
        done = subprocess.run(
            [sys.executable, str(SCRIPT), *arguments],
            env=environ,
            stdout=subprocess.PIPE,
            check=True,
        )
        assert json.loads(done.stdout) == expected
