# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils import vouched
from ansible_collections.steadygpu.host.plugins.module_utils.rollback.model import (
    BEFORE_RESTORE,
    Host,
    Reason,
    RestoreOptions,
    RollbackError,
    Step,
    UnitState,
)
from ansible_collections.steadygpu.host.plugins.module_utils.rollback.storage.store import Store
from ansible_collections.steadygpu.host.plugins.module_utils.rollback.way_back import restore
from ansible_collections.steadygpu.host.tests.unit.module_utils.rollback.fake_host import (
    DAEMON,
    OWN,
    SYSCTL,
    FakeHost,
    scratch,
)

OPTIONS = RestoreOptions()
RUNNING = UnitState("loaded", "active", "enabled")


class Killed(BaseException):
    """Stands for SIGKILL: nothing catches it."""


@pytest.fixture
def host() -> Iterator[FakeHost]:
    with scratch() as root:
        fake = FakeHost(root)
        fake.theirs(DAEMON, "{}")
        fake.theirs(OWN, "old")
        fake.sysctls = {"vm.swappiness": "60"}
        fake.units = {"docker.service": RUNNING}
        yield fake


def take(host: FakeHost, *declared: str, settled: bool = False) -> str:
    store = host.store()
    with store.locked():
        state = host.observe(store.sink, declared)
        checkpoint = store.add(state, Reason(), host.machine(), declared)
    if settled:
        store.set_settled(checkpoint.id)
    return checkpoint.id


def change(host: FakeHost) -> None:
    """What a play does: files of every kind, a live value, a unit."""
    host.ours(DAEMON, '{"runtimes": {}}')
    host.ours(OWN, "new")
    host.ours(SYSCTL, "vm.swappiness = 1\n")
    host.sysctls = {"vm.swappiness": "1"}
    host.units = {"docker.service": replace(RUNNING, enabled="disabled")}


def tree(host: FakeHost) -> dict[str, str]:
    """All files but the store's."""
    top = Path(host.root)
    paths = (path for path in top.rglob("*") if path.is_file())
    return {
        str(path.relative_to(top)): path.read_text(encoding="utf-8", errors="replace")
        for path in paths
        if "rollback" not in path.parts
    }


class TestRestore:
    def test_all_is_as_before(self, host: FakeHost) -> None:
        before, state = tree(host), (dict(host.sysctls), dict(host.units))
        target = take(host)
        change(host)
        outcome = restore.restore(host.store(), target, OPTIONS, host)
        assert tree(host) == before
        assert (host.sysctls, host.units) == state
        assert outcome.changed
        assert outcome.checkpoint == target
        assert [outcome.left, outcome.conflicts, outcome.warnings] == [[], [], []]
        assert any(DAEMON in action for action in outcome.actions)

    def test_the_second_time_nothing_changes(self, host: FakeHost) -> None:
        target = take(host)
        change(host)
        restore.restore(host.store(), target, OPTIONS, host)
        outcome = restore.restore(host.store(), target, OPTIONS, host)
        assert not outcome.changed
        assert not outcome.actions

    def test_what_it_replaced_can_be_brought_back(self, host: FakeHost) -> None:
        target = take(host)
        change(host)
        changed = tree(host)
        store = host.store()
        restore.restore(store, target, OPTIONS, host)
        outcome = restore.restore(store, BEFORE_RESTORE, OPTIONS, host)
        assert tree(host) == changed
        assert not outcome.conflicts
        assert not outcome.left

    def test_done_once_more_for_what_was_left_it_can_still_be_undone_whole(
        self, host: FakeHost
    ) -> None:
        target = take(host)
        change(host)
        changed = tree(host)
        host.unknown = {"sysctls": "hangs"}
        restore.restore(host.store(), target, OPTIONS, host)
        host.unknown = {}
        assert restore.restore(host.store(), target, OPTIONS, host).changed
        restore.restore(host.store(), BEFORE_RESTORE, OPTIONS, host)
        assert tree(host) == changed

    def test_a_dry_run_writes_nothing_at_all(self, host: FakeHost) -> None:
        target = take(host)
        change(host)
        store = Path(host.store().directory)
        before = {path: path.stat().st_mtime_ns for path in Path(host.root).rglob("*")}
        outcome = restore.restore(host.store(), target, OPTIONS, host, dry_run=True)
        assert {path: path.stat().st_mtime_ns for path in Path(host.root).rglob("*")} == before
        assert store.is_dir()
        assert outcome.changed
        assert any(DAEMON in action for action in outcome.actions)

    def test_what_is_foreseen_is_what_comes(self, host: FakeHost) -> None:
        target = take(host)
        change(host)
        prospect = restore.foresee(host.store(), target, OPTIONS, host)
        digest = prospect.then.files[DAEMON].digest
        assert digest is not None
        assert prospect.content(digest) == b"{}"
        restore.restore(host.store(), target, OPTIONS, host)
        after = host.store().get(host.store().settled() or "").state
        assert after.sysctls == prospect.then.sysctls
        assert after.units == prospect.then.units
        there = {path: entry for path, entry in prospect.then.files.items() if entry.there}
        assert {path: entry for path, entry in after.files.items() if entry.there} == there

    def test_an_unknown_checkpoint_is_named(self, host: FakeHost) -> None:
        with pytest.raises(RollbackError, match="nonsense"):
            restore.restore(host.store(), "nonsense", OPTIONS, host)

    def test_another_machine_s_is_refused_before_anything_is_written(self, host: FakeHost) -> None:
        target = take(host)
        change(host)
        changed = tree(host)
        host.name = Host("fedcba", "gpu02")
        with pytest.raises(RollbackError, match="other_host"):
            restore.restore(host.store(), target, OPTIONS, host)
        assert tree(host) == changed
        assert host.store().restore_journal() is None

    def test_a_declared_directory_goes_back_whole(self, host: FakeHost) -> None:
        host.theirs("/srv/app/a", "1")
        target = take(host, "/srv/app", settled=True)
        host.ours("/srv/app/a", "2")
        host.ours("/srv/app/sub/b", "3")
        restore.restore(host.store(), target, OPTIONS, host)
        assert host.text("/srv/app/a") == "1"
        assert not host.at("/srv/app/sub").exists()

    def test_what_counts_at_the_next_boot_is_told(self, host: FakeHost) -> None:
        target = take(host)
        host.ours("/etc/modprobe.d/steadygpu-nvidia.conf", "options nvidia x=1")
        outcome = restore.restore(host.store(), target, OPTIONS, host)
        assert host.text("/etc/modprobe.d/steadygpu-nvidia.conf") is None
        assert any("next boot" in note for note in outcome.notes)

    def test_a_ledger_that_cannot_be_read_stops_before_anything_is_written(
        self, host: FakeHost
    ) -> None:
        target = take(host)
        host.theirs(DAEMON, '{"mine": 1}')
        Path(host.store().directory, "vouched.jsonl").mkdir()
        with pytest.raises(RollbackError, match="ledger"):
            restore.restore(host.store(), target, OPTIONS, host)
        assert host.text(DAEMON) == '{"mine": 1}'


class TestOthers:
    def test_a_file_that_only_the_user_changed_stays(self, host: FakeHost) -> None:
        target = take(host)
        host.theirs(DAEMON, '{"debug": true}')
        outcome = restore.restore(host.store(), target, OPTIONS, host)
        assert host.text(DAEMON) == '{"debug": true}'
        assert not outcome.changed
        assert [one.subject for one in outcome.left] == [DAEMON]

    def test_a_managed_file_that_the_user_changed_is_kept_beside(self, host: FakeHost) -> None:
        target = take(host)
        change(host)
        host.theirs(DAEMON, '{"mine": 1}')
        outcome = restore.restore(host.store(), target, OPTIONS, host)
        assert host.text(DAEMON) == "{}"
        assert host.kept(DAEMON) == ['{"mine": 1}']
        assert outcome.conflicts == [DAEMON]
        assert any("steadygpu-conflict" in warning for warning in outcome.warnings)

    def test_what_is_kept_beside_survives_the_next_restore(self, host: FakeHost) -> None:
        target = take(host)
        host.theirs(OWN, "mine")
        restore.restore(host.store(), target, OPTIONS, host)
        restore.restore(host.store(), target, OPTIONS, host)
        assert host.kept(OWN) == ["mine"]

    def test_a_user_s_file_in_a_directory_of_ours_keeps_the_directory(self, host: FakeHost) -> None:
        target = take(host)
        host.ours("/etc/cdi/steadygpu-a.yaml", "a")
        host.theirs("/etc/cdi/notes.txt", "theirs")
        restore.restore(host.store(), target, OPTIONS, host)
        assert host.text("/etc/cdi/steadygpu-a.yaml") is None
        assert host.text("/etc/cdi/notes.txt") == "theirs"

    def test_a_user_s_change_after_a_restore_stays_at_the_next(self, host: FakeHost) -> None:
        target = take(host)
        change(host)
        restore.restore(host.store(), target, OPTIONS, host)
        host.theirs(DAEMON, '{"mine": 1}')
        outcome = restore.restore(host.store(), target, OPTIONS, host)
        assert host.text(DAEMON) == '{"mine": 1}'
        assert [one.subject for one in outcome.left] == [DAEMON]


class TestInterrupted:
    def cut(self, host: FakeHost, kind: str) -> str:
        """A restore that is killed at a step; the id of its target."""
        target = take(host)
        change(host)

        def kill(step: Step) -> None:
            if step.kind == kind:
                raise Killed

        host.before_step = kill
        with pytest.raises(Killed):
            restore.restore(host.store(), target, OPTIONS, host)
        host.before_step = lambda step: None
        return target

    @pytest.mark.parametrize("kind", ["sysctl", "docker", "unit"])
    def test_it_is_ended_by_the_next_run(self, host: FakeHost, kind: str) -> None:
        before = tree(host)
        target = self.cut(host, kind)
        outcome = restore.resume(host.store(), host)
        assert outcome is not None
        assert outcome.checkpoint == target
        assert tree(host) == before
        assert host.store().restore_journal() is None

    def test_nothing_to_resume_is_told_and_makes_no_store(self, host: FakeHost) -> None:
        assert restore.resume(host.store(), host) is None
        assert not Path(host.store().directory).exists()

    def test_another_restore_ends_it_first(self, host: FakeHost) -> None:
        first = self.cut(host, "docker")
        outcome = restore.restore(host.store(), BEFORE_RESTORE, OPTIONS, host)
        assert any(first in note for note in outcome.notes)
        assert host.text(OWN) == "new"

    def test_an_edit_between_the_cut_and_the_next_run_is_kept(self, host: FakeHost) -> None:
        self.cut(host, "docker")
        host.theirs(DAEMON, '{"mine": 1}')
        outcome = restore.resume(host.store(), host)
        assert outcome is not None
        assert host.text(DAEMON) == "{}"
        assert host.kept(DAEMON) == ['{"mine": 1}']
        assert outcome.conflicts == [DAEMON]

    def test_a_text_in_between_that_we_vouched_for_is_no_conflict(self, host: FakeHost) -> None:
        self.cut(host, "docker")
        host.ours(DAEMON, '{"runtimes": {}, "default-runtime": "runc"}')
        outcome = restore.resume(host.store(), host)
        assert outcome is not None
        assert not outcome.conflicts
        assert not host.kept(DAEMON)

    def test_temporary_files_of_the_killed_run_are_swept(self, host: FakeHost) -> None:
        self.cut(host, "docker")
        left = host.at(OWN).with_name(".agent.yml.steadygpu-0123abcd")
        left.write_text("half", encoding="utf-8")
        restore.resume(host.store(), host)
        assert not left.exists()

    def test_a_target_that_is_gone_is_told_with_the_way_out(self, host: FakeHost) -> None:
        target = self.cut(host, "docker")
        Path(host.store().directory, "checkpoints", f"{target}.json").unlink()
        with pytest.raises(RollbackError, match=r"restore\.json"):
            restore.resume(host.store(), host)

    def test_on_a_copy_of_the_disk_in_another_machine_it_is_not_ended(self, host: FakeHost) -> None:
        self.cut(host, "docker")
        changed = tree(host)
        host.name = Host("another", "gpu02")
        with pytest.raises(RollbackError, match=r"another machine.*restore\.json"):
            restore.resume(host.store(), host)
        assert tree(host) == changed


class TestFailures:
    @pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EDQUOT])
    def test_a_disk_that_cannot_be_written_stops_all_and_can_be_resumed(
        self, host: FakeHost, monkeypatch: pytest.MonkeyPatch, number: int
    ) -> None:
        before = tree(host)
        target = take(host)
        change(host)
        rename: Callable[..., None] = os.rename

        def fail(source: str, place: str, **directories: int) -> None:
            if place == os.path.basename(DAEMON):
                raise OSError(number, os.strerror(number))
            rename(source, place, **directories)

        monkeypatch.setattr(os, "rename", fail)
        with pytest.raises(RollbackError, match="steadygpu checkpoint resume"):
            restore.restore(host.store(), target, OPTIONS, host)
        assert host.text(DAEMON) == '{"runtimes": {}}'
        monkeypatch.undo()
        assert restore.resume(host.store(), host) is not None
        assert tree(host) == before

    def test_no_room_to_vouch_stops_before_anything_is_written(
        self, host: FakeHost, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        target = take(host)
        change(host)
        changed = tree(host)

        def full(*unused: object, **ignored: object) -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        monkeypatch.setattr(vouched, "vouch_digests", full)
        with pytest.raises(RollbackError, match="resume"):
            restore.restore(host.store(), target, OPTIONS, host)
        assert tree(host) == changed

    def test_a_step_that_fails_is_told_and_the_rest_goes_back(self, host: FakeHost) -> None:
        target = take(host)
        change(host)

        def fail(step: Step) -> None:
            if step.kind == "unit":
                raise RollbackError("systemd does not answer")

        host.before_step = fail
        outcome = restore.restore(host.store(), target, OPTIONS, host)
        assert host.text(DAEMON) == "{}"
        assert host.sysctls == {"vm.swappiness": "60"}
        (left,) = outcome.left
        assert (left.subject, left.reason) == ("docker.service", "systemd does not answer")
        assert any("systemd does not answer" in warning for warning in outcome.warnings)
        assert host.store().pending() == [left]

    def test_a_step_that_fails_as_nobody_foresaw_does_not_bar_the_way(self, host: FakeHost) -> None:
        before = tree(host)
        target = take(host)
        change(host)

        def fail(step: Step) -> None:
            if step.kind == "sysctl":
                raise KeyError("value")

        host.before_step = fail
        outcome = restore.restore(host.store(), target, OPTIONS, host)
        assert tree(host) == before
        assert host.store().restore_journal() is None
        assert [one.reason for one in outcome.left] == ["KeyError: 'value'"]

    def test_no_room_for_how_it_ended_is_told_and_can_be_resumed(
        self, host: FakeHost, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        before = tree(host)
        target = take(host)
        change(host)

        def full(*unused: object) -> None:
            raise RollbackError("no space left")

        monkeypatch.setattr(Store, "write_pending", full)
        with pytest.raises(RollbackError, match=r"every step.*no space left.*resume"):
            restore.restore(host.store(), target, OPTIONS, host)
        monkeypatch.undo()
        assert restore.resume(host.store(), host) is not None
        assert tree(host) == before
        assert host.store().restore_journal() is None

    def test_damaged_content_is_told_and_the_file_stays(self, host: FakeHost) -> None:
        target = take(host)
        digest = host.store().get(target).state.files[OWN].digest or ""
        Path(host.store().directory, "objects", digest[:1], digest[1:]).write_text("damaged")
        change(host)
        outcome = restore.restore(host.store(), target, OPTIONS, host)
        assert host.text(OWN) == "new"
        assert host.text(DAEMON) == "{}"
        assert [one.subject for one in outcome.left] == [OWN]
        assert "damaged" in outcome.left[0].reason

    def test_what_waits_for_a_restart_is_pending_until_it_is_done(self, host: FakeHost) -> None:
        target = take(host)
        change(host)
        host.pending = {DAEMON: "takes effect at Docker's next restart"}
        outcome = restore.restore(host.store(), target, OPTIONS, host)
        assert [one.subject for one in outcome.left] == [DAEMON]
        assert [one.subject for one in host.store().pending()] == [DAEMON]
        restore.restore(host.store(), target, OPTIONS, host)
        assert [one.subject for one in host.store().pending()] == [DAEMON]
        host.pending = {}
        assert not restore.restore(host.store(), target, OPTIONS, host).changed
        assert host.store().pending() == []

    def test_what_was_left_cannot_be_read_and_the_way_back_is_free(self, host: FakeHost) -> None:
        target = take(host)
        change(host)
        Path(host.store().directory, "pending.json").write_text("damaged")
        restore.restore(host.store(), target, OPTIONS, host)
        assert host.store().pending() == []

    def test_a_step_that_did_not_do_what_it_promised_is_told(self, host: FakeHost) -> None:
        target = take(host)
        change(host)

        def undo_again(step: Step) -> None:
            if step.kind == "unit":
                host.sysctls["vm.swappiness"] = "7"

        host.before_step = undo_again
        outcome = restore.restore(host.store(), target, OPTIONS, host)
        assert [one.subject for one in outcome.left] == ["vm.swappiness"]
        assert "is 7" in outcome.left[0].reason
