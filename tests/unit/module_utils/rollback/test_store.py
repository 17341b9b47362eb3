# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
import os
import stat
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.rollback.model import (
    DIRECTORY,
    BusyError,
    Entry,
    Host,
    Left,
    Moment,
    Plan,
    Reason,
    RestoreJournal,
    RestoreOptions,
    RollbackError,
    State,
    Step,
    Window,
)
from ansible_collections.steadygpu.host.plugins.module_utils.rollback.storage.store import Store
from ansible_collections.steadygpu.host.tests.unit.module_utils.rollback.store_help import (
    HOST,
    REASON,
    contents_of,
    names_below,
    take,
)

NOON = 1_796_126_400.0
WINDOW = Window("w1", "run 1", "1-00000000", Moment(1.0, 2.0, "boot"), 60.0)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    clock = iter(range(1000))
    return Store(str(tmp_path / "rollback"), wait_s=0.0, now=lambda: NOON + 60 * next(clock))


def test_a_store_that_is_not_there_is_an_empty_one(tmp_path: Path) -> None:
    store = Store(str(tmp_path / "nothing"))
    assert store.checkpoints() == store.summaries() == store.damaged() == store.pending() == []
    assert (store.labels(), store.window(), store.restore_journal(), store.settled()) == (
        {},
        None,
        None,
        None,
    )
    with pytest.raises(RollbackError, match="no checkpoints yet"):
        store.get("stable")
    assert not (tmp_path / "nothing").exists()


def test_a_checkpoint_is_kept_with_its_contents(store: Store) -> None:
    made = take(store, {"/etc/a": "one", "/etc/b": "two", "/etc/c": "one"})
    again = Store(store.directory)
    assert again.get(made.id) == made
    assert contents_of(again, made) == {"/etc/a": "one", "/etc/b": "two", "/etc/c": "one"}
    with again.open_content(made.state.files["/etc/b"].digest or "") as handle:
        assert handle.read() == b"two"
    assert again.verify() == []
    assert (made.sequence, made.taken_at, made.host, made.reason) == (1, NOON, HOST, REASON)


def test_only_root_can_read_it(store: Store) -> None:
    old_mask = os.umask(0)
    try:
        take(store, {"/etc/a": "secret"})
        store.write_window(WINDOW)
    finally:
        os.umask(old_mask)
    for folder, folders, names in os.walk(store.directory):
        for name in (*folders, *names):
            assert stat.S_IMODE(os.stat(os.path.join(folder, name)).st_mode) & 0o077 == 0
    os.chmod(store.directory, 0o755)
    with store.locked():
        assert stat.S_IMODE(os.stat(store.directory).st_mode) == 0o700


def test_a_large_file_is_kept_by_its_descriptor(store: Store, tmp_path: Path) -> None:
    content = os.urandom(3 * 1024**2 + 7)
    large = tmp_path / "large"
    large.write_bytes(content)
    for _round in range(2):
        with large.open("rb") as handle, store.locked():
            # Wherever the descriptor stands.
            handle.seek(5)
            digest, size = store.sink.put_file(handle.fileno())
            store.add(State({"/etc/l": Entry("file", digest=digest, size=size)}), REASON, HOST)
        assert size == len(content)
        assert store.content(digest) == content
    assert len(store.checkpoints()) == 1


def test_nothing_is_kept_of_a_look_that_ends_without_a_checkpoint(store: Store) -> None:
    take(store, {"/etc/a": "one"})
    before = names_below(store.directory)
    with store.locked():
        store.sink.put([b"new"])
    assert names_below(store.directory) == before


def test_the_sink_is_for_who_holds_the_lock(store: Store) -> None:
    with pytest.raises(RuntimeError, match="locked"):
        _sink = store.sink


def test_a_state_whose_contents_are_missing_is_no_checkpoint(store: Store) -> None:
    state = State({"/etc/a": Entry("file", digest="ab" * 32, size=1)})
    with pytest.raises(RollbackError, match=r"/etc/a .* Take it again"):
        store.add(state, REASON, HOST)
    assert store.checkpoints() == []


def test_what_did_not_change_makes_no_twin(store: Store) -> None:
    first = take(store, {"/etc/a": "one"})
    assert take(store, {"/etc/a": "one"}, Reason(who="somebody else")) == first
    changed = take(store, {"/etc/a": "two"})
    # Going back and forth is history, not a twin.
    back = take(store, {"/etc/a": "one"})
    assert [one.id for one in store.checkpoints()] == [first.id, changed.id, back.id]
    assert take(store, {"/etc/a": "one"}, host=Host("another", "gpu2")) != back


def test_other_declared_paths_make_another_checkpoint(store: Store) -> None:
    first = store.add(State(), REASON, HOST)
    assert store.add(State(), REASON, HOST, ["/srv/x"]).id != first.id


def test_the_sequence_counts_up_whatever_the_clock_does(tmp_path: Path) -> None:
    times = [NOON, NOON - 1e6, 0.0]
    store = Store(str(tmp_path / "rollback"), now=lambda: times.pop(0))
    made = [take(store, {"/etc/a": text}) for text in "abc"]
    assert [one.id for one in store.checkpoints()] == [one.id for one in made]
    assert made[0].sequence < made[1].sequence < made[2].sequence
    # And a lost count does not use a number twice.
    os.unlink(os.path.join(store.directory, "sequence"))
    times.append(NOON)
    assert take(store, {"/etc/a": "d"}).sequence > made[2].sequence


def test_what_we_write_while_we_look_counts_as_written_after(store: Store) -> None:
    take(store, {"/etc/a": "one"})
    with store.locked():
        digest, size = store.sink.put([b"two"])
        during = store.sequence()
        entry = Entry("file", digest=digest, size=size)
        assert store.add(State({"/etc/a": entry}), REASON, HOST).sequence == during


def test_selectors(store: Store) -> None:
    made = [take(store, {"/etc/a": str(number)}) for number in range(12)]
    store.label("stable", made[3].id)
    store.label("before-change", made[2].id)
    assert store.get(made[5].id) == made[5]
    assert store.get(made[5].id[:-3]) == made[5]
    # A number is a sequence, although 10-… and 11-… begin like 1-….
    assert store.get("1") == made[0]
    assert store.get("stable") == made[3]
    assert store.get("before-change") == made[2]
    store.write_window(replace(WINDOW, base=made[9].id))
    assert store.get("before-change") == made[9]
    assert store.get(f"@{int(NOON) + 60 * 4 + 59}") == made[4]
    assert store.get(f"@{int(NOON) + 60 * 5}.5") == made[5]
    assert store.get("@2026-12-01T12:02Z") == made[2]
    assert store.get("@2026-12-01T13:02+01:00") == made[2]
    assert store.get("@2099-01-01") == made[11]


def test_a_selector_that_finds_nothing_is_told_what_there_is(store: Store) -> None:
    made = [take(store, {"/etc/a": str(number)}) for number in range(12)]
    store.label("mine", made[11].id)
    with pytest.raises(RollbackError, match=rf"no checkpoint 'her'.*2 older.*{made[11].id} \(mine"):
        store.get("her")
    with pytest.raises(RollbackError, match="was taken at 2001-01-01 or before"):
        store.get("@2001-01-01")
    with pytest.raises(RollbackError, match="@yesterday is no time"):
        store.get("@yesterday")
    with pytest.raises(RollbackError, match="no checkpoint '99'"):
        store.get("99")


def test_a_label_moves_and_goes(store: Store) -> None:
    one, two = take(store, {"/etc/a": "1"}), take(store, {"/etc/a": "2"})
    assert store.label("mine", one.id)
    assert not store.label("mine", one.id)
    assert store.label("mine", two.id)
    assert store.labels() == {"mine": two.id}
    assert [summary.labels for summary in store.summaries()] == [(), ("mine",)]
    assert store.unlabel("mine")
    assert not store.unlabel("mine")
    with pytest.raises(RollbackError, match="no checkpoint 9-00000000"):
        store.label("mine", "9-00000000")


@pytest.mark.parametrize("name", ["", "Mine", "-x", "a b", "a/b", "x" * 65, "12", "12-0abc", "a\n"])
def test_what_cannot_be_a_label(store: Store, name: str) -> None:
    one = take(store, {"/etc/a": "1"})
    with pytest.raises(RollbackError, match="cannot be a label"):
        store.label(name, one.id)


def test_summaries_tell_what_a_list_shows(store: Store) -> None:
    made = take(store, {"/etc/a": "1", "/etc/b": "2"}, Reason(why="because", ticket="T-1"))
    (summary,) = store.summaries()
    assert (summary.id, summary.sequence, summary.taken_at, summary.host, summary.reason) == (
        made.id,
        made.sequence,
        made.taken_at,
        made.host,
        made.reason,
    )
    assert (summary.files, summary.labels, summary.declared) == (2, (), ())


def test_what_is_under_way_is_kept_until_it_ends(store: Store) -> None:
    journal = RestoreJournal(
        "1-00000000", "2-00000000", "w1", RestoreOptions(), Plan((Step("file", "/etc/a", "text"),))
    )
    left = [Left("/etc/a", "busy", True), Left("docker", "later")]
    store.write_window(WINDOW)
    store.write_restore(journal)
    store.write_pending(left)
    store.set_settled("1-00000000")
    again = Store(store.directory)
    assert (again.window(), again.restore_journal(), again.pending(), again.settled()) == (
        WINDOW,
        journal,
        left,
        "1-00000000",
    )
    again.clear_window()
    again.clear_restore()
    again.write_pending([])
    # It may be told twice.
    again.clear_window()
    assert (store.window(), store.restore_journal(), store.pending()) == (None, None, [])


def test_prune_keeps_what_is_needed_and_sweeps_the_rest(store: Store) -> None:
    made = [take(store, {"/etc/a": str(number), "/etc/same": "x"}) for number in range(8)]
    store.label("mine", made[0].id)
    store.write_window(replace(WINDOW, base=made[1].id))
    store.set_settled(made[2].id)
    store.write_restore(RestoreJournal(made[3].id, made[4].id, "", RestoreOptions(), Plan()))
    assert store.prune(1, None, NOON) == [made[5].id, made[6].id]
    assert [one.id for one in store.checkpoints()] == [
        made[number].id for number in (0, 1, 2, 3, 4, 7)
    ]
    assert store.verify() == []
    assert len([name for name in names_below(store.directory) if "objects" in name]) == 7
    for end in (store.clear_restore, store.clear_window):
        end()
    store.unlabel("mine")
    store.set_settled(made[7].id)
    store.prune(1, None, NOON)
    assert [one.id for one in store.checkpoints()] == [made[7].id]
    assert len([name for name in names_below(store.directory) if "objects" in name]) == 2
    with pytest.raises(RollbackError, match="keep is 0"):
        store.prune(0, None, NOON)


def test_a_step_of_an_unfinished_restore_keeps_its_content(store: Store) -> None:
    digest = take(store, {"/etc/a": "needed"}).state.files["/etc/a"].digest or ""
    step = Step("file", "/etc/a", "text", {"entry": {"digest": digest}})
    last = take(store, {"/etc/a": "1"})
    store.write_restore(RestoreJournal(last.id, last.id, "", RestoreOptions(), Plan((step,))))
    store.prune(1, None, NOON)
    assert store.content(digest) == b"needed"
    store.clear_restore()
    store.prune(1, None, NOON)
    with pytest.raises(RollbackError, match="no object"):
        store.content(digest)


def test_a_checkpoint_goes_only_when_nothing_needs_it(store: Store) -> None:
    one, two = take(store, {"/etc/a": "1"}), take(store, {"/etc/a": "2"})
    store.label("mine", one.id)
    with pytest.raises(RollbackError, match="labelled mine"):
        store.remove(one.id)
    store.unlabel("mine")
    store.write_window(replace(WINDOW, base=one.id))
    with pytest.raises(RollbackError, match="base of the open window"):
        store.remove(one.id)
    store.clear_window()
    store.remove(one.id)
    assert [left.id for left in store.checkpoints()] == [two.id]
    with pytest.raises(RollbackError, match="no object"):
        store.content(one.state.files["/etc/a"].digest or "")
    with pytest.raises(RollbackError, match="no checkpoint"):
        store.remove(one.id)


def test_the_second_of_two_runs_waits(store: Store) -> None:
    entered, leave = threading.Event(), threading.Event()

    def first() -> None:
        with store.locked():
            entered.set()
            leave.wait(10)
            take(store, {"/etc/a": "1"})

    runner = threading.Thread(target=first)
    runner.start()
    entered.wait(10)
    # It frees the lock only when the other one is already waiting for it, or about to.
    threading.Timer(0.1, leave.set).start()
    second = take(Store(store.directory, wait_s=30.0), {"/etc/a": "2"})
    runner.join()
    assert [one.id for one in store.checkpoints()][-1] == second.id
    assert len(store.checkpoints()) == 2


def test_the_second_of_two_runs_gives_up_and_names_the_first(store: Store) -> None:
    with store.locked(), pytest.raises(BusyError, match=f"process {os.getpid()} .*0.1 s"):
        Store(store.directory, wait_s=0.1).label("x", "1-00000000")


def test_the_documents_are_json_for_everybody(store: Store) -> None:
    made = take(store, {"/etc/a": "1"})
    store.write_window(WINDOW)
    for name in ("window.json", f"checkpoints/{made.id}.json"):
        document = json.loads((Path(store.directory) / name).read_text())
        assert document["schema"] == 1
    assert store.directory != DIRECTORY
