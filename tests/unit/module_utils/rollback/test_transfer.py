# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import io
import os
import stat
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.rollback import codec
from ansible_collections.steadygpu.host.plugins.module_utils.rollback.model import (
    Checkpoint,
    Entry,
    Host,
    NewerStoreError,
    RollbackError,
)
from ansible_collections.steadygpu.host.plugins.module_utils.rollback.observation import files
from ansible_collections.steadygpu.host.plugins.module_utils.rollback.storage import (
    documents,
    transfer,
)
from ansible_collections.steadygpu.host.plugins.module_utils.rollback.storage.store import Store
from ansible_collections.steadygpu.host.tests.unit.module_utils.rollback.store_help import (
    contents_of,
    names_below,
    small_disk,
    take,
)

AGENT = "/etc/steadygpu/agent.yml"
DOCKER = "/etc/docker/daemon.json"
LOGIN = "/root/.docker/config.json"
SECRET = "hunter2-hunter2"
CONTENTS = {
    AGENT: "mode: shadow\n",
    DOCKER: '{"http-proxy": "http://me:' + SECRET + '@proxy:3128"}\n',
    LOGIN: '{"auths": {}}\n',
}

Members = list[tuple[tarfile.TarInfo, bytes]]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(str(tmp_path / "here"), now=lambda: 1.7e9)


@pytest.fixture
def other(tmp_path: Path) -> Store:
    return Store(str(tmp_path / "there"))


@pytest.fixture
def archive(tmp_path: Path) -> str:
    return str(tmp_path / "export.tar")


def members_of(path: str) -> Members:
    with tarfile.open(path, "r:") as opened:
        found = [(one, opened.extractfile(one)) for one in opened]
        return [(one, content.read() if content else b"") for one, content in found]


def write_members(path: str, members: Members) -> None:
    with tarfile.open(path, "w") as opened:
        for member, content in members:
            if member.isreg():
                member.size = len(content)
            opened.addfile(member, io.BytesIO(content))


def test_an_exported_checkpoint_is_the_same_elsewhere(
    store: Store, other: Store, archive: str
) -> None:
    made = take(store, CONTENTS)
    assert transfer.export(store, "1", archive) == []
    assert stat.S_IMODE(os.stat(archive).st_mode) == 0o600
    assert transfer.import_(other, archive) == made
    assert other.get(made.id) == made
    assert contents_of(other, made) == CONTENTS
    assert other.verify() == []


def test_the_same_checkpoint_gives_the_same_bytes(store: Store, tmp_path: Path) -> None:
    take(store, CONTENTS)
    for name in ("a", "b"):
        transfer.export(store, "1", str(tmp_path / name))
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_importing_again_changes_nothing(store: Store, other: Store, archive: str) -> None:
    made = take(store, CONTENTS)
    transfer.export(store, made.id, archive)
    assert transfer.import_(store, archive) == made
    transfer.import_(other, archive)
    transfer.import_(other, archive)
    assert len(store.checkpoints()) == len(other.checkpoints()) == 1


def test_an_id_that_another_checkpoint_has_is_not_taken(
    store: Store, other: Store, archive: str
) -> None:
    mine = take(other, CONTENTS, host=Host("another", "gpu2"))
    made = take(store, CONTENTS)
    assert mine.id == made.id
    transfer.export(store, made.id, archive)
    imported = transfer.import_(other, archive)
    assert imported.id != made.id
    assert imported.host == made.host
    assert other.checkpoints() == [mine, imported]
    # And the next one of our own comes after it.
    assert take(other, {AGENT: "x"}).sequence > imported.sequence


def test_the_next_checkpoint_comes_after_an_imported_one(
    store: Store, other: Store, archive: str
) -> None:
    for number in range(5):
        made = take(store, {AGENT: str(number)})
    transfer.export(store, made.id, archive)
    assert transfer.import_(other, archive).sequence == made.sequence
    assert take(other, {AGENT: "x"}).sequence > made.sequence


def test_an_export_without_secrets_holds_none(store: Store, other: Store, archive: str) -> None:
    made = take(store, {**CONTENTS, "/etc/steadygpu/blob": "x" * (1024**2 + 1)})
    left_out = transfer.export(store, made.id, archive, secrets=False)
    assert left_out == [DOCKER, "/etc/steadygpu/blob", LOGIN]
    assert SECRET.encode() not in Path(archive).read_bytes()
    imported = transfer.import_(other, archive)
    # It can be looked at, and what is in it can be restored.
    assert imported == made
    assert other.content(made.state.files[AGENT].digest or "") == CONTENTS[AGENT].encode()
    with pytest.raises(RollbackError, match=r"no object .* export or a backup"):
        other.content(made.state.files[DOCKER].digest or "")


def test_what_a_secret_file_shares_with_another_is_left_out_of_both(
    store: Store, archive: str
) -> None:
    take(store, {LOGIN: "the same", AGENT: "the same"})
    assert transfer.export(store, "1", archive, secrets=False) == [AGENT, LOGIN]
    assert b"the same" not in Path(archive).read_bytes()


def test_an_export_that_fails_leaves_what_was_there(
    store: Store, archive: str, tmp_path: Path
) -> None:
    made = take(store, CONTENTS)
    digest = made.state.files[LOGIN].digest or ""
    (Path(store.directory) / "objects" / digest[:1] / digest[1:]).write_text("damaged")
    Path(archive).write_text("a former one")
    with pytest.raises(RollbackError, match="is damaged"):
        transfer.export(store, made.id, archive)
    assert Path(archive).read_text() == "a former one"
    assert sorted(os.listdir(tmp_path)) == ["export.tar", "here"]
    with pytest.raises(RollbackError, match="could not be written: No such file"):
        transfer.export(store, made.id, str(tmp_path / "no" / "such.tar"))


def test_an_export_to_a_full_disk_leaves_nothing(store: Store, tmp_path: Path) -> None:
    take(store, {AGENT: "x" * 200_000})
    with small_disk(tmp_path / "disk", "64k") as disk:
        with pytest.raises(RollbackError, match="could not be written: No space left"):
            transfer.export(store, "1", str(disk / "export.tar"))
        assert os.listdir(disk) == []


def test_an_import_to_a_full_disk_leaves_the_store_as_it_was(
    store: Store, archive: str, tmp_path: Path
) -> None:
    take(store, {AGENT: "x" * 200_000})
    transfer.export(store, "1", archive)
    with small_disk(tmp_path / "disk", "64k") as disk:
        small = Store(str(disk / "rollback"))
        with small.locked():
            before = names_below(small.directory)
        with pytest.raises(RollbackError, match="no space left"):
            transfer.import_(small, archive)
        assert names_below(small.directory) - {"sequence"} == before
        assert small.checkpoints() == []


# -- archives that somebody else made ----------------------------------------------------


def _named(name: str) -> Callable[[Members], None]:
    def spoil(members: Members) -> None:
        members[1][0].name = name

    return spoil


def _typed(kind: bytes, target: str = "") -> Callable[[Members], None]:
    def spoil(members: Members) -> None:
        members[1][0].type, members[1][0].linkname, members[1][0].size = kind, target, 0

    return spoil


def _other_content(members: Members) -> None:
    members[1] = (members[1][0], b"something else")


def _twice(members: Members) -> None:
    members.append(members[1])


def _one_too_many(members: Members) -> None:
    members.append((tarfile.TarInfo("objects/" + "ab" * 32), b"x"))


def _one_too_few(members: Members) -> None:
    del members[1]


def _another_first(members: Members) -> None:
    members.reverse()


def _too_large(members: Members) -> None:
    members[1] = (members[1][0], b"x" * (files.MOST_BYTES + 1))


def _altered(members: Members) -> None:
    members[0] = (members[0][0], members[0][1].replace(b"0644", b"4755"))


def _rewritten(**fields: object) -> Callable[[Members], None]:
    def spoil(members: Members) -> None:
        document = documents.decode(members[0][1])
        document.update(fields)
        members[0] = (members[0][0], documents.encode(document))

    return spoil


def _with_path(path: str) -> Callable[[Members], None]:
    def spoil(members: Members) -> None:
        document = documents.decode(members[0][1])
        document["state"]["files"][path] = codec.entry_to_json(Entry("directory", 0o755))
        members[0] = (members[0][0], documents.encode(document))

    return spoil


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (_named("../../etc/cron.d/x"), "does not belong into it"),
        (_named("/etc/cron.d/x"), "does not belong into it"),
        (_named("objects/../x"), "does not belong into it"),
        (_typed(tarfile.SYMTYPE, "/etc/shadow"), "not a plain file"),
        (_typed(tarfile.LNKTYPE, "checkpoint.json"), "not a plain file"),
        (_typed(tarfile.DIRTYPE), "not a plain file"),
        (_typed(tarfile.FIFOTYPE), "not a plain file"),
        (_other_content, "is damaged: its content has the SHA-256"),
        (_twice, "is in it twice"),
        (_one_too_many, "does not belong into it"),
        (_one_too_few, "the content of .* is missing"),
        (_another_first, "does not begin with checkpoint.json"),
        (_too_large, "is the most that can be"),
        (_altered, "checksum differs"),
        (_rewritten(kind="window"), "is not a checkpoint but a 'window'"),
        (_rewritten(id="../../x"), "no id of sequence 1"),
        (_rewritten(id="9999999999-00000000", sequence=9999999999), "no id of sequence"),
        (_with_path("/etc/../root/x"), "no plain absolute path"),
        (_with_path("relative"), "no plain absolute path"),
        (_with_path("//etc/x"), "no plain absolute path"),
    ],
)
def test_an_archive_that_is_not_as_we_made_it_is_refused(
    store: Store, other: Store, archive: str, spoil: Callable[[Members], None], said: str
) -> None:
    take(store, CONTENTS)
    transfer.export(store, "1", archive)
    present: Checkpoint = take(other, {AGENT: "mine"})
    before = names_below(other.directory)
    members = members_of(archive)
    spoil(members)
    write_members(archive, members)
    with pytest.raises(RollbackError, match=rf"{archive} is no export.*{said}.*Nothing was imp"):
        transfer.import_(other, archive)
    assert names_below(other.directory) == before
    assert other.checkpoints() == [present]


def test_an_archive_of_a_newer_program_is_refused_by_name(
    store: Store, other: Store, archive: str
) -> None:
    take(store, CONTENTS)
    transfer.export(store, "1", archive)
    members = members_of(archive)
    _rewritten(schema=7)(members)
    write_members(archive, members)
    with pytest.raises(NewerStoreError, match="has schema 7, this program knows up to 1"):
        transfer.import_(other, archive)


@pytest.mark.parametrize("length", [0, 100, 512, 700, 1500])
def test_a_shortened_archive_is_refused(
    store: Store, other: Store, archive: str, length: int
) -> None:
    take(store, CONTENTS)
    transfer.export(store, "1", archive)
    Path(archive).write_bytes(Path(archive).read_bytes()[:length])
    with pytest.raises(RollbackError):
        transfer.import_(other, archive)
    assert other.checkpoints() == []


def test_what_is_no_archive_is_refused(other: Store, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("just a text\n" * 200)
    with pytest.raises(RollbackError, match="is no export of a checkpoint"):
        transfer.import_(other, str(tmp_path / "text"))
    with pytest.raises(RollbackError, match="cannot be read: No such file"):
        transfer.import_(other, str(tmp_path / "nothing"))
