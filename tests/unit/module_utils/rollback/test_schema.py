# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.rollback.model import (
    Checkpoint,
    Moment,
    NewerStoreError,
    RollbackError,
    Window,
)
from ansible_collections.steadygpu.host.plugins.module_utils.rollback.storage import schema
from ansible_collections.steadygpu.host.plugins.module_utils.rollback.storage.schema import Forms
from ansible_collections.steadygpu.host.plugins.module_utils.rollback.storage.store import Store
from ansible_collections.steadygpu.host.tests.unit.module_utils.rollback.cut_short import every_cut
from ansible_collections.steadygpu.host.tests.unit.module_utils.rollback.store_help import take

WINDOW = Window("w1", "run 1", "1-00000000", Moment(1.0, 2.0, "boot"), 60.0)


# In form 2 a window has its run under another name, and a checkpoint says where it was taken.
def _up(document: schema.Document) -> schema.Document:
    if document["kind"] == "window":
        document["by"] = document.pop("run")
    if document["kind"] == "checkpoint":
        document["site"] = "here"
    return document


def _down(document: schema.Document) -> schema.Document:
    if document["kind"] == "window":
        document["run"] = document.pop("by")
    document.pop("site", None)
    return document


OLD = Forms()
NEW = Forms(2, {1: _up}, {2: _down})


def a_store(directory: str) -> list[Checkpoint]:
    """A store of form 1 with a bit of everything."""
    store = Store(directory)
    made = [take(store, {"/etc/a": text}) for text in "abc"]
    store.label("mine", made[0].id)
    store.set_settled(made[1].id)
    store.write_window(WINDOW)
    store.write_pending([])
    return made


def documents_below(directory: str) -> dict[str, dict[str, Any]]:
    return {
        str(path.relative_to(directory)): json.loads(path.read_text())
        for path in sorted(Path(directory).rglob("*.json"))
    }


def forms_below(directory: str) -> set[int]:
    return {document["schema"] for document in documents_below(directory).values()}


def store_form(directory: str) -> int:
    return int((Path(directory) / "schema").read_text())


def test_a_newer_program_takes_the_store_over(tmp_path: Path) -> None:
    made = a_store(str(tmp_path))
    newer = Store(str(tmp_path), forms=NEW)
    # Looking changes nothing.
    assert newer.checkpoints() == made
    assert store_form(str(tmp_path)) == 1
    assert [one.id for one in newer.summaries()] == [one.id for one in made]
    with newer.locked():
        pass
    assert store_form(str(tmp_path)) == 2
    assert forms_below(str(tmp_path)) == {2}
    assert documents_below(str(tmp_path))["window.json"]["by"] == "run 1"
    assert newer.checkpoints() == made
    assert newer.labels() == {"mine": made[0].id}


def test_an_older_program_refuses_a_newer_store(tmp_path: Path) -> None:
    made = a_store(str(tmp_path))
    with Store(str(tmp_path), forms=NEW).locked():
        pass
    before = documents_below(str(tmp_path))
    older = Store(str(tmp_path))
    said = r"has schema 2, this program knows up to 1; use the newer .* checkpoint migrate --to 1"
    for refused in (
        lambda: older.get(made[0].id),
        older.checkpoints,
        older.summaries,
        older.damaged,
        older.labels,
        older.window,
        older.settled,
        older.sequence,
        lambda: take(older, {"/etc/a": "x"}),
        lambda: older.label("x", made[0].id),
        lambda: older.prune(1, None, 0.0),
        older.clear_window,
    ):
        with pytest.raises(NewerStoreError, match=said):
            refused()
    assert documents_below(str(tmp_path)) == before


def test_a_newer_program_hands_the_store_back(tmp_path: Path) -> None:
    made = a_store(str(tmp_path))
    newer = Store(str(tmp_path), forms=NEW)
    with newer.locked():
        pass
    assert newer.migrate(1) == []
    older = Store(str(tmp_path))
    assert older.checkpoints() == made
    assert older.window() == WINDOW
    assert older.labels() == {"mine": made[0].id}
    assert take(older, {"/etc/a": "d"}).sequence > made[-1].sequence


@pytest.mark.parametrize(("start", "to"), [(1, 2), (2, 1)])
def test_a_migration_cut_anywhere_is_refused_by_the_old_and_finished_by_the_new(
    tmp_path: Path, start: int, to: int
) -> None:
    template, directory = str(tmp_path / "template"), str(tmp_path / "store")
    made = a_store(template)
    if start == 2:
        Store(template, forms=NEW).migrate(2)

    def prepare() -> None:
        shutil.rmtree(directory, ignore_errors=True)
        shutil.copytree(template, directory)

    mixed = 0
    for _cut in every_cut(lambda: Store(directory, forms=NEW).migrate(to), prepare):
        forms = forms_below(directory)
        mixed += len(forms) == 2
        # The number of the store is never lower than that of a document.
        assert store_form(directory) >= max(forms)
        older = Store(directory)
        if store_form(directory) == 1:
            assert older.checkpoints() == made
        else:
            with pytest.raises(NewerStoreError):
                older.checkpoints()
        newer = Store(directory, wait_s=0.0, forms=NEW)
        assert newer.damaged() == []
        assert newer.checkpoints() == made
        assert newer.migrate(to) == []
        assert forms_below(directory) == {store_form(directory)} == {to}
        assert newer.checkpoints() == made
    assert mixed > 5


def test_what_is_damaged_is_left_and_told(tmp_path: Path) -> None:
    made = a_store(str(tmp_path))
    path = tmp_path / "checkpoints" / f"{made[1].id}.json"
    path.write_text("damaged")
    (message,) = Store(str(tmp_path), forms=NEW).migrate(2)
    assert str(path) in message
    assert path.read_text() == "damaged"
    assert Store(str(tmp_path), forms=NEW).checkpoints() == [made[0], made[2]]


@pytest.mark.parametrize("to", [0, 2, 3])
def test_where_there_is_no_way_nothing_is_changed(tmp_path: Path, to: int) -> None:
    a_store(str(tmp_path))
    before = documents_below(str(tmp_path))
    with pytest.raises(RollbackError, match=f"has the form 1, .*1 … 1, not to {to}"):
        Store(str(tmp_path)).migrate(to)
    assert documents_below(str(tmp_path)) == before
    assert store_form(str(tmp_path)) == 1


def test_a_form_that_a_program_no_longer_knows_is_refused(tmp_path: Path) -> None:
    a_store(str(tmp_path))
    with pytest.raises(RollbackError, match=r"has schema 1, this program knows 4 and newer"):
        Store(str(tmp_path), forms=Forms(5, {4: _up}, {5: _down})).checkpoints()


@pytest.mark.parametrize("text", ["", "one\n", "-1\n", "0\n"])
def test_a_damaged_number_says_how_to_mend_it(tmp_path: Path, text: str) -> None:
    a_store(str(tmp_path))
    (tmp_path / "schema").write_text(text)
    with pytest.raises(RollbackError, match="write the highest of them"):
        Store(str(tmp_path)).checkpoints()


def test_a_missing_number_is_not_guessed(tmp_path: Path) -> None:
    a_store(str(tmp_path))
    (tmp_path / "schema").unlink()
    with pytest.raises(RollbackError, match="missing although there are checkpoints"):
        take(Store(str(tmp_path)), {"/etc/a": "x"})
    (tmp_path / "schema").write_text("1\n")
    assert take(Store(str(tmp_path)), {"/etc/a": "x"})
