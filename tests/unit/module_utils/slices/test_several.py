# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Several slices together, with a pretended systemd that starts what its file says."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.process import Completed
from ansible_collections.steadygpu.host.plugins.module_utils.settings import record
from ansible_collections.steadygpu.host.plugins.module_utils.slices import (
    manage,
    proof,
    reader,
    refusals,
    reload,
    several,
)
from ansible_collections.steadygpu.host.plugins.module_utils.slices.effective import Machine
from ansible_collections.steadygpu.host.plugins.module_utils.slices.model import SliceError, Wish
from ansible_collections.steadygpu.host.plugins.module_utils.slices.properties import (
    parse_properties,
)
from ansible_collections.steadygpu.host.plugins.module_utils.slices.unit_text import assignments

MACHINE = Machine(2 << 30, 0, 15000, 4096, {}, False, False)


class Host:
    """Unit files below ``root``, cgroups of the active slices, and who lives in them."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.units = root / "etc/systemd/system"
        self.units.mkdir(parents=True)
        self.active: dict[str, dict[str, str]] = {}
        self.inside: set[str] = set()
        self.refused = ""
        self.asked: list[str] = []

    def show(self, name: str, _properties: Sequence[str]) -> dict[str, str]:
        path = self.units / name
        return {
            "ActiveState": "active" if name in self.active else "inactive",
            "ControlGroup": proof.place(name) if name in self.active else "",
            "FragmentPath": str(path) if path.exists() else "",
            "NeedDaemonReload": "no",
        }

    def act(self, verb: str, name: str) -> None:
        if verb == "stop":
            del self.active[name]
        else:
            self.active[name] = dict(assignments((self.units / name).read_text()))

    def files(self, group: str) -> dict[str, str | None]:
        held = self.active.get(group.rpartition("/")[2], {})
        tasks = held.get("TasksMax") or "max"
        return {"pids.max": "13" if tasks == self.refused else tasks}

    def run(self, argv: Sequence[str], **_more: Any) -> Completed:
        self.asked.append(argv[0])
        if argv[1] == "set-property":
            key, _equals, value = argv[-1].partition("=")
            self.active[argv[-2]][key] = value
        return Completed(argv, 0, "", "")

    def processes(self, group: str) -> dict[str, list[int]]:
        name = group.rpartition("/")[2]
        below = [one for one in self.inside if proof.place(one).startswith(proof.place(name))]
        return {one: [1] for one in below}

    def keep(self, tasks: dict[str, int], check_mode: bool = False, **more: Any) -> Any:
        wishes = [
            Wish(name, "x", parse_properties({"TasksMax": count}), str(self.units))
            for name, count in tasks.items()
        ]
        return several.ensure_slices(wishes, check_mode, root=str(self.root), **more)

    def names(self) -> list[str]:
        return sorted(path.name for path in self.units.glob("*.slice"))


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    pretended = Host(tmp_path)
    monkeypatch.setattr(manage.units, "show", pretended.show)
    monkeypatch.setattr(manage.units, "act", pretended.act)
    monkeypatch.setattr(manage.units, "daemon_reload", lambda: None)
    monkeypatch.setattr(manage, "run", pretended.run)
    monkeypatch.setattr(refusals, "run", pretended.run)
    monkeypatch.setattr(reload, "endangered", list)
    for reading in ("memory_use", "task_use", "cgroup_fault"):
        monkeypatch.setattr(reader, reading, lambda *_group: None)
    monkeypatch.setattr(reader, "protection_above", lambda _group: {})
    monkeypatch.setattr(reader, "has_systemd", lambda: True)
    monkeypatch.setattr(reader, "machine", lambda _settings: MACHINE)
    monkeypatch.setattr(reader, "slice_files", pretended.files)
    monkeypatch.setattr(reader, "processes", pretended.processes)
    monkeypatch.setattr(reader, "process_name", lambda _pid: "python3")
    monkeypatch.setattr(reader, "drop_ins", lambda _name: {})
    monkeypatch.setattr(reader, "control_drop_ins", lambda _name: {})
    return pretended


TREE = {"gpu-batch.slice": 5, "gpu.slice": 9}


def test_parents_come_first_and_a_second_run_changes_nothing(host: Host) -> None:
    together = host.keep(TREE)
    started = [action for action in together.actions if action.startswith("start")]
    assert started == ["start gpu.slice", "start gpu-batch.slice"]
    assert [one.verdict for one in together.verdicts] == ["effective", "effective"]
    assert (
        "Wants=gpu.slice gpu-batch.slice" in (host.units / "steadygpu-slices.service").read_text()
    )
    host.asked.clear()
    again = host.keep(TREE)
    assert again.actions == []
    assert [one.verdict for one in again.verdicts] == ["effective", "effective"]
    assert host.asked == []


def test_what_is_not_named_any_more_goes_and_nothing_is_left(host: Host) -> None:
    host.keep(TREE)
    assert "stop gpu-batch.slice" in host.keep({"gpu.slice": 9}).actions
    assert host.names() == ["gpu.slice"]
    assert "remove" in host.keep({}).actions[-1]
    assert host.names() == []
    assert record.owners(str(host.root)) == []
    assert list(host.units.rglob("steadygpu-*")) == []
    assert host.keep({}).actions == []


def test_a_slice_with_somebody_inside_stays_with_a_warning_until_it_is_empty(host: Host) -> None:
    host.keep(TREE)
    host.inside = {"gpu-batch.slice"}
    together = host.keep({})
    assert host.names() == ["gpu-batch.slice", "gpu.slice"]
    assert any("gpu-batch.slice stays until it is empty" in one for one in together.warnings)
    assert set(host.active) == {"gpu.slice", "gpu-batch.slice"}
    assert host.keep({}).actions == []
    host.inside = set()
    host.keep({})
    assert host.names() == []


def test_a_parent_that_is_not_wanted_any_more_goes_on_without_limits(host: Host) -> None:
    host.keep(TREE)
    host.keep({"gpu-batch.slice": 5})
    assert "TasksMax" not in (host.units / "gpu.slice").read_text()
    assert host.keep({"gpu-batch.slice": 5}).actions == []
    host.keep({})
    assert host.names() == []


def test_slices_of_others_are_never_taken_back(host: Host) -> None:
    theirs = host.units / "own.slice"
    theirs.write_text("[Slice]\n")
    host.keep(TREE)
    host.keep({})
    assert host.names() == ["own.slice"]
    with pytest.raises(SliceError, match="was not written by this module"):
        host.keep({"gpu.slice": 9, "own.slice": 3})
    assert host.names() == ["own.slice"]


def test_a_fault_of_one_is_seen_before_the_first_is_touched(host: Host) -> None:
    (host.units / "z.slice").write_text("[Slice]\n")
    with pytest.raises(SliceError):
        host.keep({"a.slice": 1, "z.slice": 2})
    assert host.active == {}


def test_what_the_kernel_does_not_hold_is_an_error_that_names_what_is_done(host: Host) -> None:
    host.refused = "5"
    with pytest.raises(SliceError, match=r"Done before: gpu\.slice"):
        host.keep(TREE)
    assert host.names() == ["gpu.slice"]
    # Both are remembered, so that the next run or a switched off role takes them back.
    host.refused = ""
    host.keep({})
    assert host.names() == []


def test_check_mode_tells_it_all_and_does_nothing(host: Host) -> None:
    foreseen = host.keep(TREE, check_mode=True).actions
    assert host.names() == []
    assert record.owners(str(host.root)) == []
    assert foreseen == host.keep(TREE).actions
    foreseen = host.keep({}, check_mode=True).actions
    assert host.names() == ["gpu-batch.slice", "gpu.slice"]
    assert foreseen == host.keep({}).actions


def test_dockers_parent_is_remembered_until_its_key_is_taken_back(host: Host) -> None:
    host.keep(TREE, docker_parent=True)
    assert host.keep({}, docker_owns_parent=True).docker_parent_is_ours
    assert record.owners(str(host.root)) == ["slices"]
    assert not host.keep({}).docker_parent_is_ours
    assert record.owners(str(host.root)) == []


def test_a_cgroup_parent_of_somebody_else_is_not_ours(tmp_path: Path) -> None:
    path = tmp_path / "docker_daemon.json"
    assert not several.docker_key_is_ours(str(path))
    path.write_text(json.dumps({"owned": [{"key": ["debug"]}]}))
    assert not several.docker_key_is_ours(str(path))
    path.write_text(json.dumps({"owned": [{"key": ["cgroup-parent"]}]}))
    assert several.docker_key_is_ours(str(path))
    path.write_text("[]")
    assert not several.docker_key_is_ours(str(path))


@pytest.mark.parametrize("check_mode", [True, False])
def test_a_boot_unit_of_somebody_else_is_seen_before_the_first_slice(
    host: Host, check_mode: bool
) -> None:
    (host.units / "steadygpu-slices.service").symlink_to("/dev/null")
    with pytest.raises(SliceError, match="systemctl unmask"):
        host.keep(TREE, check_mode)
    assert host.names() == []
    assert host.keep({}, check_mode).actions == []


@pytest.mark.parametrize("check_mode", [True, False])
def test_the_partition_of_the_role_realtime_is_not_taken(host: Host, check_mode: bool) -> None:
    kept = record.Record("realtime", extra={"partition_slices": ["realtime.slice"]})
    record.save(kept, str(host.root))
    with pytest.raises(SliceError, match=r"realtime\.slice is the CPU partition"):
        host.keep({"realtime.slice": 5}, check_mode)
    assert host.names() == []
    assert host.keep(TREE).actions
