# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.rollback.model import (
    Moment,
    RollbackError,
    Window,
)
from ansible_collections.steadygpu.host.plugins.module_utils.rollback.storage.store import Store
from ansible_collections.steadygpu.host.tests.unit.module_utils.rollback.cut_short import (
    every_cut,
    is_locked,
)
from ansible_collections.steadygpu.host.tests.unit.module_utils.rollback.store_help import (
    contents_of,
    names_below,
    small_disk,
    take,
)

WINDOW = Window("w1", "run 1", "1-00000000", Moment(1.0, 2.0, "boot"), 60.0)


@pytest.fixture
def directory(tmp_path: Path) -> str:
    return str(tmp_path / "rollback")


# -- the disk ---------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 20])
def test_a_full_disk_leaves_the_store_as_it_was(tmp_path: Path, count: int) -> None:
    with small_disk(tmp_path / "disk", "512k") as disk:
        store = Store(str(disk / "rollback"))
        first = take(store, {"/etc/a": "one"})
        before = names_below(store.directory)
        too_much = {
            f"/etc/{number}": f"{number}" * (2**20 // count) for number in range(10, 10 + count)
        }
        with pytest.raises(RollbackError) as told:
            take(store, too_much)
        assert re.search(
            rf"no space left .* {re.escape(store.directory)}: it needs at least [1-9]\S* [KM]iB, "
            r"and [1-9]\S* KiB are free; nothing was changed.* checkpoint prune",
            str(told.value),
        )
        assert names_below(store.directory) == before
        assert store.checkpoints() == [first]
        assert store.verify() == []
        # There is room for what fits.
        assert contents_of(store, take(store, {"/etc/a": "two"})) == {"/etc/a": "two"}


def test_a_disk_that_fills_with_the_last_bytes_keeps_no_objects_either(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", "256k") as disk:
        store = Store(str(disk / "rollback"))
        take(store, {"/etc/a": "one"})
        before = names_below(store.directory)
        # The contents fit, but the checkpoint itself, with its long paths, does not.
        (disk / "ballast").write_bytes(b"x" * 100 * 1024)
        paths = {f"/etc/{number}/" + "p" * 4000: "small" for number in range(40)}
        with pytest.raises(RollbackError, match="no space left"):
            take(store, paths)
        assert names_below(store.directory) == before
        (disk / "ballast").unlink()
        assert len(take(store, paths).state.files) == 40


def test_a_read_only_disk_is_told_and_can_be_read(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", "512k") as disk:
        store = Store(str(disk / "rollback"))
        first = take(store, {"/etc/a": "one"})
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        with pytest.raises(RollbackError, match=r"mounted read-only.*nothing was changed"):
            take(store, {"/etc/a": "two"})
        with pytest.raises(RollbackError, match="mounted read-only"):
            store.write_window(WINDOW)
        with pytest.raises(RollbackError, match="mounted read-only"):
            take(Store(str(disk / "another")), {})
        assert contents_of(store, store.get(first.id)) == {"/etc/a": "one"}


@pytest.mark.skipif(os.geteuid() == 0, reason="root may do everything")
def test_who_is_not_root_is_told_so(tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir(mode=0o500)
    with pytest.raises(RollbackError, match="only be used by root"):
        take(Store(str(tmp_path / "closed" / "rollback")), {})


# -- damage -----------------------------------------------------------------------------


def _object_of(store: Store, path: str) -> Path:
    digest = store.checkpoints()[-1].state.files[path].digest or ""
    return Path(store.directory) / "objects" / digest[:1] / digest[1:]


def test_a_damaged_object_is_never_given_out(directory: str) -> None:
    store = Store(directory)
    made = take(store, {"/etc/a": "one", "/etc/b": "two"})
    place = _object_of(store, "/etc/a")
    place.write_text("One")
    digest = made.state.files["/etc/a"].digest or ""
    for read in (store.content, store.open_content):
        with pytest.raises(RollbackError, match=rf"{place} is damaged.*backup"):
            read(digest)
    assert store.content(made.state.files["/etc/b"].digest or "") == b"two"
    (message,) = store.verify()
    assert f"checkpoint {made.id}, /etc/a" in message


@pytest.mark.parametrize("damage", ["changed", "shortened", "gone"])
def test_the_next_take_heals_a_damaged_object(directory: str, damage: str) -> None:
    take(Store(directory), {"/etc/a": "one"})
    place = _object_of(Store(directory), "/etc/a")
    if damage == "gone":
        place.unlink()
    else:
        place.write_text("" if damage == "shortened" else "One")
    store = Store(directory)
    assert store.verify() != []
    take(store, {"/etc/a": "one"})
    assert store.verify() == []
    assert len(store.checkpoints()) == 1


def test_a_damaged_checkpoint_is_told_and_the_others_are_there(directory: str) -> None:
    store = Store(directory)
    made = [take(store, {"/etc/a": str(number)}) for number in range(3)]
    path = Path(directory) / "checkpoints" / f"{made[1].id}.json"
    path.write_bytes(path.read_bytes().replace(b"0644", b"0666"))
    assert [one.id for one in store.checkpoints()] == [made[0].id, made[2].id]
    assert [one.id for one in store.summaries()] == [made[0].id, made[2].id]
    (message,) = store.damaged()
    assert str(path) in message
    assert "checksum" in message
    with pytest.raises(RollbackError, match="is damaged"):
        store.get(made[1].id)
    # What it still names is kept as long as it is, and it goes in its turn.
    assert store.prune(2, None, 0.0) == [made[0].id]
    assert _object_of(store, "/etc/a").exists()
    assert store.content(made[1].state.files["/etc/a"].digest or "") == b"1"
    assert store.prune(1, None, 0.0) == [made[1].id]
    assert store.damaged() == []


def test_a_damaged_newest_checkpoint_is_no_twin(directory: str) -> None:
    store = Store(directory)
    first = take(store, {"/etc/a": "one"})
    (Path(directory) / "checkpoints" / f"{first.id}.json").write_text("{}")
    second = take(store, {"/etc/a": "one"})
    assert second.id != first.id
    assert store.get(second.id) == second


@pytest.mark.parametrize(
    ("name", "read"),
    [
        ("labels.json", Store.labels),
        ("window.json", Store.window),
        ("restore.json", Store.restore_journal),
        ("pending.json", Store.pending),
        ("settled", Store.settled),
        ("sequence", Store.sequence),
    ],
)
def test_damage_says_which_file_and_deletes_nothing(
    directory: str, name: str, read: object
) -> None:
    store = Store(directory)
    made = [take(store, {"/etc/a": text}) for text in "ab"]
    damaged = Path(directory) / name
    damaged.write_text("not what we write\n")
    with pytest.raises(RollbackError, match=f"{damaged}.*delete it"):
        read(store)  # type: ignore[operator]
    if name not in ("pending.json", "sequence"):
        # What is needed cannot be known.
        with pytest.raises(RollbackError):
            store.prune(1, None, 0.0)
        assert len(store.checkpoints()) == len(made)
    # Who knows the id is not in need of it.
    assert store.get(made[0].id) == made[0]
    damaged.unlink()
    assert take(store, {"/etc/a": "c"}).sequence > made[1].sequence


# -- a clock that jumps back --------------------------------------------------------------


def test_a_clock_that_jumped_back_deletes_nothing(directory: str) -> None:
    times = [5e9, 5e9, 1.0, 5e9, 5e9]
    store = Store(directory, now=lambda: times.pop(0))
    made = [take(store, {"/etc/a": text}) for text in "abcde"]
    assert store.prune(20, 1.0, 2.0) == []
    assert store.prune(20, 1.0, 5e9 + 3600) == []
    # When the clock is right again, age counts, but not for the newest ones.
    assert store.prune(20, 1.0, 5e9 + 2 * 86400) == [made[0].id, made[1].id]


# -- kills --------------------------------------------------------------------------------


def test_a_take_cut_anywhere_leaves_the_old_store_or_the_new(
    directory: str, tmp_path: Path
) -> None:
    template = str(tmp_path / "template")
    first = take(Store(template), {"/etc/a": "one", "/etc/b": "two"})
    wanted = {"/etc/a": "one", "/etc/b": "three", "/etc/c": "four"}

    def prepare() -> None:
        shutil.rmtree(directory, ignore_errors=True)
        shutil.copytree(template, directory)

    outcomes = []
    for _cut in every_cut(lambda: take(Store(directory), wanted), prepare):
        assert not is_locked(os.path.join(directory, "lock"))
        store = Store(directory, wait_s=0.0)
        there = store.checkpoints()
        assert store.verify() == []
        assert there[0] == first
        outcomes.append(len(there))
        # The next run finds nothing in its way, and leaves nothing behind.
        made = take(store, wanted)
        assert contents_of(store, made) == wanted
        assert store.verify() == []
        store.prune(20, None, 0.0)
        assert not [name for name in names_below(directory) if "/." in f"/{name}"]
        assert not os.listdir(os.path.join(directory, "incoming"))
        assert len([name for name in names_below(directory) if name.startswith("objects")]) == 4
    assert set(outcomes) == {1, 2}
    assert outcomes == sorted(outcomes)
    assert len(outcomes) > 20


def test_the_first_take_cut_anywhere_can_be_done_again(directory: str) -> None:
    def prepare() -> None:
        shutil.rmtree(directory, ignore_errors=True)

    cuts = 0
    for _cut in every_cut(lambda: take(Store(directory), {"/etc/a": "one"}), prepare):
        cuts += 1
        store = Store(directory, wait_s=0.0)
        assert store.damaged() == []
        assert contents_of(store, take(store, {"/etc/a": "one"})) == {"/etc/a": "one"}
        assert len(store.checkpoints()) == 1
    assert cuts > 20


def test_a_prune_cut_anywhere_loses_nothing_that_is_kept(directory: str, tmp_path: Path) -> None:
    template = str(tmp_path / "template")
    made = [take(Store(template), {"/etc/a": text, "/etc/same": "x"}) for text in "abcd"]

    def prepare() -> None:
        shutil.rmtree(directory, ignore_errors=True)
        shutil.copytree(template, directory)

    for _cut in every_cut(lambda: Store(directory).prune(2, None, 0.0), prepare):
        store = Store(directory, wait_s=0.0)
        assert store.verify() == []
        assert store.checkpoints()[-2:] == made[-2:]
        store.prune(2, None, 0.0)
        assert store.checkpoints() == made[-2:]
        assert len([name for name in names_below(directory) if name.startswith("objects")]) == 3


def test_a_window_cut_anywhere_is_the_old_one_or_the_new(directory: str, tmp_path: Path) -> None:
    template = str(tmp_path / "template")
    Store(template).write_window(WINDOW)
    new = Window("w2", "run 2", "2-00000000", Moment(1.0, 2.0, "boot"), 60.0)

    def prepare() -> None:
        shutil.rmtree(directory, ignore_errors=True)
        shutil.copytree(template, directory)

    seen = [
        Store(directory).window()
        for _cut in every_cut(lambda: Store(directory).write_window(new), prepare)
    ]
    assert {one.id for one in seen if one} == {"w1", "w2"}
    assert None not in seen


def test_what_a_killed_process_left_is_cleared_away(directory: str) -> None:
    first = take(Store(directory), {"/etc/a": "one"})
    program = f"""
import os, signal
from {Store.__module__} import Store
store = Store({directory!r})
with store.locked():
    store.sink.put([b"half"])
    open(os.path.join({directory!r}, ".window.json.x1"), "w").write("half")
    os.kill(os.getpid(), signal.SIGKILL)
"""
    killed = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        check=False,
    )
    assert killed.returncode == -signal.SIGKILL
    assert {".window.json.x1", "incoming/0"} <= names_below(directory)
    store = Store(directory, wait_s=0.0)
    assert store.checkpoints() == [first]
    with store.locked():
        left = names_below(directory)
    assert not [name for name in left if name.startswith((".", "incoming"))]
