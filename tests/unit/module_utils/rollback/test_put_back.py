# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A path becomes its former self: wholly, or not at all and with a reason."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import stat
import struct
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, replace
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.steadygpu.host.plugins.module_utils.rollback.model import (
    ABSENT,
    Area,
    Entry,
    RollbackError,
)
from ansible_collections.steadygpu.host.plugins.module_utils.rollback.observation import files
from ansible_collections.steadygpu.host.plugins.module_utils.rollback.way_back import (
    beside,
    dress,
    put_back,
)

ROOT_ONLY = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: owners, mounts, chattr")
ME = {"uid": os.geteuid(), "gid": os.getegid()}


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def file_entry(content: bytes, mode: int = 0o644, **fields: Any) -> Entry:
    return Entry(
        "file", mode, digest=sha256(content), size=len(content), **{**ME, "xattrs": {}, **fields}
    )


CONTENTS = {sha256(content): content for content in (b"former", b"", b"x" * 3_000_000)}
FORMER = file_entry(b"former")
LINK = Entry("link", 0o777, target="nowhere", **ME)
DIRECTORY = Entry("directory", 0o750, **ME)


def content(digest: str) -> BinaryIO:
    return BytesIO(CONTENTS[digest])


def state(root: Path) -> dict[str, Entry]:
    """Everything below ``root``, also what lies beside restored paths."""
    found: dict[str, Entry] = {}
    for path in sorted(root.rglob("*")):
        fd = files.open_directory(str(path.parent.relative_to(root)), str(root))
        assert fd is not None
        name = f"/{path.relative_to(root)}"
        found[name] = files.look(fd, name, files.MemorySink())
        os.close(fd)
    return found


def make(root: Path, kind: str) -> None:
    """Put something of ``kind`` at /x."""
    path = root / "x"
    if kind == "file":
        path.write_text("present")
    elif kind == "link":
        path.symlink_to("elsewhere")
    elif kind == "fifo":
        os.mkfifo(path)
    elif "directory" in kind:
        path.mkdir()
        if kind == "full directory":
            (path / "theirs").touch()


# -- every kind becomes every other -----------------------------------------------------


@pytest.mark.parametrize("wanted", [FORMER, file_entry(b"", 0o4711), LINK, DIRECTORY, ABSENT])
@pytest.mark.parametrize("present", ["absent", "file", "link", "empty directory"])
def test_a_path_becomes_what_it_was(tmp_path: Path, present: str, wanted: Entry) -> None:
    make(tmp_path, present)
    if wanted.kind == "directory" and present in ("file", "link"):
        with pytest.raises(RollbackError, match=f"/x is a {present} now and was a directory"):
            put_back.put_back("/x", wanted, content, str(tmp_path))
        assert list(state(tmp_path)) == ["/x"]
        return
    changed = put_back.put_back("/x", wanted, content, str(tmp_path))
    assert changed is (present != wanted.kind or wanted.there)
    assert state(tmp_path) == ({"/x": wanted} if wanted.there else {})
    assert put_back.same("/x", wanted, str(tmp_path))
    assert put_back.put_back("/x", wanted, content, str(tmp_path)) is False


@pytest.mark.parametrize("wanted", [FORMER, LINK, ABSENT])
def test_a_directory_with_something_in_it_stays(tmp_path: Path, wanted: Entry) -> None:
    make(tmp_path, "full directory")
    before = state(tmp_path)
    with pytest.raises(RollbackError, match=r"/x is a directory with 1 entries \(theirs\)"):
        put_back.put_back("/x", wanted, content, str(tmp_path), conflict=True)
    assert state(tmp_path) == before


@pytest.mark.parametrize("wanted", [FORMER, LINK, DIRECTORY, ABSENT])
def test_a_device_socket_or_pipe_stays(tmp_path: Path, wanted: Entry) -> None:
    make(tmp_path, "fifo")
    with pytest.raises(RollbackError, match="/x is a device, socket or FIFO now"):
        put_back.put_back("/x", wanted, content, str(tmp_path), conflict=True)
    assert [entry.kind for entry in state(tmp_path).values()] == ["other"]


def test_what_was_a_device_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(RollbackError, match="/x was no file, link or directory"):
        put_back.put_back("/x", Entry("other"), content, str(tmp_path))


def test_missing_parents_are_made_and_an_absent_file_needs_none(tmp_path: Path) -> None:
    assert not put_back.put_back("/a/b/x", ABSENT, content, str(tmp_path))
    assert state(tmp_path) == {}
    assert put_back.put_back("/a/b/x", FORMER, content, str(tmp_path))
    parent = Entry("directory", 0o755, **ME)
    assert state(tmp_path) == {"/a": parent, "/a/b": parent, "/a/b/x": FORMER}


def test_a_large_content_and_names_that_are_no_text(tmp_path: Path) -> None:
    wanted = file_entry(b"x" * 3_000_000)
    path = "/" + os.fsdecode(b"\xff\n" + b"n" * 253)
    assert put_back.put_back(path, wanted, content, str(tmp_path))
    assert state(tmp_path) == {path: wanted}


# -- owner, mode, attributes ------------------------------------------------------------


def acl(kind: str, user: int) -> dict[str, bytes]:
    """An ACL that lets ``user`` read and write, as linux/posix_acl_xattr.h lays it out."""
    everybody = 0xFFFFFFFF
    entries = [
        (0x01, 6, everybody),
        (0x02, 6, user),
        (0x04, 4, everybody),
        (0x10, 6, everybody),
        (0x20, 0, everybody),
    ]
    packed = b"".join(struct.pack("<HHI", *entry) for entry in entries)
    return {f"system.posix_acl_{kind}": struct.pack("<I", 2) + packed}


@pytest.mark.parametrize(
    ("change", "same_inode"),
    [
        ({"mode": 0o600}, True),
        ({"mode": 0o4755}, True),
        ({"xattrs": {"user.a": b"1"}}, True),
        ({"xattrs": {"user.a": b"1"}, "mode": 0o600}, False),
        pytest.param({"uid": 1234, "gid": 4321}, True, marks=ROOT_ONLY),
        pytest.param({"uid": 1234, "mode": 0o4755}, False, marks=ROOT_ONLY),
        pytest.param({"mode": 0o660, "xattrs": acl("access", 1234)}, False, marks=ROOT_ONLY),
        pytest.param({"xattrs": {"security.selinux": b"l"}}, True, marks=ROOT_ONLY),
    ],
)
def test_what_differs_beside_the_content_is_set_at_once(
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
    change: dict[str, Any],
    same_inode: bool,
) -> None:
    (tmp_path / "x").write_text("former")
    inode = (tmp_path / "x").stat().st_ino
    # So that no other file gets its number.
    os.link(tmp_path / "x", tmp_path_factory.mktemp("beside") / "x")
    there = replace(FORMER, **change)
    for wanted in (there, FORMER):
        assert put_back.put_back("/x", wanted, content, str(tmp_path), conflict=True)
        found = state(tmp_path)
        if "security.selinux" in there.xattrs:
            # Taken while SELinux was off: whatever is there now is right.
            assert put_back.same("/x", wanted, str(tmp_path))
            return
        assert found == {"/x": wanted}
    # In place where one call does it; nothing is ever half set.
    assert ((tmp_path / "x").stat().st_ino == inode) is same_inode


@st.composite
def entries(draw: st.DrawFn) -> Entry:
    """Something to be at a path; by anybody, where only root could make it."""
    kind = draw(st.sampled_from(["file", "file", "link", "directory", "absent"]))
    root = os.geteuid() == 0
    owner = {"uid": draw(st.integers(0, 2)), "gid": draw(st.integers(0, 2))} if root else ME
    if kind == "absent":
        return ABSENT
    if kind == "link":
        return Entry(kind, 0o777, target=draw(st.sampled_from(["a", "/b"])), **owner)
    names = ["user.a", "user.b", *(["trusted.c"] if root else [])]
    values = st.binary(max_size=3)
    xattrs = draw(st.dictionaries(st.sampled_from(names), values, max_size=2))
    mode = draw(st.integers(0, 0o1777)) | (0 if root else 0o700)
    if kind == "directory":
        return Entry(kind, mode, xattrs=xattrs, **owner)
    chosen = draw(st.sampled_from([b"former", b""]))
    return file_entry(chosen, mode, xattrs=xattrs, **owner)


@given(st.lists(entries(), min_size=2, max_size=4))
def test_any_state_follows_any_other(
    tmp_path_factory: pytest.TempPathFactory, wanted: list[Entry]
) -> None:
    root = tmp_path_factory.mktemp("any")
    with pytest.MonkeyPatch.context() as patch:
        # Nothing here loses power.
        patch.setattr(os, "fsync", lambda _fd: None)
        for entry in wanted:
            before = state(root).get("/x", ABSENT)
            if entry.kind == "directory" and before.kind in ("file", "link"):
                put_back.put_back("/x", ABSENT, content, str(root))
                before = ABSENT
            assert put_back.same("/x", entry, str(root)) is (before == entry)
            assert put_back.put_back("/x", entry, content, str(root)) is (before != entry)
            assert state(root) == ({"/x": entry} if entry.there else {})


@ROOT_ONLY
def test_links_and_directories_have_owners_too(tmp_path: Path) -> None:
    for name, wanted in (("/l", replace(LINK, uid=7)), ("/d", replace(DIRECTORY, gid=7))):
        for entry in (wanted, replace(wanted, uid=8), wanted):
            assert put_back.put_back(name, entry, content, str(tmp_path))
            assert state(tmp_path)[name] == entry


@ROOT_ONLY
def test_a_default_acl_of_the_directory_is_not_inherited(tmp_path: Path) -> None:
    for name, value in acl("default", 1234).items():
        os.setxattr(tmp_path, name, value)
    assert put_back.put_back("/x", FORMER, content, str(tmp_path))
    assert put_back.put_back("/d", DIRECTORY, content, str(tmp_path))
    assert state(tmp_path) == {"/x": FORMER, "/d": DIRECTORY}


USERS = [(0, 0), (1, 0), (1, 1), (2, 1), (3, 3)]
modes = st.integers(0, 0o777)
owners = st.tuples(st.integers(1, 2), st.integers(0, 1))


def allowed(seen: tuple[int, int, int]) -> set[tuple[tuple[int, int], int]]:
    """Which of USERS has which permission bit with (mode, uid, gid)."""
    mode, uid, gid = seen
    granted = set()
    for user, group in USERS:
        shift = 6 if user == uid else 3 if group == gid else 0
        granted |= {((user, group), bit) for bit in (4, 2, 1) if (mode >> shift) & bit}
    return granted


@ROOT_ONLY
@given(before=modes, owner_before=owners, after=modes, owner_after=owners)
def test_nobody_gets_access_on_the_way_that_neither_state_gives(
    tmp_path_factory: pytest.TempPathFactory,
    before: int,
    owner_before: tuple[int, int],
    after: int,
    owner_after: tuple[int, int],
) -> None:
    path = tmp_path_factory.getbasetemp() / "dressed"
    path.mkdir(exist_ok=True)
    os.chown(path, *owner_before)
    path.chmod(before)
    seen: list[tuple[int, int, int]] = []

    def watched(name: str, patch: pytest.MonkeyPatch) -> None:
        call = getattr(os, name)

        def wrapped(fd: int, *arguments: int) -> None:
            call(fd, *arguments)
            now = os.fstat(fd)
            seen.append((stat.S_IMODE(now.st_mode), now.st_uid, now.st_gid))

        patch.setattr(os, name, wrapped)

    fd = os.open(path, os.O_RDONLY)
    wanted = Entry("directory", after, *owner_after)
    try:
        with pytest.MonkeyPatch.context() as patch:
            watched("fchmod", patch)
            watched("fchown", patch)
            dress.dress(fd, wanted)
    finally:
        os.close(fd)
    first, last = (before, *owner_before), (after, *owner_after)
    assert [first, *seen][-1] == last
    for between in seen:
        assert allowed(between) <= allowed(first) | allowed(last)


# -- what others changed ----------------------------------------------------------------


def test_what_others_wrote_is_kept_beside_with_all_it_has(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text("theirs")
    path.chmod(0o600)
    os.setxattr(path, "user.a", b"1")
    theirs = file_entry(b"theirs", 0o600, xattrs={"user.a": b"1"})
    assert put_back.put_back("/x", FORMER, content, str(tmp_path), conflict=True)
    assert state(tmp_path) == {"/x": FORMER, "/x.steadygpu-conflict": theirs}
    # It is in nobody's way, and says nothing of the checkpoint's paths.
    found = files.read([Area("/*", "own")], files.MemorySink(), str(tmp_path))
    assert list(found) == ["/x"]


def test_each_conflict_is_kept_once(tmp_path: Path) -> None:
    for theirs in ("one", "two", "one", "two", "three"):
        (tmp_path / "x").write_text(theirs)
        put_back.put_back("/x", FORMER, content, str(tmp_path), conflict=True)
    kept = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert kept == {
        "x": "former",
        "x.steadygpu-conflict": "one",
        "x.steadygpu-conflict-2": "two",
        "x.steadygpu-conflict-3": "three",
    }


@pytest.mark.parametrize("wanted", [FORMER, ABSENT])
def test_a_link_of_others_is_kept_as_a_link(tmp_path: Path, wanted: Entry) -> None:
    make(tmp_path, "link")
    put_back.put_back("/x", wanted, content, str(tmp_path), conflict=True)
    assert os.readlink(tmp_path / "x.steadygpu-conflict") == "elsewhere"
    assert (tmp_path / "x").exists() is wanted.there


def test_a_new_file_of_others_is_kept_when_there_was_none(tmp_path: Path) -> None:
    make(tmp_path, "file")
    assert put_back.put_back("/x", ABSENT, content, str(tmp_path), conflict=True)
    assert [path.name for path in tmp_path.iterdir()] == ["x.steadygpu-conflict"]


@pytest.mark.parametrize("kind", ["file", "link"])
def test_a_file_system_without_hard_links_gets_a_copy(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_arguments: object, **_options: object) -> None:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "link", refused)
    make(tmp_path, kind)
    before = state(tmp_path)["/x"]
    assert put_back.keep_conflict("/x", str(tmp_path)) == "/x.steadygpu-conflict"
    assert state(tmp_path) == {"/x": before, "/x.steadygpu-conflict": before}


@pytest.mark.parametrize("kind", ["absent", "full directory", "fifo"])
def test_there_is_no_conflict_where_there_is_nothing_to_keep(tmp_path: Path, kind: str) -> None:
    make(tmp_path, kind)
    before = state(tmp_path)
    assert put_back.keep_conflict("/x", str(tmp_path)) is None
    assert put_back.keep_conflict("/missing/x", str(tmp_path)) is None
    assert state(tmp_path) == before


# -- when it cannot be done -------------------------------------------------------------


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own, of 256 KiB."""
    if os.geteuid() != 0:
        pytest.skip("needs root: a file system of its own")
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k", "none", str(tmp_path)], check=False
    )
    if done.returncode != 0:
        pytest.skip("mounting is not allowed here")
    yield tmp_path
    subprocess.run(["umount", str(tmp_path)], check=True)


def refused(root: Path, wanted: Entry) -> RollbackError:
    """Putting ``wanted`` back at /x fails, and everything is as it was."""
    before = state(root)
    with pytest.raises(RollbackError) as caught:
        put_back.put_back("/x", wanted, content, str(root), conflict=True)
    after = state(root)
    after.pop("/x.steadygpu-conflict", None)
    assert after == before
    return caught.value


def test_a_full_file_system_keeps_the_old_file(small: Path) -> None:
    (small / "x").write_text("present")
    error = refused(small, file_entry(b"x" * 3_000_000))
    assert "no space is left in the file system of / (3000000 bytes are needed)" in str(error)
    assert isinstance(error.__cause__, OSError)
    assert error.__cause__.errno == errno.ENOSPC


def test_a_read_only_file_system_keeps_the_old_file(small: Path) -> None:
    (small / "x").write_text("present")
    subprocess.run(["mount", "-o", "remount,ro", str(small)], check=True)
    for wanted in (FORMER, LINK, ABSENT, file_entry(b"former", 0o600)):
        error = refused(small, wanted)
        assert "the file system of / is read-only; remount it writable" in str(error)


@ROOT_ONLY
@pytest.mark.parametrize("wanted", [FORMER, LINK, ABSENT])
@pytest.mark.parametrize("immutable", ["x", "."])
def test_an_immutable_file_is_named(tmp_path: Path, wanted: Entry, immutable: str) -> None:
    (tmp_path / "x").write_text("present")
    done = subprocess.run(["chattr", "+i", str(tmp_path / immutable)], check=False)
    if done.returncode != 0:
        pytest.skip("this file system knows no immutable files")
    try:
        error = refused(tmp_path, wanted)
    finally:
        subprocess.run(["chattr", "-i", str(tmp_path / immutable)], check=True)
    name = "/x" if immutable == "x" else "/"
    assert f"{name} is immutable; allow the change with chattr -i {name}" in str(error)


def test_an_owner_that_cannot_be_here_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unknown(*_arguments: object, **_options: object) -> None:
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))

    # As a container without that user in its namespace answers.
    monkeypatch.setattr(os, "fchown", unknown)
    (tmp_path / "x").write_text("present")
    error = refused(tmp_path, file_entry(b"former", uid=1234, gid=4321))
    assert "its owner 1234:4321 or one of its attributes" in str(error)


def test_a_damaged_content_never_arrives(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("present")
    with pytest.raises(RollbackError, match="is damaged"):
        put_back.put_back("/x", FORMER, lambda _digest: BytesIO(b"formes"), str(tmp_path))
    assert [path.read_text() for path in tmp_path.iterdir()] == ["present"]


@ROOT_ONLY
def test_a_link_that_others_may_replace_is_not_written_through(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "home").mkdir()
    os.chown(tmp_path / "home", 1000, 1000)
    (tmp_path / "home" / "a").symlink_to("/etc")
    for wanted in (FORMER, ABSENT):
        with pytest.raises(RollbackError, match="/home/a is a link of user"):
            put_back.put_back("/home/a/x", wanted, content, str(tmp_path))
    assert list((tmp_path / "etc").iterdir()) == []


def test_an_error_of_one_path_does_not_keep_the_others(tmp_path: Path) -> None:
    make(tmp_path, "fifo")
    items = [
        put_back.Item("/d", DIRECTORY),
        put_back.Item("/d/a", FORMER),
        put_back.Item("/x", FORMER),
        put_back.Item("/d/b", file_entry(b"never stored")),
        *(put_back.Item(f"/d/{number}", FORMER) for number in range(100)),
        put_back.Item("/d/a", ABSENT),
    ]
    damaged = {sha256(b"never stored"): b"something else"}
    results = put_back.put_back_all(
        items, lambda digest: BytesIO({**CONTENTS, **damaged}[digest]), str(tmp_path)
    )
    failed = [i for i, result in enumerate(results) if isinstance(result, RollbackError)]
    assert failed == [2, 3]
    assert set(results) - {results[2], results[3]} == {True}
    assert sorted(path.name for path in (tmp_path / "d").iterdir()) == sorted(map(str, range(100)))


# -- killed -----------------------------------------------------------------------------


def test_what_a_killed_run_left_is_swept_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    for name in ("x", ".x.y", ".x.steadygpu-0123abcx", "x.steadygpu-conflict"):
        (tmp_path / "d" / name).touch()
    (tmp_path / "d" / beside.temporary_name("x")).touch()
    (tmp_path / "d" / beside.temporary_name("l")).symlink_to("x")
    (tmp_path / "d" / beside.temporary_name("d")).mkdir()
    removed = put_back.sweep_leftovers(["/d", "/missing"], str(tmp_path))
    assert len(removed) == 3
    assert sorted(path.name for path in (tmp_path / "d").iterdir()) == [
        ".x.steadygpu-0123abcx",
        ".x.y",
        "x",
        "x.steadygpu-conflict",
    ]


def test_killed_before_any_call_every_path_is_old_or_new_and_again_completes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", lambda _fd: None)
    template = tmp_path / "template"
    (template / "gone").mkdir(parents=True)
    for name in ("changed", "theirs", "restyled", "gone/file"):
        (template / name).write_text("former" if name == "restyled" else "present")
    (template / "link").symlink_to("elsewhere")
    (template / "empty").mkdir()
    attributed = file_entry(b"former", 0o640, xattrs={"user.a": b"1"})
    wanted = {
        "/made": DIRECTORY,
        "/made/new": attributed,
        "/changed": FORMER,
        "/theirs": FORMER,
        "/restyled": attributed,
        "/empty": FORMER,
        "/link": LINK,
        "/gone/file": ABSENT,
        "/gone": ABSENT,
    }
    items = [put_back.Item(path, e, conflict=path == "/theirs") for path, e in wanted.items()]
    plan = tmp_path / "plan.json"
    listed = []
    for item in items:
        fields = asdict(item.entry)
        fields["xattrs"] = {name: value.decode() for name, value in item.entry.xattrs.items()}
        listed.append([item.path, fields, item.conflict])
    contents = {sha256(b"former"): "former"}
    plan.write_text(json.dumps({"items": listed, "contents": contents}))
    (tmp_path / "cuts").mkdir()
    program = Path(__file__).with_name("put_back_program.py")
    done = subprocess.run(
        [sys.executable, str(program), str(template), str(tmp_path / "cuts"), str(plan)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    count = int(done.stdout)
    assert count > 30
    before = state(template)
    after = {path: entry for path, entry in wanted.items() if entry.there}
    for root in (tmp_path / "cuts").iterdir():
        found = state(root)
        for path, entry in wanted.items():
            # An empty directory makes room before the file arrives.
            possible = {"/empty": [ABSENT]}.get(path, [])
            possible += [before.get(path, ABSENT), entry]
            assert found.get(path, ABSENT) in possible, (root.name, path)
        if found["/theirs"] == FORMER:
            assert found["/theirs.steadygpu-conflict"] == before["/theirs"]
        assert not any(
            isinstance(result, RollbackError)
            for result in put_back.put_back_all(items, content, str(root))
        )
        put_back.sweep_leftovers(["/", "/made"], str(root))
        assert state(root) == {**after, "/theirs.steadygpu-conflict": before["/theirs"]}
