# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils import vouched
from ansible_collections.steadygpu.host.plugins.module_utils.slices import (
    manage,
    reader,
)
from ansible_collections.steadygpu.host.plugins.module_utils.slices.manage import (
    ensure_absent,
    ensure_present,
)
from ansible_collections.steadygpu.host.plugins.module_utils.slices.model import SliceError, Wish

from .pretended import GROUP, NAME, Systemd, wish


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
