# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils import vouched
from ansible_collections.steadygpu.host.plugins.module_utils.process import Completed
from ansible_collections.steadygpu.host.plugins.module_utils.slices import (
    manage,
    reader,
    refusals,
    reload,
)
from ansible_collections.steadygpu.host.plugins.module_utils.slices.effective import Machine
from ansible_collections.steadygpu.host.plugins.module_utils.slices.manage import (
    ensure_absent,
    ensure_present,
)
from ansible_collections.steadygpu.host.plugins.module_utils.slices.model import SliceError, Wish
from ansible_collections.steadygpu.host.plugins.module_utils.slices.properties import (
    parse_properties,
)
from ansible_collections.steadygpu.host.plugins.module_utils.slices.quantities import parse_size
from ansible_collections.steadygpu.host.plugins.module_utils.slices.squeeze import MemoryUse
from ansible_collections.steadygpu.host.plugins.module_utils.slices.unit_text import assignments

NAME = "ai-workload.slice"
GROUP = "/ai.slice/ai-workload.slice"
MACHINE = Machine(2 << 30, 0, 15000, 4096, {}, False, False)


def _bytes(text: str) -> str:
    return str(parse_size(text)) if text != "max" else text


class Systemd:
    """A pretended systemd and kernel: TasksMax= ends in pids.max.

    As seen with systemd 257, the start of a slice applies its file and set-property applies
    a value at once, while a daemon-reload alone changes no cgroup.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.loaded: str | None = None
        self.active = False
        self.reloads = 0
        self.kernel: dict[str, str] = {}
        self.stubborn: str | None = None
        self.inside: dict[str, list[int]] = {}
        self.complaint = ""
        self.endangered: list[str] = []
        self.use: MemoryUse | None = None

    def file(self) -> str | None:
        return self.path.read_text() if self.path.exists() else None

    def show(self, _unit: str, _properties: Sequence[str]) -> dict[str, str]:
        if self.loaded is None:
            self.loaded = self.file()
        return {
            "ActiveState": "active" if self.active else "inactive",
            "ControlGroup": GROUP if self.active else "",
            "FragmentPath": str(self.path) if self.loaded is not None else "",
            "NeedDaemonReload": "yes" if self.loaded != self.file() else "no",
        }

    def daemon_reload(self) -> None:
        self.reloads += 1
        self.loaded = self.file()

    def act(self, verb: str, _unit: str) -> None:
        self.active = verb == "start"
        self.kernel = dict(assignments(self.file() or "")) if self.active else {}

    def slice_files(self, _group: str) -> dict[str, str | None]:
        return {
            "pids.max": self.stubborn or self.kernel.get("TasksMax") or "max",
            "memory.max": _bytes(self.kernel.get("MemoryMax") or "max"),
            "memory.high": _bytes(self.kernel.get("MemoryHigh") or "max"),
        }

    def run(self, argv: Sequence[str], **_more: Any) -> Completed:
        if argv[0] == "systemd-analyze":
            said = f"{argv[2]}:3: {self.complaint}\n" if self.complaint else ""
            return Completed(argv, 0, "", said)
        key, _equals, value = argv[-1].partition("=")
        self.kernel[key] = value
        return Completed(argv, 0, "", "")


@pytest.fixture
def systemd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Systemd:
    pretended = Systemd(tmp_path / NAME)
    monkeypatch.setattr(manage.units, "show", pretended.show)
    monkeypatch.setattr(manage.units, "act", pretended.act)
    monkeypatch.setattr(manage.units, "daemon_reload", pretended.daemon_reload)
    monkeypatch.setattr(manage, "run", pretended.run)
    monkeypatch.setattr(refusals, "run", pretended.run)
    monkeypatch.setattr(reload, "endangered", lambda: pretended.endangered)
    monkeypatch.setattr(reader, "memory_use", lambda _group: pretended.use)
    monkeypatch.setattr(reader, "has_systemd", lambda: True)
    monkeypatch.setattr(reader, "cgroup_fault", lambda: None)
    monkeypatch.setattr(reader, "machine", lambda _settings: MACHINE)
    monkeypatch.setattr(reader, "slice_files", pretended.slice_files)
    monkeypatch.setattr(reader, "processes", lambda _group: pretended.inside)
    monkeypatch.setattr(reader, "drop_ins", lambda _name: {})
    monkeypatch.setattr(reader, "control_drop_ins", lambda _name: {})
    return pretended


def wish(systemd: Systemd, tasks: int = 512, **more: Any) -> Wish:
    settings = parse_properties({"TasksMax": tasks})
    return Wish(NAME, "Training", settings, str(systemd.path.parent), **more)


def test_a_new_slice_is_written_started_and_read_back_without_a_reload(systemd: Systemd) -> None:
    outcome = ensure_present(wish(systemd), check_mode=False)
    assert outcome.actions == [f"write {systemd.path}", f"start {NAME}"]
    assert outcome.effective == {"TasksMax": "512"}
    assert outcome.control_group == GROUP
    assert systemd.reloads == 0


def test_the_unit_file_is_vouched_for_when_it_comes_and_when_it_goes(systemd: Systemd) -> None:
    ensure_present(wish(systemd), check_mode=False)
    written = hashlib.sha256(systemd.path.read_bytes()).hexdigest()
    ensure_absent(wish(systemd), check_mode=False)
    assert vouched.since(0)[str(systemd.path)] == [written, "absent"]


def test_a_slice_that_cannot_be_vouched_for_is_neither_written_nor_stopped(
    systemd: Systemd, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    ledger = tmp_path / "ledger"
    ledger.mkdir()
    (ledger / "sequence").write_text("damaged")
    with monkeypatch.context() as patch:
        patch.setattr(vouched, "_ledger", lambda _root: str(ledger / "vouched.jsonl"))
        with pytest.raises(SliceError, match=r"sequence(?s:.*)as it was before"):
            ensure_present(wish(systemd), check_mode=False)
    assert (systemd.file(), systemd.active) == (None, False)
    ensure_present(wish(systemd), check_mode=False)
    monkeypatch.setattr(vouched, "_ledger", lambda _root: str(ledger / "vouched.jsonl"))
    with pytest.raises(SliceError, match="sequence"):
        ensure_absent(wish(systemd), check_mode=False)
    assert systemd.file() is not None
    assert systemd.active


def test_a_lasting_value_that_is_repaired_is_vouched_for_as_systemd_wrote_it(
    systemd: Systemd, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = "/etc/systemd/system.control/ai-workload.slice.d/50-TasksMax.conf"
    ensure_present(wish(systemd), check_mode=False)
    monkeypatch.setattr(reader, "control_drop_ins", lambda _name: {path: "[Slice]\nTasksMax=9\n"})
    systemd.kernel["TasksMax"] = "9"
    read = manage.read_text
    text = "[Slice]\nTasksMax=512\n"
    monkeypatch.setattr(manage, "read_text", lambda asked: text if asked == path else read(asked))
    ensure_present(wish(systemd), check_mode=False)
    assert vouched.since(0)[path] == [hashlib.sha256(text.encode()).hexdigest()]


def test_the_second_run_does_nothing(systemd: Systemd) -> None:
    ensure_present(wish(systemd), check_mode=False)
    again = ensure_present(wish(systemd), check_mode=False)
    assert (again.changed, again.diff) == (False, [])


def test_a_changed_value_needs_a_reload(systemd: Systemd) -> None:
    ensure_present(wish(systemd), check_mode=False)
    foreseen = ensure_present(wish(systemd, 600), check_mode=True)
    outcome = ensure_present(wish(systemd, 600), check_mode=False)
    assert outcome.actions == foreseen.actions
    assert outcome.actions == [
        f"write {systemd.path}",
        manage.RELOAD,
        f"set TasksMax=600 on {NAME} (it was 512)",
    ]
    assert outcome.effective == {"TasksMax": "600"}
    assert outcome.warnings == []


def test_a_property_that_is_no_longer_asked_for_is_reset(systemd: Systemd) -> None:
    ensure_present(wish(systemd), check_mode=False)
    without = Wish(NAME, "Training", {}, str(systemd.path.parent))
    foreseen = ensure_present(without, check_mode=True)
    outcome = ensure_present(without, check_mode=False)
    assert outcome.actions == foreseen.actions
    assert outcome.actions[-1] == f"reset TasksMax on {NAME}"
    assert systemd.slice_files("")["pids.max"] == "max"
    assert not ensure_present(without, check_mode=False).changed


def test_check_mode_changes_nothing_and_foretells_the_actions(systemd: Systemd) -> None:
    foreseen = ensure_present(wish(systemd), check_mode=True)
    assert not systemd.path.exists()
    assert not systemd.active
    assert foreseen.actions == ensure_present(wish(systemd), check_mode=False).actions
    assert "TasksMax=512" in foreseen.diff[0]["after"]


def test_a_drifted_value_is_set_again(systemd: Systemd) -> None:
    ensure_present(wish(systemd), check_mode=False)
    systemd.kernel["TasksMax"] = "9"
    foreseen = ensure_present(wish(systemd), check_mode=True)
    assert systemd.kernel["TasksMax"] == "9"
    outcome = ensure_present(wish(systemd), check_mode=False)
    assert outcome.actions == foreseen.actions == [f"set TasksMax=512 on {NAME} (it was 9)"]
    assert outcome.effective == {"TasksMax": "512"}
    assert not ensure_present(wish(systemd), check_mode=False).changed


def test_a_run_that_died_before_its_reload_is_finished_by_the_next(systemd: Systemd) -> None:
    ensure_present(wish(systemd), check_mode=False)
    systemd.path.write_text(systemd.path.read_text().replace("512", "600"))
    outcome = ensure_present(wish(systemd, 600), check_mode=False)
    assert outcome.actions == [manage.RELOAD, f"set TasksMax=600 on {NAME} (it was 512)"]
    assert outcome.effective == {"TasksMax": "600"}


def test_a_value_the_kernel_does_not_take_restores_the_host(systemd: Systemd) -> None:
    ensure_present(wish(systemd), check_mode=False)
    before = systemd.file()
    systemd.stubborn = "512"
    with pytest.raises(SliceError, match=r"TasksMax: seen 512, wanted 600(?s:.*)as it was before"):
        ensure_present(wish(systemd, 600), check_mode=False)
    assert systemd.file() == systemd.loaded == before
    assert systemd.kernel["TasksMax"] == "512"
    assert systemd.active


def test_a_new_slice_that_does_not_come_leaves_nothing(systemd: Systemd) -> None:
    systemd.stubborn = "max"
    with pytest.raises(SliceError, match="seen infinity, wanted 512"):
        ensure_present(wish(systemd), check_mode=False)
    assert systemd.file() is None
    assert not systemd.active


def test_what_systemd_would_ignore_never_reaches_the_host(systemd: Systemd) -> None:
    systemd.complaint = "Unknown key 'TasksMax' in section [Slice], ignoring."
    with pytest.raises(SliceError, match="line 3: Unknown key"):
        ensure_present(wish(systemd), check_mode=False)
    assert systemd.file() is None


def test_somebody_elses_unit_is_left_alone_unless_asked(systemd: Systemd) -> None:
    systemd.path.write_text("[Slice]\nTasksMax=7\n")
    for ensure in (ensure_present, ensure_absent):
        with pytest.raises(SliceError, match="takeover"):
            ensure(wish(systemd), False)
    assert systemd.file() == "[Slice]\nTasksMax=7\n"
    assert ensure_present(wish(systemd, takeover=True), False).effective == {"TasksMax": "512"}


def test_a_drop_in_that_wins_is_named(systemd: Systemd, monkeypatch: pytest.MonkeyPatch) -> None:
    path = "/etc/systemd/system/ai-workload.slice.d/mine.conf"
    monkeypatch.setattr(reader, "drop_ins", lambda _name: {path: "[Slice]\nTasksMax=7\n"})
    with pytest.raises(SliceError, match=r"mine\.conf sets TasksMax=7 \(wanted 512\)"):
        ensure_present(wish(systemd), check_mode=False)


def test_a_slice_in_use_is_not_stopped(systemd: Systemd) -> None:
    ensure_present(wish(systemd), check_mode=False)
    systemd.inside = {"docker-abc.scope": [41]}
    for check_mode in (True, False):
        with pytest.raises(SliceError, match=r"docker-abc\.scope: 41"):
            ensure_absent(wish(systemd), check_mode)
    assert systemd.active
    assert systemd.file() is not None


def test_an_empty_slice_goes_and_stays_gone(systemd: Systemd) -> None:
    ensure_present(wish(systemd), check_mode=False)
    outcome = ensure_absent(wish(systemd), check_mode=False)
    assert outcome.actions[:2] == [f"stop {NAME}", f"delete {systemd.path}"]
    assert (systemd.active, systemd.file()) == (False, None)
    assert not ensure_absent(wish(systemd), check_mode=False).changed


def test_without_systemd_check_mode_foretells_and_a_real_run_refuses(
    systemd: Systemd, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "has_systemd", lambda: False)
    assert ensure_present(wish(systemd), check_mode=True).actions[-1] == f"start {NAME}"
    with pytest.raises(SliceError, match="systemd is not running"):
        ensure_present(wish(systemd), check_mode=False)
    assert systemd.file() is None


@pytest.mark.parametrize("check_mode", [True, False])
def test_no_reload_while_a_container_could_lose_its_gpu(systemd: Systemd, check_mode: bool) -> None:
    ensure_present(wish(systemd), check_mode=False)
    before = systemd.file()
    systemd.endangered = ["container training", "container notebook"]
    with pytest.raises(SliceError, match="training, container notebook") as refused:
        ensure_present(wish(systemd, 600), check_mode)
    for way_out in ("CDI devices", "have ended", "daemon_reload_anyway: true"):
        assert way_out in str(refused.value)
    assert (systemd.file(), systemd.reloads, systemd.kernel["TasksMax"]) == (before, 0, "512")


def test_the_reload_can_be_asked_for_and_then_warns(systemd: Systemd) -> None:
    ensure_present(wish(systemd), check_mode=False)
    systemd.endangered = ["container training"]
    outcome = ensure_present(wish(systemd, 600, daemon_reload_anyway=True), check_mode=False)
    assert (systemd.reloads, outcome.effective) == (1, {"TasksMax": "600"})
    assert "container training" in outcome.warnings[0]


def test_what_needs_no_reload_is_done_beside_such_a_container(systemd: Systemd) -> None:
    systemd.endangered = ["container training"]
    assert ensure_present(wish(systemd), check_mode=False).effective == {"TasksMax": "512"}
    systemd.kernel["TasksMax"] = "9"
    assert ensure_present(wish(systemd), check_mode=False).effective == {"TasksMax": "512"}
    assert ensure_absent(wish(systemd), check_mode=False).changed
    assert (systemd.file(), systemd.reloads) == (None, 0)


def test_a_deleted_unit_that_systemd_still_knows_waits_for_the_next_reload(
    systemd: Systemd, monkeypatch: pytest.MonkeyPatch
) -> None:
    ensure_present(wish(systemd), check_mode=False)
    systemd.endangered = ["container training"]
    outcome = ensure_absent(wish(systemd), check_mode=False)
    assert (systemd.file(), systemd.reloads) == (None, 0)
    assert "next daemon-reload" in outcome.warnings[0]


def test_the_way_back_reloads_nothing_that_would_hurt(systemd: Systemd) -> None:
    systemd.endangered = ["container training"]
    systemd.stubborn = "max"
    with pytest.raises(SliceError, match=r"next daemon-reload only(?s:.*)container training"):
        ensure_present(wish(systemd), check_mode=False)
    assert (systemd.file(), systemd.reloads) == (None, 0)


def memory(systemd: Systemd, **properties: str) -> Wish:
    return Wish(NAME, "Training", parse_properties(properties), str(systemd.path.parent))


@pytest.mark.parametrize("check_mode", [True, False])
def test_a_memory_limit_below_the_current_use_kills_nobody(
    systemd: Systemd, check_mode: bool
) -> None:
    ensure_present(memory(systemd, MemoryMax="1G"), check_mode=False)
    before = systemd.file()
    systemd.use = MemoryUse(700 << 20, 5 << 20, 100 << 20, None, 1 << 30)
    with pytest.raises(SliceError, match="MemoryMax=512M is below what") as refused:
        ensure_present(memory(systemd, MemoryMax="512M"), check_mode)
    said = str(refused.value)
    assert "700M of memory (100M of it page cache" in said
    assert "5M of swap" in said
    assert "below_current_use: true" in said
    assert (systemd.file(), systemd.kernel["MemoryMax"]) == (before, "1G")


def test_a_percentage_is_a_limit_too_and_the_first_limit_lowers(systemd: Systemd) -> None:
    ensure_present(memory(systemd), check_mode=False)
    systemd.use = MemoryUse(700 << 20)
    with pytest.raises(SliceError, match="MemoryMax=25% is below"):
        ensure_present(memory(systemd, MemoryMax="25%"), check_mode=True)


def test_a_tight_memory_limit_can_be_asked_for(systemd: Systemd) -> None:
    ensure_present(memory(systemd, MemoryMax="1G"), check_mode=False)
    systemd.use = MemoryUse(700 << 20, maximum=1 << 30)
    tight = dataclasses.replace(memory(systemd, MemoryMax="512M"), below_current_use=True)
    assert ensure_present(tight, check_mode=False).effective == {"MemoryMax": "512M"}


@pytest.mark.parametrize(
    "use", [MemoryUse(400 << 20, maximum=1 << 30), MemoryUse(700 << 20, maximum=512 << 20), None]
)
def test_a_limit_that_squeezes_nobody_is_set(systemd: Systemd, use: MemoryUse | None) -> None:
    ensure_present(memory(systemd, MemoryMax="1G"), check_mode=False)
    systemd.use = use
    outcome = ensure_present(memory(systemd, MemoryMax="512M"), check_mode=False)
    assert outcome.effective == {"MemoryMax": "512M"}


def test_a_soft_limit_below_the_current_use_is_set_with_a_warning(systemd: Systemd) -> None:
    ensure_present(memory(systemd, MemoryHigh="1G"), check_mode=False)
    systemd.use = MemoryUse(700 << 20, high=1 << 30)
    outcome = ensure_present(memory(systemd, MemoryHigh="512M"), check_mode=False)
    assert outcome.effective == {"MemoryHigh": "512M"}
    assert "throttled" in outcome.warnings[0]
