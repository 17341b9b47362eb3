# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.steadygpu.host.plugins.module_utils.rollback import window
from ansible_collections.steadygpu.host.plugins.module_utils.rollback.model import (
    BEFORE_CHANGE,
    BEFORE_RESTORE,
    STABLE,
    Host,
    Left,
    Outcome,
    Reason,
    RestoreOptions,
    RollbackError,
    Step,
    UnitState,
)
from ansible_collections.steadygpu.host.plugins.module_utils.rollback.storage.store import Store
from ansible_collections.steadygpu.host.plugins.module_utils.rollback.way_back import restore
from ansible_collections.steadygpu.host.plugins.module_utils.rollback.window import WindowBusyError
from ansible_collections.steadygpu.host.tests.unit.module_utils.rollback.fake_host import (
    DAEMON,
    OWN,
    FakeHost,
    scratch,
)

OPTIONS = RestoreOptions()
WHY = Reason(who="mia", why="new driver", ticket="OPS-7")
HOUR = 3600.0


class Killed(BaseException):
    """Stands for SIGKILL: nothing catches it."""


@pytest.fixture
def host() -> Iterator[FakeHost]:
    with scratch() as root:
        fake = FakeHost(root)
        fake.theirs(DAEMON, "{}")
        fake.units = {"docker.service": UnitState("loaded", "active", "enabled")}
        yield fake


def begin(
    host: FakeHost,
    run: str = "run-1",
    what: str = "engine",
    declared: Sequence[str] = (),
    takeover: bool = False,
) -> Outcome:
    store = host.store()
    return window.begin(store, host, run, what, HOUR, WHY, declared, takeover=takeover)


def confirm(host: FakeHost, run: str = "run-1", keep: int = 20, takeover: bool = False) -> Outcome:
    return window.confirm(host.store(), host, run, keep, None, takeover=takeover)


def undo(host: FakeHost, run: str = "run-1", takeover: bool = False) -> Outcome:
    return window.undo(host.store(), host, run, OPTIONS, takeover=takeover)


class TestBegin:
    def test_it_keeps_the_state_before_and_opens_the_window(self, host: FakeHost) -> None:
        outcome = begin(host)
        assert outcome.opened
        assert not outcome.changed
        opened = host.store().window()
        assert opened == outcome.window
        assert opened is not None
        assert (opened.base, opened.reason.what) == (outcome.checkpoint, "engine")
        assert DAEMON in host.store().get(opened.base).state.files

    def test_the_same_run_joins(self, host: FakeHost) -> None:
        first = begin(host)
        second = begin(host, what="toolkit")
        begin(host, what="toolkit")
        assert not second.opened
        assert second.checkpoint == first.checkpoint
        opened = host.store().window()
        assert opened is not None
        assert opened.joined == ("toolkit",)

    def test_who_joins_may_name_further_paths(self, host: FakeHost) -> None:
        host.theirs("/srv/app/x", "before")
        begin(host)
        host.ours(DAEMON, '{"debug": true}')
        begin(host, what="app", declared=["/srv/app"])
        host.theirs("/srv/app/x", "after")
        undo(host)
        assert host.text("/srv/app/x") == "before"
        assert host.text(DAEMON) == "{}"

    def test_another_run_is_refused_and_told_all(self, host: FakeHost) -> None:
        begin(host)
        begin(host, what="toolkit")
        host.later(600)
        with pytest.raises(WindowBusyError) as caught:
            begin(host, run="run-2")
        message = str(caught.value)
        for told in ("mia", "engine, toolkit", "OPS-7", "run-1", "50 min", "confirm", "restore"):
            assert told in message
        assert caught.value.window.run == "run-1"

    def test_an_expired_window_is_adopted_with_its_base(self, host: FakeHost) -> None:
        first = begin(host)
        host.ours(DAEMON, '{"debug": true}')
        host.later(2 * HOUR)
        outcome = begin(host, run="run-2")
        assert outcome.opened
        assert outcome.checkpoint == first.checkpoint
        assert "had expired" in outcome.warnings[0]
        opened = host.store().window()
        assert opened is not None
        assert opened.run == "run-2"
        assert opened.seconds_left(host.clock) == HOUR
        undo(host, run="run-2")
        assert host.text(DAEMON) == "{}"

    def test_a_living_one_is_adopted_only_when_told(self, host: FakeHost) -> None:
        first = begin(host)
        outcome = begin(host, run="run-2", takeover=True)
        assert outcome.opened
        assert outcome.checkpoint == first.checkpoint
        assert "taken over" in outcome.warnings[0]

    def test_on_a_copy_of_the_disk_in_another_machine_a_change_begins_anew(
        self, host: FakeHost
    ) -> None:
        begin(host)
        host.ours(DAEMON, '{"debug": true}')
        host.name = Host("another", "gpu02")
        outcome = begin(host, run="run-2")
        assert outcome.opened
        assert "another machine" in outcome.warnings[0]
        host.ours(DAEMON, '{"debug": false}')
        undo(host, run="run-2")
        assert host.text(DAEMON) == '{"debug": true}'

    def test_after_a_reboot_a_clock_that_went_back_means_expired(self, host: FakeHost) -> None:
        begin(host)
        host.clock = replace(host.clock, boot="boot-2", uptime=5.0, wall=host.clock.wall - 1)
        assert begin(host, run="run-2").opened

    def test_a_jumping_clock_does_not_expire_it(self, host: FakeHost) -> None:
        begin(host)
        host.clock = replace(host.clock, wall=host.clock.wall + 100 * HOUR)
        with pytest.raises(WindowBusyError):
            begin(host, run="run-2")

    def test_check_mode_on_a_bare_host_writes_nothing(self, host: FakeHost) -> None:
        outcome = window.begin(host.store(), host, "run-1", "engine", HOUR, WHY, dry_run=True)
        assert outcome.opened
        assert not Path(host.store().directory).exists()

    def test_a_part_that_cannot_be_read_is_told(self, host: FakeHost) -> None:
        host.unknown = {"mig": "the driver does not answer"}
        assert "the driver does not answer" in begin(host).warnings[0]

    def test_killed_before_the_window_is_written_nothing_is_open(
        self, host: FakeHost, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def kill(*unused: Any) -> None:
            raise Killed

        with monkeypatch.context() as patched:
            patched.setattr(Store, "write_window", kill)
            with pytest.raises(Killed):
                begin(host)
        assert host.store().window() is None
        assert begin(host, run="run-2").opened


class TestConfirm:
    def test_it_labels_both_states_and_closes_the_window(self, host: FakeHost) -> None:
        base = begin(host).checkpoint
        host.ours(DAEMON, '{"debug": true}')
        outcome = confirm(host)
        store = host.store()
        assert store.window() is None
        assert not outcome.changed
        assert store.labels() == {BEFORE_CHANGE: base, STABLE: outcome.checkpoint}
        assert store.settled() == outcome.checkpoint

    def test_what_an_earlier_restore_left_for_later_is_overtaken_by_a_change(
        self, host: FakeHost
    ) -> None:
        left = Left(DAEMON, "waits for Docker's next restart", pending=True)
        host.store().write_pending([left])
        begin(host)
        confirm(host)
        assert host.store().pending() == [left]
        begin(host)
        host.ours(DAEMON, '{"debug": true}')
        confirm(host)
        assert host.store().pending() == []

    def test_a_change_that_changed_nothing_leaves_the_way_back_alone(self, host: FakeHost) -> None:
        base = begin(host).checkpoint
        host.ours(DAEMON, '{"debug": true}')
        confirm(host)
        begin(host)
        host.containers = {"c1": {"name": "job"}}  # comes and goes by itself
        confirm(host)
        assert host.store().labels()[BEFORE_CHANGE] == base

    def test_without_a_window_there_is_nothing_to_do(self, host: FakeHost) -> None:
        outcome = confirm(host)
        assert outcome.notes == ["no change is open"]
        assert not Path(host.store().directory).exists()

    def test_another_run_s_is_refused_even_when_expired(self, host: FakeHost) -> None:
        begin(host)
        with pytest.raises(WindowBusyError, match="60 min"):
            confirm(host, run="run-2")
        host.later(2 * HOUR)
        with pytest.raises(WindowBusyError, match="has expired"):
            confirm(host, run="run-2")
        confirm(host, run="run-2", takeover=True)
        assert host.store().window() is None

    def test_its_own_expired_one_can_be_confirmed(self, host: FakeHost) -> None:
        begin(host)
        host.later(2 * HOUR)
        confirm(host)
        assert host.store().window() is None

    def test_killed_before_the_window_is_closed_it_can_be_confirmed_again(
        self, host: FakeHost, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        base = begin(host).checkpoint
        host.ours(DAEMON, '{"debug": true}')

        def kill(*unused: Any) -> None:
            raise Killed

        with monkeypatch.context() as patched:
            patched.setattr(Store, "clear_window", kill)
            with pytest.raises(Killed):
                confirm(host)
        assert host.store().window() is not None
        confirm(host)
        assert host.store().window() is None
        assert host.store().labels()[BEFORE_CHANGE] == base

    def test_old_checkpoints_go(self, host: FakeHost) -> None:
        for number in range(5):
            begin(host)
            host.ours(DAEMON, f'{{"number": {number}}}')
            confirm(host, keep=2)
        assert len(host.store().summaries()) == 2

    def test_a_lost_base_is_told_and_the_change_ends(self, host: FakeHost) -> None:
        base = begin(host).checkpoint
        Path(host.store().directory, "checkpoints", f"{base}.json").unlink()
        outcome = confirm(host)
        assert any("is lost" in warning for warning in outcome.warnings)
        assert host.store().window() is None


class TestUndo:
    def test_it_goes_back_and_closes_the_window(self, host: FakeHost) -> None:
        base = begin(host).checkpoint
        host.ours(DAEMON, '{"debug": true}')
        outcome = undo(host)
        assert host.text(DAEMON) == "{}"
        assert outcome.checkpoint == base
        assert outcome.changed
        assert host.store().window() is None
        assert host.store().settled() is not None

    def test_a_change_that_did_nothing_yet_is_closed(self, host: FakeHost) -> None:
        begin(host)
        outcome = undo(host)
        assert not outcome.changed
        assert host.store().window() is None

    def test_without_a_window_it_says_what_to_do(self, host: FakeHost) -> None:
        with pytest.raises(RollbackError, match="before-change"):
            undo(host)

    def test_another_run_s_is_refused_until_it_expires(self, host: FakeHost) -> None:
        begin(host)
        with pytest.raises(WindowBusyError):
            undo(host, run="run-2")
        host.later(2 * HOUR)
        undo(host, run="run-2")
        assert host.store().window() is None

    def test_check_mode_tells_and_writes_nothing(self, host: FakeHost) -> None:
        begin(host)
        host.ours(DAEMON, '{"debug": true}')
        outcome = window.undo(host.store(), host, "run-1", OPTIONS, dry_run=True)
        assert any(DAEMON in action for action in outcome.actions)
        assert host.text(DAEMON) == '{"debug": true}'
        assert host.store().window() is not None

    def test_an_interrupted_one_is_ended_by_the_next_begin(self, host: FakeHost) -> None:
        first = begin(host)
        host.ours(DAEMON, '{"debug": true}')

        def kill(step: Step) -> None:
            raise Killed

        host.before_step = kill
        with pytest.raises(Killed):
            undo(host)
        host.before_step = lambda step: None
        outcome = begin(host, run="run-2")
        assert host.text(DAEMON) == "{}"
        assert outcome.opened
        assert outcome.window != first.window
        assert any("interrupted" in note for note in outcome.notes)
        assert outcome.changed
        assert outcome.window is not None
        assert outcome.checkpoint == outcome.window.base

    @pytest.mark.parametrize("cut", ["clear_window", "clear_restore", "set_settled"])
    def test_an_interrupted_one_is_ended_by_undoing_again(
        self, host: FakeHost, monkeypatch: pytest.MonkeyPatch, cut: str
    ) -> None:
        begin(host)
        host.ours(DAEMON, '{"debug": true}')
        host.theirs(DAEMON, '{"mine": 1}')

        def kill(*unused: Any) -> None:
            raise Killed

        with monkeypatch.context() as patched:
            patched.setattr(Store, cut, kill)
            with pytest.raises(Killed):
                undo(host)
        outcome = undo(host)
        assert outcome.conflicts == [DAEMON]
        assert host.kept(DAEMON) == ['{"mine": 1}']
        assert host.store().window() is None
        assert host.store().restore_journal() is None

    def test_restoring_the_base_by_name_closes_the_window_as_well(self, host: FakeHost) -> None:
        begin(host)
        host.ours(DAEMON, '{"debug": true}')
        restore.restore(host.store(), BEFORE_CHANGE, OPTIONS, host)
        assert host.store().window() is None

    def test_restoring_something_else_leaves_it_open_and_says_so(self, host: FakeHost) -> None:
        begin(host)
        host.ours(DAEMON, '{"debug": true}')
        stable = confirm(host).checkpoint
        begin(host)
        host.ours(DAEMON, '{"debug": false}')
        base = restore.restore(host.store(), BEFORE_CHANGE, OPTIONS, host)
        assert base.checkpoint == stable
        begin(host)
        host.ours(DAEMON, '{"debug": 3}')
        begun_on = host.store().labels()[BEFORE_CHANGE]
        outcome = restore.restore(host.store(), begun_on, OPTIONS, host)
        assert host.store().window() is not None
        assert any("stays open" in warning for warning in outcome.warnings)


# -- whatever happens in between --------------------------------------------------------

SHARED, NEW_SHARED, NEW_OWN, SEEN = (
    DAEMON,
    "/etc/cdi/nvidia.yaml",
    "/etc/steadygpu/sub/new.yml",
    "/etc/default/grub",
)
PATHS = (SHARED, NEW_SHARED, OWN, NEW_OWN, SEEN)

EDITS = st.lists(
    st.tuples(
        st.sampled_from(PATHS),
        st.sampled_from(["ours", "theirs"]),
        st.sampled_from(["write", "write", "remove"]),
    ),
    max_size=8,
)


@settings(max_examples=40)
@given(EDITS, st.booleans())
def test_the_rules_hold_and_no_content_is_lost(
    edits: list[tuple[str, str, str]], confirmed_before: bool
) -> None:
    with scratch() as root:
        host = FakeHost(root)
        for path in (SHARED, OWN, SEEN):
            host.theirs(path, f"first {path}")
        if confirmed_before:
            begin(host)
            confirm(host)
        begin(host)
        before = {path: host.text(path) for path in PATHS}
        written: dict[str, list[str | None]] = {path: [] for path in PATHS}
        for number, (path, who, what) in enumerate(edits):
            text = f"{who} {number}" if what == "write" else None
            if who == "theirs":
                host.theirs(path, text)
            elif path != SEEN and not (text is None and host.text(path) is None):
                host.ours(path, text)
                written[path].append(text)
        present = {path: host.text(path) for path in PATHS}

        outcome = undo(host)

        saved = contents(host.store())
        for path in PATHS:
            stays = path == SEEN or (path in (SHARED, NEW_SHARED) and not written[path])
            assert host.text(path) == (present[path] if stays else before[path])
            assert stays or path not in {left.subject for left in outcome.left}
            if stays or present[path] in (None, before[path]):
                continue
            # It was replaced: the store has it, and what is not ours lies beside it.
            assert present[path] in saved
            if written[path] and present[path] not in written[path]:
                assert host.kept(path) == [present[path]]
                assert path in outcome.conflicts
            else:
                assert not host.kept(path)
        assert host.store().window() is None
        assert host.store().restore_journal() is None

        again = restore.restore(host.store(), outcome.checkpoint, OPTIONS, host)
        assert not again.changed


def contents(store: Store) -> set[str]:
    """The text of every file of the state that the last restore replaced."""
    name = store.labels().get(BEFORE_RESTORE)
    entries = store.get(name).state.files.values() if name else ()
    return {store.content(one.digest).decode() for one in entries if one.digest}
