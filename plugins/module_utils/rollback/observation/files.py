# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What lies at the paths of a checkpoint now: kind, mode, owner, attributes and content.

Every path is walked component by component, so that nobody who may write somewhere on the way can
lead a reader, or a writer who runs as root, to another place by swapping a directory for a link.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import stat
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import NoReturn, Protocol

from .. import scope
from ..model import ABSENT, Area, Entry, RollbackError

# No configuration is this large; a path that the user declared may be. It is told, not kept.
MOST_BYTES = 64 * 1024 * 1024
_ATTEMPTS = 3
_PAUSE_S = 0.05
_DEEPEST = 64
_MOST_LINKS = 40
_CHUNK = 1024 * 1024

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
# Stands for the descriptor of a directory that must not be entered.
UNTRUSTED = -1
# What an open without following says of something that is no directory, or no longer there.
_NO_DIRECTORY = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)


class Sink(Protocol):
    """Who takes the content of files."""

    def put_file(self, fd: int) -> tuple[str, int]:
        """Read ``fd`` to its end. Returns the SHA-256 in hexadecimal and the size in bytes."""


class UntrustedLinkError(RollbackError):
    """A link on the way to a path is not root's, or lies where others may replace it."""


class MemorySink:
    """Looks at contents without storing them: hashes all, remembers the small ones.

    ``most_each`` and ``most_together`` bound what is remembered, in bytes.
    """

    def __init__(self, most_each: int = 1024 * 1024, most_together: int = _CHUNK * 64) -> None:
        self._most_each = most_each
        self._room = most_together
        self._contents: dict[str, bytes] = {}

    def put_file(self, fd: int) -> tuple[str, int]:
        """Read ``fd`` to its end; its digest and size."""
        return self.put(iter(lambda: os.read(fd, _CHUNK), b""))

    def put(self, chunks: Iterable[bytes]) -> tuple[str, int]:
        """Take a content in pieces; its digest and size."""
        hashed, size = hashlib.sha256(), 0
        kept: list[bytes] = []
        for chunk in chunks:
            hashed.update(chunk)
            size += len(chunk)
            if size <= self._most_each:
                kept.append(chunk)
        digest = hashed.hexdigest()
        if size <= min(self._most_each, self._room) and digest not in self._contents:
            self._contents[digest] = b"".join(kept)
            self._room -= size
        return digest, size

    def content(self, digest: str) -> bytes | None:
        """A content seen before; None when it was too large to remember, or not seen."""
        return self._contents.get(digest)


def read(areas: Sequence[Area], sink: Sink, root: str = "/") -> dict[str, Entry]:
    """Everything that ``areas`` name below ``root``, by its path as seen from there.

    A pattern without ``*`` has an entry whether the path is there or not, and so has every
    directory that may be made for an own or shared area. No link is followed, but one on the way to
    such a path where only root may replace it; a link or a mount met below ``**`` is an entry and
    is not entered. A file of more than 64 MiB is of the kind ``other``.

    Raises RollbackError for what cannot be read, or changes each time it is read.
    """
    found: dict[str, Entry] = {}
    for area in areas:
        for pattern in scope.parents(area):
            for fd, path in _matches(pattern, root):
                if path not in found:
                    entry = look(fd, path, sink)
                    if entry.kind == "directory" or "*" not in pattern:
                        found[path] = entry
        for fd, path in _matches(area.pattern, root):
            if path not in found:
                entry = look(fd, path, sink)
                if entry.there or "*" not in area.pattern:
                    found[path] = entry
    return dict(sorted(found.items()))


def look(
    directory: int | None, path: str, sink: Sink, most_bytes: int | None = MOST_BYTES
) -> Entry:
    """The entry of ``path``, which lies in the open ``directory``; None where that is missing.

    A ``directory`` of -1 is one behind a link that is not to be followed: the entry is ``other``.
    Raises RollbackError as :func:`read` does.
    """
    if directory is None:
        return ABSENT
    if directory == UNTRUSTED:
        return Entry("other")
    name = os.path.basename(path)
    for attempt in range(_ATTEMPTS):
        if attempt:
            # Whoever writes the file gives no sign when it is done.
            time.sleep(attempt * _PAUSE_S)
        try:
            entry = _look_once(directory, name, path, sink, most_bytes)
        except OSError as error:
            if error.errno not in _NO_DIRECTORY:
                _unreadable(path, error)
            continue
        if entry is not None:
            return entry
    raise RollbackError(
        f"{path} changed each of the {_ATTEMPTS} times that it was read, and half a change is not "
        "worth keeping; try again when whatever writes it is done"
    )


def open_directory(path: str, root: str = "/") -> int | None:
    """A descriptor of the directory ``path`` below ``root``, None where there is none.

    Raises UntrustedLinkError for a link on the way that others may replace, RollbackError for what
    cannot be opened.
    """
    pending, done, links = path.split("/")[::-1], [""], 0
    fd = _open(root, None)
    try:
        while pending:
            part = pending.pop()
            if part in ("", "."):
                continue
            if part == "..":
                # Below ``root`` this never leads above it.
                pending += done[:-1][::-1]
                done = [""]
                fd = _replace(fd, _open(root, None))
                continue
            try:
                fd = _replace(fd, _open(part, fd))
                done.append(part)
            except OSError as error:
                if error.errno not in _NO_DIRECTORY:
                    raise
                target = _link_to_follow(fd, part, "/".join([*done, part]))
                links += 1
                if target is None or links > _MOST_LINKS:
                    os.close(fd)
                    return None
                if target.startswith("/"):
                    done = [""]
                    fd = _replace(fd, _open(root, None))
                pending += target.split("/")[::-1]
    except OSError as error:
        os.close(fd)
        _unreadable(path, error)
    except RollbackError:
        os.close(fd)
        raise
    return fd


def attributes(target: int | str) -> dict[str, bytes]:
    """The extended attributes that can be set back, of an open file or of a path itself.

    Raises OSError.
    """
    follow = isinstance(target, int)
    try:
        names = os.listxattr(target, follow_symlinks=follow)
    except OSError as error:
        if error.errno == errno.ENOTSUP:
            return {}
        raise
    found = {}
    for name in names:
        if _can_be_set_back(name):
            # One that was removed in between shows in ctime, and the file is read again.
            with contextlib.suppress(OSError):
                found[name] = os.getxattr(target, name, follow_symlinks=follow)
    return found


def link_itself(directory: int, name: str) -> str:
    """A path to ``name`` in an open directory, for calls that take no descriptor."""
    return f"/proc/self/fd/{directory}/{name}"


def _can_be_set_back(name: str) -> bool:
    if name in ("security.ima", "security.evm"):
        # Measurements, which the kernel makes itself.
        return False
    if name.startswith("system."):
        return name.startswith("system.posix_acl_")
    return True


def _look_once(
    directory: int, name: str, path: str, sink: Sink, most_bytes: int | None
) -> Entry | None:
    """None when it changed meanwhile. Raises OSError."""
    try:
        before = os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return ABSENT
    mode, uid, gid = stat.S_IMODE(before.st_mode), before.st_uid, before.st_gid
    if stat.S_ISLNK(before.st_mode):
        xattrs = attributes(link_itself(directory, name))
        target = os.readlink(name, dir_fd=directory)
        return Entry("link", mode, uid, gid, xattrs, target=target)
    if stat.S_ISDIR(before.st_mode):
        fd = _open(name, directory)
        try:
            return Entry("directory", mode, uid, gid, attributes(fd))
        finally:
            os.close(fd)
    if not stat.S_ISREG(before.st_mode):
        return Entry("other", mode, uid, gid)
    if most_bytes is not None and before.st_size > most_bytes:
        return Entry("other", mode, uid, gid, size=before.st_size)
    fd = open_file(name, directory)
    try:
        return _read_file(fd, path, sink)
    finally:
        os.close(fd)


def _read_file(fd: int, path: str, sink: Sink) -> Entry | None:
    before = os.fstat(fd)
    if not stat.S_ISREG(before.st_mode):
        return None
    try:
        digest, size = sink.put_file(fd)
    except OSError as error:
        raise RollbackError(
            f"the content of {path} ({before.st_size} bytes) could not be read and kept: "
            f"{error.strerror}"
        ) from error
    xattrs = attributes(fd)
    after = os.fstat(fd)
    if size != after.st_size or _version(before) != _version(after):
        return None
    mode = stat.S_IMODE(after.st_mode)
    return Entry("file", mode, after.st_uid, after.st_gid, xattrs, digest, size)


def _version(seen: os.stat_result) -> tuple[int, int, int]:
    return seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns


def open_file(name: str, directory: int) -> int:
    """A descriptor to read a file by, without a trace where that is allowed. Raises OSError."""
    try:
        return os.open(name, _FILE | os.O_NOATIME, dir_fd=directory)
    except PermissionError:
        # O_NOATIME is for the owner and root.
        return os.open(name, _FILE, dir_fd=directory)


def _matches(pattern: str, root: str) -> Iterator[tuple[int | None, str]]:
    """Descriptors of directories, and paths in them that ``pattern`` matches.

    The descriptor is valid until the next one is asked for.
    """
    parts = pattern.split("/")[1:]
    literal = next(
        (i for i, part in enumerate(parts) if not scope.is_literal(part)), len(parts) - 1
    )
    head = "".join(f"/{part}" for part in parts[:literal])
    try:
        fd = open_directory(head, root)
    except UntrustedLinkError:
        fd = UNTRUSTED
    try:
        if "*" not in pattern:
            yield fd, pattern
        elif fd is not None and fd != UNTRUSTED:
            yield from _below(fd, head, parts[literal:], _DEEPEST)
    finally:
        if fd is not None and fd != UNTRUSTED:
            os.close(fd)


def _below(fd: int, head: str, parts: Sequence[str], deepest: int) -> Iterator[tuple[int, str]]:
    """What ``parts`` match in the directory ``fd``, which is ``head``."""
    if deepest == 0:
        raise RollbackError(f"{head} lies more than {_DEEPEST} directories deep; name less of it")
    everything = parts[0] == "**"
    for name, is_directory in _names(fd, head):
        if scope.is_aside(name):
            continue
        if not everything and not scope.component(parts[0]).fullmatch(name):
            continue
        path = f"{head}/{name}"
        if everything or len(parts) == 1:
            yield fd, path
        if is_directory and (everything or len(parts) > 1):
            inner = _enter(fd, name, path, same_device=everything)
            if inner is None:
                continue
            try:
                yield from _below(inner, path, parts if everything else parts[1:], deepest - 1)
            finally:
                os.close(inner)


def _names(fd: int, path: str) -> list[tuple[str, bool]]:
    """The names in a directory, and which of them are directories, in a stable order."""
    try:
        with os.scandir(fd) as entries:
            return sorted((one.name, one.is_dir(follow_symlinks=False)) for one in entries)
    except FileNotFoundError:
        return []
    except OSError as error:
        _unreadable(path, error)


def _enter(fd: int, name: str, path: str, same_device: bool) -> int | None:
    try:
        inner = _open(name, fd)
    except OSError as error:
        if error.errno in _NO_DIRECTORY:
            return None
        _unreadable(path, error)
    if same_device and os.fstat(inner).st_dev != os.fstat(fd).st_dev:
        os.close(inner)
        return None
    return inner


def _open(name: str, directory: int | None) -> int:
    # ``root`` itself may be reached through links.
    flags = _DIRECTORY if directory is not None else _DIRECTORY & ~os.O_NOFOLLOW
    return os.open(name, flags, dir_fd=directory)


def _replace(former: int, fd: int) -> int:
    os.close(former)
    return fd


def _link_to_follow(directory: int, name: str, path: str) -> str | None:
    """Where a link leads; None when it is none. Raises UntrustedLinkError, OSError."""
    try:
        link = os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return None
    if not stat.S_ISLNK(link.st_mode):
        return None
    place = os.fstat(directory)
    trusted = (0, os.geteuid())
    open_to_others = place.st_mode & 0o022 and not place.st_mode & stat.S_ISVTX
    if link.st_uid not in trusted or place.st_uid not in trusted or open_to_others:
        raise UntrustedLinkError(
            f"{path} is a link of user {link.st_uid} where others than root may write, and is not "
            "followed; name the path that it leads to"
        )
    return os.readlink(name, dir_fd=directory)


def _unreadable(path: str, error: OSError) -> NoReturn:
    advice = "; run as root" if error.errno in (errno.EACCES, errno.EPERM) else ""
    raise RollbackError(f"{path} could not be read: {error.strerror}{advice}") from error
