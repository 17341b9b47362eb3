# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Contents of files, each under its SHA-256, each once.

An object is there whole or not at all: it is written to ``incoming``, made durable and only then
renamed to its place. Objects of one checkpoint are made durable together, by several threads,
because a journalling file system commits once for all that wait for it.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import hashlib
import itertools
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import BinaryIO

from ...atomic import fsync_directory
from ..model import RollbackError
from .documents import storage_error

_CHUNK = 1024 * 1024
# More do not make it faster.
_THREADS = 4
# One digit: making 256 directories durable takes longer than the objects themselves.
_SHELF = re.compile(r"[0-9a-f]")
_REST = re.compile(r"[0-9a-f]{63}")


class Objects:
    """The objects of the store in ``directory``. Only who holds the store's lock may write.

    Every method raises RollbackError when the disk does not do what it should.
    """

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._shelves = os.path.join(directory, "objects")
        self._incoming = os.path.join(directory, "incoming")
        self._mark = os.path.join(self._incoming, "batch")
        self._names = itertools.count()
        # What came since begin_batch(): where each object waits, and how many bytes that are.
        self._batch: dict[str, str] | None = None
        self._size = 0
        # What was read back whole already; once in the life of this object is enough.
        self._sound: set[str] = set()

    # -- putting ------------------------------------------------------------------------

    def begin_batch(self) -> None:
        """Collect what is put from now on, until :meth:`flush`."""
        if self._batch is not None:
            return
        try:
            for path in (self._shelves, self._incoming):
                os.makedirs(path, mode=0o700, exist_ok=True)
            # Whoever finds it knows that a batch did not end, see sweep().
            os.close(os.open(self._mark, os.O_WRONLY | os.O_CREAT, 0o600))
        except OSError as error:
            raise storage_error(error, self._directory) from error
        self._batch, self._size = {}, 0

    def put(self, chunks: Iterable[bytes]) -> tuple[str, int]:
        """Keep a content; its digest and size in bytes. One that is there already costs nothing."""
        with self._within_batch():
            return self._put(iter(chunks))

    def put_file(self, fd: int) -> tuple[str, int]:
        """Keep the content of an open file from its beginning, like :meth:`put`."""
        if os.fstat(fd).st_size > _CHUNK:
            # Rather read a large file twice than write what is there.
            checksum, size = hashlib.sha256(), 0
            for chunk in _chunks(fd):
                checksum.update(chunk)
                size += len(chunk)
            if self._known(checksum.hexdigest()):
                return checksum.hexdigest(), size
        return self.put(_chunks(fd))

    def flush(self) -> list[str]:
        """Make what was put durable and visible; the digests of what is new."""
        if self._batch is None:
            return []
        batch, new = self._batch, []
        try:
            _each(_fsync, list(batch.values()))
            shelves = set()
            for digest, waiting in batch.items():
                shelf = os.path.join(self._shelves, digest[:1])
                if shelf not in shelves:
                    os.makedirs(shelf, mode=0o700, exist_ok=True)
                    shelves.add(shelf)
                place = os.path.join(shelf, digest[1:])
                # Only a damaged one is there already, and others may have been relying on it.
                healed = os.path.exists(place)
                os.replace(waiting, place)
                if not healed:
                    new.append(digest)
            if shelves:
                _each(fsync_directory, [*sorted(shelves), self._shelves])
        except OSError as error:
            needed = self._size
            self.abandon()
            for digest in new:
                self.remove(digest)
            raise storage_error(error, self._directory, needed) from error
        self._sound.update(batch)
        batch.clear()
        self.abandon()
        return new

    def abandon(self) -> None:
        """Forget what was put and not flushed."""
        batch, self._batch, self._size = self._batch, None, 0
        if batch is None:
            return
        # What cannot be removed is removed by the next run.
        for path in (*batch.values(), self._mark):
            with contextlib.suppress(OSError):
                os.unlink(path)

    def sweep(self) -> None:
        """Remove what a killed run has left behind."""
        try:
            leftovers = sorted(os.listdir(self._incoming))
        except (FileNotFoundError, NotADirectoryError):
            return
        if not leftovers:
            return
        try:
            # It may have been killed between renaming objects and making the renames durable. They
            # are about to be relied upon.
            _each(fsync_directory, [*self._shelf_paths(), self._shelves])
            for name in leftovers:
                os.unlink(os.path.join(self._incoming, name))
        except FileNotFoundError:
            return
        except OSError as error:
            raise storage_error(error, self._directory) from error

    # -- reading ------------------------------------------------------------------------

    def has(self, digest: str) -> bool:
        """Is there such an object, put and flushed? It may be damaged."""
        return os.path.isfile(self._path(digest))

    def open(self, digest: str) -> BinaryIO:
        """An object, verified, open at its beginning. Raises RollbackError for a damaged one."""
        path = self._path(digest)
        handle = None
        try:
            handle = open(path, "rb")  # noqa: SIM115 (the caller closes it)
            found, _size = _digest(handle.fileno())
            handle.seek(0)
        except FileNotFoundError:
            raise RollbackError(
                f"the store has no object {digest} ({path} is missing), so the file that it was "
                "cannot be brought back from here; look for it in an export or a backup"
            ) from None
        except OSError as error:
            if handle is not None:
                handle.close()
            raise storage_error(error, path) from error
        if found != digest:
            handle.close()
            raise RollbackError(
                f"the object {path} is damaged: its content has the SHA-256 {found}; the file that "
                "it was cannot be brought back from here. Look for it in an export or a backup, "
                "and check the disk"
            )
        return handle

    def read(self, digest: str) -> bytes:
        """An object's content, verified. Raises RollbackError for a damaged one."""
        with self.open(digest) as handle:
            return handle.read()

    def all(self) -> set[str]:
        """The digests of all objects."""
        return {
            os.path.basename(shelf) + name
            for shelf in self._shelf_paths()
            for name in os.listdir(shelf)
            if _REST.fullmatch(name)
        }

    def remove(self, digest: str) -> None:
        """Delete an object. It need not be durable: an object too many does no harm."""
        self._sound.discard(digest)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._path(digest))

    # -- inside -------------------------------------------------------------------------

    def _path(self, digest: str) -> str:
        if not _REST.fullmatch(digest[1:]) or not _SHELF.fullmatch(digest[:1]):
            raise RollbackError(f"{digest!r} is no SHA-256, so there is no such object")
        return os.path.join(self._shelves, digest[:1], digest[1:])

    def _shelf_paths(self) -> list[str]:
        try:
            names = sorted(os.listdir(self._shelves))
        except (FileNotFoundError, NotADirectoryError):
            return []
        return [os.path.join(self._shelves, name) for name in names if _SHELF.fullmatch(name)]

    def _known(self, digest: str) -> bool:
        """Is it there, or waiting, and whole? A damaged object is as good as none."""
        if digest in self._sound or digest in (self._batch or {}):
            return True
        try:
            fd = os.open(self._path(digest), os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        try:
            whole = _digest(fd)[0] == digest
        finally:
            os.close(fd)
        if whole:
            self._sound.add(digest)
        return whole

    @contextlib.contextmanager
    def _within_batch(self) -> Iterator[None]:
        alone = self._batch is None
        self.begin_batch()
        try:
            yield
            if alone:
                self.flush()
        finally:
            if alone:
                self.abandon()

    def _put(self, chunks: Iterator[bytes]) -> tuple[str, int]:
        start = b""
        for chunk in chunks:
            start += chunk
            if len(start) > _CHUNK:
                return self._write(itertools.chain([start], chunks))
        digest = hashlib.sha256(start).hexdigest()
        return (digest, len(start)) if self._known(digest) else self._write(iter([start]))

    def _write(self, chunks: Iterator[bytes]) -> tuple[str, int]:
        path = os.path.join(self._incoming, str(next(self._names)))
        checksum, size = hashlib.sha256(), 0
        try:
            fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise self._failed(error, path, 0) from error
        failure = None
        try:
            for chunk in chunks:
                checksum.update(chunk)
                size += len(chunk)
                try:
                    _write_all(fd, chunk)
                except OSError as error:
                    failure = error
                    break
        except BaseException:
            # What was to be read could not be: that is for who reads it.
            with contextlib.suppress(OSError):
                os.unlink(path)
            raise
        finally:
            # Before the free space is told: an open file keeps its space.
            os.close(fd)
        if failure is not None:
            raise self._failed(failure, path, size) from failure
        digest = checksum.hexdigest()
        if self._known(digest) or self._batch is None:
            os.unlink(path)
        else:
            self._batch[digest] = path
            self._size += size
        return digest, size

    def _failed(self, error: OSError, path: str, size: int) -> RollbackError:
        needed = self._size + size
        with contextlib.suppress(OSError):
            os.unlink(path)
        # First, so that what is told to be free is what is free without this checkpoint.
        self.abandon()
        return storage_error(error, self._directory, needed)


def _write_all(fd: int, content: bytes) -> None:
    view = memoryview(content)
    while view:
        view = view[os.write(fd, view) :]


def _chunks(fd: int) -> Iterator[bytes]:
    offset = 0
    while True:
        chunk = os.pread(fd, _CHUNK, offset)
        if not chunk:
            return
        yield chunk
        offset += len(chunk)


def _digest(fd: int) -> tuple[str, int]:
    checksum, size = hashlib.sha256(), 0
    for chunk in _chunks(fd):
        checksum.update(chunk)
        size += len(chunk)
    return checksum.hexdigest(), size


def _fsync(path: str) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _each(make_durable: Callable[[str], None], paths: Sequence[str]) -> None:
    """Call ``make_durable`` for every path, several at a time. Raises the first OSError."""
    if len(paths) < 2:
        for path in paths:
            make_durable(path)
        return
    with concurrent.futures.ThreadPoolExecutor(_THREADS) as pool:
        for _done in pool.map(make_durable, paths):
            pass
