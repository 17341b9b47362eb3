# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The pair of topology file and CDI spec: what it becomes, and that a kill never halves it."""

from __future__ import annotations

import json
import os
import signal
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.engine import cdi
from ansible_collections.steadygpu.host.plugins.module_utils.nccl import (
    carrier,
    fingerprint,
    host,
    manage,
)
from ansible_collections.steadygpu.host.tests.unit.module_utils.nccl.fake_host import (
    GRAPH,
    FakeHost,
    recorded,
)

CONTENT = recorded("azure-ndv4-topo.xml")


class Machine:
    """A virtual machine of the recorded type, with its pair in a directory of its own."""

    def __init__(self, directory: Path) -> None:
        self.fake = FakeHost(directory / "root")
        self.fake.as_in(CONTENT)
        self.wanted = manage.Wanted(
            content=CONTENT,
            file_path=str(directory / "etc/nccl-topology.xml"),
            spec_path=str(directory / "cdi/steadygpu-nccl.json"),
            root=str(directory / "host"),
        )

    @property
    def file(self) -> Path:
        return Path(self.wanted.file_path)

    @property
    def spec(self) -> Path:
        return Path(self.wanted.spec_path)

    @property
    def unit(self) -> Path:
        return Path(self.wanted.root + self.wanted.unit.path)

    @property
    def enabled(self) -> bool:
        return Path(self.wanted.root + self.wanted.unit.link).is_symlink()

    def plan(self, **changes: Any) -> manage.Plan:
        """What `state: present` decides now."""
        wanted = replace(self.wanted, **changes)
        return manage.plan_present(host.read(self.fake.root, "x86_64"), wanted)

    def apply(self, **changes: Any) -> manage.Plan:
        plan = self.plan(**changes)
        manage.carry_out(plan)
        return plan

    def edits(self) -> dict[str, Any]:
        """What a container that asks for the device gets."""
        assert cdi.parse_spec(str(self.spec), self.spec.read_text()).status == "valid"
        (device,) = json.loads(self.spec.read_text())["devices"]
        return device["containerEdits"]


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_tp_004_a_virtual_machine_gets_the_real_layout(machine: Machine) -> None:
    assert "cannot be guessed" in (machine.plan(content=None).failure or "")
    plan = machine.apply()
    assert (plan.failure, plan.found.status, len(plan.actions)) == (None, "absent", 4)
    assert "for 8 GPUs and 8 NICs" in plan.actions[0]
    assert machine.file.read_text().endswith(CONTENT)
    assert machine.edits() == {
        "env": ["NCCL_TOPO_FILE=/run/steadygpu/nccl-topology.xml"],
        "mounts": [
            {
                "hostPath": str(machine.file),
                "containerPath": "/run/steadygpu/nccl-topology.xml",
                "options": ["ro", "nosuid", "nodev", "noexec", "bind"],
            }
        ],
    }
    assert machine.file.stat().st_mode & 0o777 == 0o644


def test_the_second_time_nothing_changes(machine: Machine) -> None:
    machine.apply()
    again = machine.plan()
    assert (again.changed, again.actions, again.to_measure) == (False, (), False)
    assert (again.found.status, again.found.injected) == ("fresh", True)


@pytest.mark.parametrize("content", [CONTENT.replace("\n", "\r\n"), CONTENT.rstrip("\n")])
def test_other_line_ends_are_no_change(machine: Machine, content: str) -> None:
    assert machine.apply(content=content).failure is None
    assert machine.plan(content=content).changed is False
    assert machine.plan().changed is False


def test_the_stamped_file_of_this_host_is_welcome_as_content(machine: Machine) -> None:
    machine.apply()
    again = machine.plan(content=machine.file.read_text())
    assert (again.failure, again.changed) == (None, False)


def test_the_stamped_file_of_another_host_is_refused(machine: Machine, tmp_path: Path) -> None:
    other = Machine(tmp_path / "other")
    other.fake.remove("0103:00:00.0")
    other.fake.add(["0103:00:00.0"], "020700", vendor="15b3", numa_node=0, rdma=True)
    other.apply()
    plan = machine.plan(content=other.file.read_text())
    assert "was: nic 0103:00:00.0 15b3:20b0 node 0" in (plan.failure or "")
    assert "was made for fingerprint sha256:" in (plan.failure or "")
    assert not plan.changed
    confirmed = (plan.failure or "").rpartition("say so with fingerprint: ")[2]
    assert machine.apply(content=other.file.read_text(), fingerprint=confirmed).failure is None
    assert machine.plan().changed is False


def _moved(machine: Machine) -> None:
    """A GPU turns up elsewhere in the tree, below the same address."""
    machine.fake.remove("0003:00:00.0")
    machine.fake.add(["0003:00:00.0"], numa_node=0)


def test_a_stale_file_is_withdrawn_and_the_same_content_refused(machine: Machine) -> None:
    machine.apply()
    _moved(machine)
    plan = machine.apply()
    assert plan.found.status == "stale"
    assert "is: gpu 0003:00:00.0 10de:20b0 node 0" in (plan.failure or "")
    assert "withdraw" in plan.actions[0]
    assert machine.edits() == {"env": ["STEADYGPU_NCCL_TOPOLOGY=withdrawn"]}
    again = machine.plan()
    assert (again.changed, again.failure == plan.failure) == (False, True)


def test_a_stale_file_is_confirmed_by_its_new_fingerprint(machine: Machine) -> None:
    machine.apply()
    _moved(machine)
    refused = machine.apply()
    new = fingerprint.of_host(host.read(machine.fake.root), refused.found.now.nics).fingerprint
    assert f"say so with fingerprint: {new}" in (refused.failure or "")
    plan = machine.apply(fingerprint=new)
    assert (plan.failure, plan.to_measure) == (None, True)
    assert "NCCL_TOPO_FILE" in machine.edits()["env"][0]
    assert machine.plan().changed is False


def test_another_file_replaces_a_stale_one(machine: Machine) -> None:
    machine.apply()
    machine.fake.add(["000f:00:00.0"])
    assert "does not name GPU 000f:00:00.0" in (machine.plan().failure or "")
    node = '<pci busid="000f:00:00.0" class="0x030200" link_speed="16 GT/s" link_width="16"/>'
    plan = machine.apply(content=CONTENT.replace("</cpu>\n</system>", f"{node}</cpu>\n</system>"))
    assert (plan.failure, plan.found.status) == (None, "stale")
    assert "for 9 GPUs and 8 NICs" in plan.actions[0]


def test_a_wrong_fingerprint_is_refused(machine: Machine) -> None:
    plan = machine.plan(fingerprint="sha256:" + "0" * 64)
    assert "give the file of this host" in (plan.failure or "")
    assert not plan.changed


def test_bad_content_costs_nothing_while_the_file_is_fresh(machine: Machine) -> None:
    machine.apply()
    for content in (recorded(GRAPH), "<system", CONTENT.replace("0x030200", "0x060400")):
        plan = machine.apply(content=content)
        assert (plan.changed, bool(plan.failure)) == (False, True)
    assert machine.plan().changed is False


def test_a_spec_whose_file_is_gone_is_healed_or_withdrawn(machine: Machine) -> None:
    machine.apply()
    machine.file.unlink()
    assert machine.plan(content=recorded(GRAPH)).found.status == "stale"
    machine.apply(content=recorded(GRAPH))
    assert machine.edits() == {"env": ["STEADYGPU_NCCL_TOPOLOGY=withdrawn"]}
    machine.apply()
    assert machine.plan().changed is False


@pytest.mark.parametrize("which", ["file", "spec"])
def test_a_foreign_file_is_left_alone(machine: Machine, which: str) -> None:
    path: Path = getattr(machine, which)
    path.parent.mkdir()
    path.write_text("{}" if which == "spec" else CONTENT)
    for plan in (machine.apply(), manage.plan_absent(host.read("/nowhere"), machine.wanted)):
        assert (plan.found.status, plan.changed) == ("foreign", False)
        assert f"{path} is not of this module" in (plan.failure or "")
    assert machine.apply(takeover=True).failure is None
    assert machine.plan().found.status == "fresh"


def test_absent_removes_all_once(machine: Machine) -> None:
    machine.apply()
    seen = host.read(machine.fake.root)
    plan = manage.plan_absent(seen, machine.wanted)
    manage.carry_out(plan)
    assert plan.actions == (
        "disable steadygpu-nccl.service",
        "remove /etc/systemd/system/steadygpu-nccl.service",
        f"remove {machine.spec}",
        f"remove {machine.file}",
    )
    assert [machine.spec.exists(), machine.file.exists()] == [False, False]
    assert [machine.unit.exists(), machine.enabled] == [False, False]
    assert manage.plan_absent(seen, machine.wanted).changed is False


def test_a_unit_that_is_gone_comes_back_and_is_no_reason_to_measure(machine: Machine) -> None:
    machine.apply()
    machine.unit.unlink()
    plan = machine.apply()
    assert plan.actions == ("write /etc/systemd/system/steadygpu-nccl.service",)
    assert (plan.changed, plan.to_measure) == (True, False)
    assert machine.plan().changed is False


def test_a_unit_of_somebody_else_keeps_the_file_from_being_offered(machine: Machine) -> None:
    machine.unit.parent.mkdir(parents=True)
    machine.unit.write_text("[Service]\nExecStart=/bin/true\n")
    plan = machine.apply(takeover=True)
    assert "steadygpu-nccl.service is not of steadygpu.host" in (plan.failure or "")
    assert [plan.changed, machine.file.exists(), machine.spec.exists()] == [False] * 3


def test_a_stale_file_is_withdrawn_and_its_unit_stays(machine: Machine) -> None:
    machine.apply()
    _moved(machine)
    assert len(machine.apply().actions) == 1
    assert machine.enabled


def test_a_host_without_the_command_is_warned_of(machine: Machine) -> None:
    assert "/usr/local/bin/steadygpu" in machine.plan().warnings[-1]
    command = Path(machine.wanted.root) / "usr/local/bin/steadygpu"
    command.parent.mkdir(parents=True)
    command.write_text("")
    assert "/usr/local/bin/steadygpu" not in "".join(machine.plan().warnings)


def test_a_boot_withdraws_only_what_is_stale(machine: Machine) -> None:
    machine.apply()
    assert manage.withdraw_stale(host.read(machine.fake.root), machine.wanted).changed is False
    _moved(machine)
    plan = manage.withdraw_stale(host.read(machine.fake.root), machine.wanted)
    manage.carry_out(plan)
    assert "is: gpu 0003:00:00.0" in (plan.failure or "")
    assert machine.edits() == {"env": ["STEADYGPU_NCCL_TOPOLOGY=withdrawn"]}


def test_a_withdrawn_topology_comes_back_with_the_tree(machine: Machine) -> None:
    machine.apply()
    _moved(machine)
    machine.apply()
    machine.fake.remove("0003:00:00.0")
    machine.fake.add(["0003:00:00.0"])
    assert machine.apply().failure is None
    assert "NCCL_TOPO_FILE" in machine.edits()["env"][0]


_STEPS = ("open", "fsync", "fchmod", "replace", "unlink", "makedirs", "symlink")


def _killed_at(step: int, plan: manage.Plan) -> bool:
    """Carry out in a child that is killed before its ``step``-th call. False: it finished."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # fork beside pytest's threads
        child = os.fork()
    if child == 0:
        count = 0

        def counted(call: Any) -> Any:
            def counting(*arguments: Any, **keywords: Any) -> Any:
                nonlocal count
                count += 1
                if count == step:
                    os.kill(os.getpid(), signal.SIGKILL)
                return call(*arguments, **keywords)

            return counting

        try:
            for name in _STEPS:
                setattr(os, name, counted(getattr(os, name)))
            manage.carry_out(plan)
            os._exit(0)
        finally:
            os._exit(1)
    _pid, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return True
    assert os.WEXITSTATUS(status) == 0
    return False


def _is_whole(machine: Machine) -> bool:
    """Nothing is injected, or the file that is injected is there, stamped and complete.

    And the unit never outlives what it guards, nor is enabled before it is written.
    """
    if machine.unit.exists() and not machine.spec.exists():
        return False
    if machine.enabled and not machine.unit.exists():
        return False
    if carrier.state(machine.spec.read_text() if machine.spec.exists() else None) != "injected":
        return True
    stamp, body = fingerprint.split(machine.file.read_text())
    return stamp is not None and body.endswith("</system>\n")


def _plan_for(machine: Machine, change: str) -> manage.Plan:
    if change == "install":
        return machine.plan()
    machine.apply()
    if change == "remove":
        return manage.plan_absent(host.read(machine.fake.root), machine.wanted)
    if change == "replace":
        return machine.plan(content=CONTENT.replace("16 GT/s", "32 GT/s"))
    _moved(machine)
    return machine.plan()


@pytest.mark.parametrize("change", ["install", "replace", "withdraw", "remove"])
def test_kill_9_at_every_step(tmp_path: Path, change: str) -> None:
    """Between any two steps the pair is whole, and the next run gets where this one would."""
    step, killed = 0, True
    while killed:
        step += 1
        machine = Machine(tmp_path / str(step))
        plan = _plan_for(machine, change)
        killed = _killed_at(step, plan)
        assert _is_whole(machine)
        if change == "remove":
            manage.carry_out(manage.plan_absent(host.read(machine.fake.root), machine.wanted))
            assert [machine.spec.exists(), machine.file.exists()] == [False, False]
            assert [machine.unit.exists(), machine.enabled] == [False, False]
        else:
            machine.apply(content=plan.wanted.content)
            assert machine.spec.read_text() == plan.spec_after
            assert machine.file.read_text() == plan.after
            assert machine.unit.exists()
            assert machine.enabled
    assert step > {"install": 14, "replace": 4, "withdraw": 4, "remove": 7}[change]
