# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What lies at the paths of a checkpoint: read as it is, through nobody's tricks."""

from __future__ import annotations

import hashlib
import os
import socket
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Callable

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.rollback import scope
from ansible_collections.steadygpu.host.plugins.module_utils.rollback.model import (
    ABSENT,
    Area,
    Entry,
    RollbackError,
)
from ansible_collections.steadygpu.host.plugins.module_utils.rollback.observation import files

ME = {"uid": os.geteuid(), "gid": os.getegid()}
ROOT_ONLY = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: owners and mounts")


def read(root: Path, *patterns: str, owner: str = "own") -> dict[str, Entry]:
    areas = [Area(pattern, owner) for pattern in patterns]
    return files.read(areas, files.MemorySink(), str(root))


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def test_a_file_is_its_content_mode_owner_and_attributes(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b"
    path.parent.mkdir()
    path.write_bytes(b"content")
    path.chmod(0o640)
    os.setxattr(path, "user.note", b"\0\xff")
    sink = files.MemorySink()
    found = files.read([Area("/a/b", "own")], sink, str(tmp_path))
    entry = found["/a/b"]
    assert entry == Entry(
        "file", 0o640, os.geteuid(), os.getegid(), {"user.note": b"\0\xff"}, sha256(b"content"), 7
    )
    assert sink.content(sha256(b"content")) == b"content"
    assert found["/a"].kind == "directory"


def test_absence_is_kept_with_the_directories_that_would_be_made(tmp_path: Path) -> None:
    assert read(tmp_path, "/a/b/c", "/x/*.conf") == {
        "/a": ABSENT,
        "/a/b": ABSENT,
        "/a/b/c": ABSENT,
        "/x": ABSENT,
    }
    assert read(tmp_path, "/a/b/c", owner="seen") == {"/a/b/c": ABSENT}


def test_a_bare_host_can_be_read(tmp_path: Path) -> None:
    found = files.read(scope.areas(), files.MemorySink(), str(tmp_path))
    assert found["/etc/docker/daemon.json"] == ABSENT
    assert found["/etc/cdi"] == ABSENT
    assert "/var/lib/steadygpu" not in found
    assert all(entry == ABSENT for entry in found.values())


def test_patterns_find_what_a_shell_would_find(tmp_path: Path) -> None:
    for name in ("x.slice.d", "y.service.d", ".z.slice.d"):
        (tmp_path / "u" / name).mkdir(parents=True)
        (tmp_path / "u" / name / "a.conf").touch()
        (tmp_path / "u" / name / "a.txt").touch()
    assert sorted(read(tmp_path, "/u/*.slice.d/*.conf")) == [
        "/u",
        "/u/x.slice.d",
        "/u/x.slice.d/a.conf",
    ]


def test_two_stars_are_everything_below(tmp_path: Path) -> None:
    (tmp_path / "a" / "b" / "c").mkdir(parents=True)
    (tmp_path / "a" / ".hidden").touch()
    (tmp_path / "a" / "b" / "c" / "d").touch()
    found = read(tmp_path, "/a/**")
    assert sorted(found) == ["/a", "/a/.hidden", "/a/b", "/a/b/c", "/a/b/c/d"]
    assert found["/a/b/c"].kind == "directory"


def test_what_a_restore_left_beside_a_path_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    for name in ("x", "x.steadygpu-conflict", "x.steadygpu-conflict-12", ".x.steadygpu-0123abcd"):
        (tmp_path / "a" / name).touch()
    assert sorted(read(tmp_path, "/a/*", "/a/**")) == ["/a", "/a/x"]


def test_the_first_area_that_matches_reads_the_path_once(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("x")
    seen = []

    class Counting(files.MemorySink):
        def put_file(self, fd: int) -> tuple[str, int]:
            seen.append(fd)
            return super().put_file(fd)

    files.read([Area("/x", "own"), Area("/*", "seen")], Counting(), str(tmp_path))
    assert len(seen) == 1


def test_names_that_are_no_text(tmp_path: Path) -> None:
    os.makedirs(tmp_path / "a")
    with open(os.path.join(os.fsencode(tmp_path), b"a", b"\xff\n*"), "wb") as handle:
        handle.write(b"x")
    found = read(tmp_path, "/a/**")
    assert found[os.fsdecode(b"/a/\xff\n*")].digest == sha256(b"x")


# -- links ------------------------------------------------------------------------------


def test_a_link_is_itself_and_not_what_it_leads_to(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "link").symlink_to("/etc/shadow")
    (tmp_path / "a" / "loop").symlink_to(".")
    (tmp_path / "a" / "dangling").symlink_to("nowhere")
    found = read(tmp_path, "/a/**", "/a/link")
    kinds = {path: (entry.kind, entry.target) for path, entry in found.items()}
    assert kinds == {
        "/a": ("directory", None),
        "/a/link": ("link", "/etc/shadow"),
        "/a/loop": ("link", "."),
        "/a/dangling": ("link", "nowhere"),
    }


def test_a_directory_that_an_administrator_moved_is_followed_below_the_root(
    tmp_path: Path,
) -> None:
    (tmp_path / "srv" / "docker").mkdir(parents=True)
    (tmp_path / "srv" / "docker" / "daemon.json").write_text("{}")
    (tmp_path / "etc").mkdir()
    for target in ("/srv/docker", "../srv/../srv/docker"):
        (tmp_path / "etc" / "docker").symlink_to(target)
        found = read(tmp_path, "/etc/docker/daemon.json")
        assert found["/etc/docker"].kind == "link"
        assert found["/etc/docker/daemon.json"].digest == sha256(b"{}")
        (tmp_path / "etc" / "docker").unlink()


def test_links_that_lead_to_themselves_end(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    assert read(tmp_path, "/a/x")["/a/x"] == ABSENT


@ROOT_ONLY
@pytest.mark.parametrize("trick", ["their link", "their directory"])
def test_a_link_that_others_may_replace_is_not_followed(tmp_path: Path, trick: str) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "key").write_text("k")
    (tmp_path / "home" / "a").symlink_to("/secret")
    os.chown(
        tmp_path / "home" / ("a" if trick == "their link" else ""),
        1000,
        1000,
        follow_symlinks=False,
    )
    assert read(tmp_path, "/home/a/key")["/home/a/key"] == Entry("other")
    assert list(read(tmp_path, "/home/a/*", owner="seen")) == []
    with pytest.raises(files.UntrustedLinkError, match="/home/a is a link of user"):
        files.open_directory("/home/a", str(tmp_path))


# -- what is no configuration file -------------------------------------------------------


def test_devices_sockets_and_pipes_are_told_and_never_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "socket"))
        found = read(tmp_path, "/*")
    assert {path: entry.kind for path, entry in found.items()} == {
        "/fifo": "other",
        "/socket": "other",
    }


def test_a_very_large_file_is_told_and_not_kept(tmp_path: Path) -> None:
    with open(tmp_path / "large", "wb") as handle:
        handle.truncate(files.MOST_BYTES + 1)
    entry = read(tmp_path, "/large")["/large"]
    assert (entry.kind, entry.size, entry.digest) == ("other", files.MOST_BYTES + 1, None)


@ROOT_ONLY
def test_a_mount_is_told_and_not_entered(tmp_path: Path) -> None:
    (tmp_path / "a" / "mounted").mkdir(parents=True)
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "none", str(tmp_path / "a" / "mounted")], check=False
    )
    if mounted.returncode != 0:
        pytest.skip("mounting is not allowed here")
    try:
        (tmp_path / "a" / "mounted" / "x").touch()
        assert sorted(read(tmp_path, "/a/**")) == ["/a", "/a/mounted"]
    finally:
        subprocess.run(["umount", str(tmp_path / "a" / "mounted")], check=True)


def test_a_tree_without_end_is_refused(tmp_path: Path) -> None:
    (tmp_path / "/".join("a" * 70)).mkdir(parents=True)
    with pytest.raises(RollbackError, match="more than 64 directories deep"):
        read(tmp_path, "/a/**")


# -- while others write ------------------------------------------------------------------


class Disturbed(files.MemorySink):
    """Something happens while a file is read, the first ``times`` times."""

    def __init__(self, happens: Callable[[], object], times: int) -> None:
        super().__init__()
        self._happens = happens
        self._times = times

    def put(self, chunks: Iterable[bytes]) -> tuple[str, int]:
        done = super().put(chunks)
        if self._times:
            self._times -= 1
            self._happens()
        return done


def test_a_file_that_changes_while_it_is_read_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text("old")
    sink = Disturbed(lambda: path.write_text("newer"), times=1)
    entry = files.read([Area("/x", "own")], sink, str(tmp_path))["/x"]
    assert (entry.digest, entry.size) == (sha256(b"newer"), 5)


def test_a_mode_that_changes_while_the_file_is_read_is_the_new_one(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text("x")
    path.chmod(0o600)
    sink = Disturbed(lambda: path.chmod(0o644), times=1)
    assert files.read([Area("/x", "own")], sink, str(tmp_path))["/x"].mode == 0o644


def test_a_file_that_never_stands_still_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text("x")

    def grow() -> None:
        with path.open("a") as handle:
            handle.write("x")

    with pytest.raises(RollbackError, match=r"/x changed each of the 3 times"):
        files.read([Area("/x", "own")], Disturbed(grow, times=9), str(tmp_path))


def test_a_file_that_vanishes_is_absent(tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    (tmp_path / "b").touch()

    def vanish() -> None:
        (tmp_path / "b").unlink()

    areas = [Area("/*", "own"), Area("/b", "own")]
    found = files.read(areas, Disturbed(vanish, times=1), str(tmp_path))
    assert (found["/a"].kind, found["/b"]) == ("file", ABSENT)


def test_a_file_is_never_taken_for_half_of_another(tmp_path: Path) -> None:
    """Renamed over while it is read: it is the old one as a whole."""
    path = tmp_path / "x"
    path.write_text("old")
    (tmp_path / "new").write_text("newer")
    sink = Disturbed(lambda: os.replace(tmp_path / "new", path), times=1)
    entry = files.read([Area("/x", "own")], sink, str(tmp_path))["/x"]
    assert (entry.digest, entry.size) in [(sha256(b"old"), 3), (sha256(b"newer"), 5)]


def test_a_store_that_is_full_is_told_with_the_path(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("x")

    def full() -> None:
        raise OSError(28, "No space left on device")

    with pytest.raises(RollbackError, match=r"the content of /x \(1 bytes\).*No space left"):
        files.read([Area("/x", "own")], Disturbed(full, times=1), str(tmp_path))


def test_what_may_not_be_read_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "x").write_text("x")

    def denied(*_args: object, **_options: object) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(files, "open_file", denied)
    with pytest.raises(RollbackError, match="/x could not be read: Permission denied; run as root"):
        read(tmp_path, "/x")


# -- many -------------------------------------------------------------------------------


def test_a_hundred_thousand_files() -> None:
    # Made in memory where that is possible: it is the reading that is tried.
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=memory) as root:
        for directory in (f"{root}/a/{number}" for number in range(100)):
            os.makedirs(directory)
            for index in range(1000):
                os.close(os.open(f"{directory}/{index}", os.O_CREAT | os.O_WRONLY, 0o600))
        found = read(Path(root), "/a/**")
    assert len(found) == 100 * 1000 + 100 + 1
    assert found["/a/99/999"] == Entry("file", 0o600, **ME, digest=sha256(b""))


def test_only_small_contents_are_remembered_and_not_too_many() -> None:
    sink = files.MemorySink(most_each=4, most_together=6)
    digests = [sink.put([content])[0] for content in (b"large", b"1234", b"1234", b"12", b"1")]
    assert [sink.content(digest) for digest in digests] == [None, b"1234", b"1234", b"12", None]
    assert sink.put([b"lar", b"ge"]) == (sha256(b"large"), 5)
