# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import hashlib
import json
import os
import shutil
import stat
import threading
from pathlib import Path

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils import vouched
from ansible_collections.steadygpu.host.plugins.module_utils.rollback.model import DIRECTORY
from ansible_collections.steadygpu.host.tests.unit.module_utils.rollback.cut_short import every_cut
from ansible_collections.steadygpu.host.tests.unit.module_utils.rollback.store_help import (
    small_disk,
)


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "etc/docker").mkdir(parents=True)
    return tmp_path


def ledger(root: Path) -> Path:
    return root / vouched.LEDGER.lstrip("/")


def count(root: Path, number: int) -> None:
    """A checkpoint of that sequence was taken."""
    path = ledger(root).parent / "sequence"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{number}\n")


def test_it_lies_beside_the_checkpoints() -> None:
    assert os.path.dirname(vouched.LEDGER) == DIRECTORY


def test_what_was_written_since_a_checkpoint(root: Path) -> None:
    daemon, unit = str(root / "etc/docker/daemon.json"), str(root / "etc/unit")
    assert vouched.since(0, str(root)) == {}
    vouched.write(daemon, "one", root=str(root))
    count(root, 3)
    vouched.write(daemon, "two", mode=0o600, root=str(root))
    vouched.write(unit, "ü", root=str(root))
    count(root, 4)
    assert vouched.remove(unit, str(root))
    vouched.write(daemon, "one", root=str(root))
    assert Path(daemon).read_text() == "one"
    assert stat.S_IMODE(os.stat(daemon).st_mode) == 0o600
    assert not os.path.exists(unit)
    seen = "/etc/docker/daemon.json"
    assert vouched.since(0, str(root)) == {
        seen: [digest("one"), digest("two"), digest("one")],
        "/etc/unit": [digest("ü"), "absent"],
    }
    assert vouched.since(3, str(root))[seen] == [digest("two"), digest("one")]
    assert vouched.since(4, str(root)) == {seen: [digest("one")], "/etc/unit": ["absent"]}
    assert vouched.since(5, str(root)) == {}


def test_only_root_can_read_it(root: Path) -> None:
    old_mask = os.umask(0)
    try:
        vouched.vouch(str(root / "etc/a"), "text", str(root))
    finally:
        os.umask(old_mask)
    assert stat.S_IMODE(ledger(root).stat().st_mode) == 0o600
    assert stat.S_IMODE(ledger(root).parent.stat().st_mode) == 0o700


def test_the_same_again_is_one_line(root: Path) -> None:
    for _time in range(3):
        vouched.vouch(str(root / "etc/a"), "one", str(root))
        vouched.vouch(str(root / "etc/b"), None, str(root))
    assert len(ledger(root).read_text().splitlines()) == 2
    count(root, 1)
    vouched.vouch(str(root / "etc/a"), "one", str(root))
    assert vouched.since(1, str(root)) == {"/etc/a": [digest("one")]}


def test_what_is_not_there_is_not_removed_by_us(root: Path) -> None:
    assert not vouched.remove(str(root / "etc/a"), str(root))
    assert vouched.since(0, str(root)) == {}


def test_many_paths_and_what_is_no_text(root: Path) -> None:
    vouched.vouch_digests({"/etc/a": "ab" * 32, "/etc/b": None}, str(root))
    vouched.vouch_digest(str(root / "etc/c"), "link:/etc/a", str(root))
    assert vouched.since(0, str(root)) == {
        "/etc/a": ["ab" * 32],
        "/etc/b": ["absent"],
        "/etc/c": ["link:/etc/a"],
    }


def test_a_path_below_a_link_has_both_its_names(root: Path) -> None:
    (root / "srv").mkdir()
    (root / "etc/cdi").symlink_to("../srv")
    (root / "etc/elsewhere").symlink_to("/somewhere/else")
    (root / "etc/link").symlink_to("/srv")
    for path in ("etc/cdi/a.yaml", "var/run/cdi/b.yaml", "etc/elsewhere/c", "etc/link"):
        vouched.vouch(str(root / path), "x", str(root))
    assert set(vouched.since(0, str(root))) == {
        "/etc/cdi/a.yaml",
        "/srv/a.yaml",
        "/run/cdi/b.yaml",
        "/etc/elsewhere/c",
        "/etc/link",
    }


@pytest.mark.parametrize("torn", ['{"path":"/etc/x","dig', '{"path":"/etc/x"}', "[1]\n", "\0\0\0"])
def test_a_torn_line_spoils_no_other(root: Path, torn: str) -> None:
    vouched.vouch("/etc/a", "one", str(root))
    with ledger(root).open("a") as handle:
        handle.write(torn)
    assert vouched.since(0, str(root)) == {"/etc/a": [digest("one")]}
    vouched.vouch("/etc/b", "two", str(root))
    assert vouched.since(0, str(root)) == {"/etc/a": [digest("one")], "/etc/b": [digest("two")]}


def test_forgetting_what_no_checkpoint_asks_for(root: Path) -> None:
    for number in range(4):
        count(root, number)
        vouched.vouch("/etc/a", str(number), str(root))
    vouched.compact(2, str(ledger(root).parent))
    assert vouched.since(0, str(root)) == {"/etc/a": [digest("2"), digest("3")]}
    assert stat.S_IMODE(ledger(root).stat().st_mode) == 0o600


def test_nothing_is_lost_when_one_writes_while_another_forgets(root: Path) -> None:
    directory = str(ledger(root).parent)
    count(root, 7)
    ended = threading.Event()

    def forget() -> None:
        while not ended.is_set():
            # There is always something to forget.
            with ledger(root).open("a") as handle:
                handle.write(json.dumps({"path": "/old", "absent": True, "after": 1}) + "\n")
            vouched.compact(7, directory)

    vouched.vouch("/etc/first", "x", str(root))
    forgetting = threading.Thread(target=forget)
    forgetting.start()
    names = [f"/etc/{number}" for number in range(40)]
    for name in names:
        vouched.vouch(name, "x", str(root))
    ended.set()
    forgetting.join()
    assert set(vouched.since(7, str(root))) == {"/etc/first", *names}


def test_who_cannot_vouch_does_not_write(root: Path) -> None:
    target = root / "etc/a"
    target.write_text("old")
    texts = [f"new {number}" for number in range(100)]
    with small_disk(root / "var", "16k") as disk:
        # The ledger gets one page of the four that there are, and the others are taken.
        vouched.vouch("/etc/b", "x", str(root))
        (disk / "ballast").write_bytes(b"x" * 12 * 1024)
        with pytest.raises(OSError, match="No space left"):
            _write_all(target, texts, root)
        known = vouched.since(0, str(root))["/etc/a"]
        assert known == [digest(text) for text in texts[: len(known)]]
        assert target.read_text() == texts[len(known) - 1]
        assert ledger(root).read_text().endswith("\n")


def _write_all(path: Path, texts: list[str], root: Path) -> None:
    for text in texts:
        vouched.write(str(path), text, root=str(root))


def test_a_count_that_is_none_stops_the_writer(root: Path) -> None:
    ledger(root).parent.mkdir(parents=True)
    (ledger(root).parent / "sequence").write_text("many\n")
    with pytest.raises(OSError, match="not a number; delete it"):
        vouched.write(str(root / "etc/a"), "x", root=str(root))
    assert not (root / "etc/a").exists()


@pytest.mark.parametrize("start", ["no ledger", "a ledger"])
def test_cut_anywhere_no_file_of_ours_is_unknown(tmp_path: Path, start: str) -> None:
    root, template = tmp_path / "root", tmp_path / "template"
    (template / "etc").mkdir(parents=True)
    (template / "etc/a").write_text("old")
    (template / "etc/b").write_text("old")
    if start == "a ledger":
        vouched.vouch("/etc/c", "x", str(template))

    def prepare() -> None:
        shutil.rmtree(root, ignore_errors=True)
        shutil.copytree(template, root)

    def change() -> None:
        vouched.write(str(root / "etc/a"), "new", root=str(root))
        vouched.remove(str(root / "etc/b"), str(root))

    cuts = 0
    for _cut in every_cut(change, prepare):
        cuts += 1
        known = vouched.since(0, str(root))
        assert (root / "etc/a").read_text() in ("old", "new")
        if (root / "etc/a").read_text() == "new":
            assert known["/etc/a"] == [digest("new")]
        if not (root / "etc/b").exists():
            assert known["/etc/b"] == ["absent"]
        change()
        assert {"/etc/a", "/etc/b"} >= vouched.since(0, str(root)).keys() - {"/etc/c"}
    assert cuts > 10
