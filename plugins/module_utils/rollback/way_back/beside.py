# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is made beside a path: its new form under a temporary name, and what others wrote there.

``directory`` is always an open descriptor of the directory that the path lies in.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import itertools
import os
import secrets
import stat
from collections.abc import Iterable, Iterator
from typing import BinaryIO

from .. import scope
from ..model import Entry, RollbackError
from ..observation import files
from . import dress

_CHUNK = 1024 * 1024
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
# A file system without hard links, a file that allows no more of them, or no further one.
_NO_HARD_LINK = (errno.EPERM, errno.ENOTSUP, errno.EMLINK)


def temporary_name(name: str) -> str:
    """A free name in the directory of ``name`` that :func:`..scope.is_temporary` knows."""
    return scope.temporary_name(name, secrets.token_hex(4))


def make_file(directory: int, name: str, entry: Entry, source: BinaryIO) -> int:
    """Make a file with the content of ``source``; its descriptor, not synced yet.

    Raises OSError, and RollbackError when the content is not that of ``entry``.
    """
    fd = os.open(name, _NEW_FILE, 0o600, dir_fd=directory)
    try:
        digest = _write(fd, iter(lambda: source.read(_CHUNK), b""))
        if digest != entry.digest:
            raise RollbackError(
                f"the stored content {entry.digest} is damaged: it reads as {digest}; restore "
                "another checkpoint, or import this one again from where it was exported to"
            )
        dress.dress(fd, entry)
    except BaseException:
        os.close(fd)
        raise
    return fd


def make_link(directory: int, name: str, entry: Entry) -> None:
    """Make a link. Raises OSError."""
    os.symlink(entry.target or "", name, dir_fd=directory)
    dress.dress_link(directory, name, entry)


def make_directory(directory: int, name: str, entry: Entry) -> None:
    """Make an empty directory, durable but for its name. Raises OSError."""
    os.mkdir(name, 0o700, dir_fd=directory)
    dress_directory(directory, name, entry)


def dress_directory(directory: int, name: str, entry: Entry) -> None:
    """Give a directory the owner, mode and attributes of ``entry``, durably. Raises OSError."""
    with reading(directory, name) as fd:
        dress.dress(fd, entry)
        os.fsync(fd)


def discard(directory: int, name: str) -> None:
    """Remove a file, a link or an empty directory. Raises OSError."""
    if stat.S_ISDIR(os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode):
        os.rmdir(name, dir_fd=directory)
    else:
        os.unlink(name, dir_fd=directory)


def keep(directory: int, path: str, now: Entry) -> str:
    """Keep the file or link at ``path``, which is ``now``, as ``<path>.steadygpu-conflict``.

    Where that name holds something else, a number follows it. Returns the path of what is kept, of
    now or of before. Raises OSError and RollbackError.
    """
    name = os.path.basename(path)
    for number in itertools.count(1):
        suffix = scope.CONFLICT if number == 1 else f"{scope.CONFLICT}-{number}"
        there = files.look(directory, path + suffix, files.MemorySink(0), None)
        if not there.there:
            try:
                _link(directory, name, name + suffix, now)
            except FileExistsError:
                continue
        elif not dress.contents_alike(there, now):
            continue
        if now.kind == "file":
            with reading(directory, name + suffix) as fd:
                os.fsync(fd)
        os.fsync(directory)
        return path + suffix
    raise RollbackError(f"{path}: every name for what is kept beside it is taken")


def _link(directory: int, name: str, kept: str, now: Entry) -> None:
    """A second name for what is there; where that cannot be, a copy."""
    try:
        os.link(name, kept, src_dir_fd=directory, dst_dir_fd=directory, follow_symlinks=False)
    except OSError as error:
        if error.errno not in _NO_HARD_LINK:
            raise
        temporary = temporary_name(name)
        try:
            _copy(directory, name, temporary, now)
            os.rename(temporary, kept, src_dir_fd=directory, dst_dir_fd=directory)
        except BaseException:
            with contextlib.suppress(OSError):
                discard(directory, temporary)
            raise


def _copy(directory: int, name: str, temporary: str, now: Entry) -> None:
    if now.kind == "link":
        make_link(directory, temporary, now)
        return
    with reading(directory, name) as source:
        fd = os.open(temporary, _NEW_FILE, 0o600, dir_fd=directory)
        try:
            _write(fd, iter(lambda: os.read(source, _CHUNK), b""))
            dress.dress(fd, now)
            os.fsync(fd)
        finally:
            os.close(fd)


@contextlib.contextmanager
def reading(directory: int, name: str) -> Iterator[int]:
    """A descriptor of a file or directory, closed at the end. Raises OSError."""
    fd = files.open_file(name, directory)
    try:
        yield fd
    finally:
        os.close(fd)


def _write(fd: int, chunks: Iterable[bytes]) -> str:
    hashed = hashlib.sha256()
    for chunk in chunks:
        hashed.update(chunk)
        rest = memoryview(chunk)
        while rest:
            rest = rest[os.write(fd, rest) :]
    return hashed.hexdigest()
