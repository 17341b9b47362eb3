# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Give a path its former self, so that it is the old one or the new one at any moment.

Content, owner, mode and attributes are made under a temporary name beside the path and appear by
one rename. Only where a single system call is all that differs is the path itself touched, and a
directory, which cannot be exchanged: it passes through less access, never more.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, BinaryIO, Callable, Union

from .. import scope
from ..model import Entry, RollbackError
from ..observation import files
from . import beside
from .dress import alike, by_one_call, contents_alike, dress_in_place
from .why_not import told

Content = Callable[[str], BinaryIO]
Result = Union[bool, RollbackError]

# How many files are synced at once, each by a thread that only waits: the file system writes them
# in one go. 300 files take 0.3 s so on ext4, and 0.9 s by 16 threads.
_TOGETHER = 64


@dataclass(frozen=True)
class Item:
    """A ``path`` and what it shall be; with ``conflict`` what is there is kept beside it."""

    path: str
    entry: Entry
    conflict: bool = False


def same(path: str, entry: Entry, root: str = "/") -> bool:
    """Is ``path`` what ``entry`` says? Raises RollbackError where it cannot be read."""
    with _place(path, root) as directory:
        return alike(_look(directory, path), entry)


def put_back(
    path: str, entry: Entry, content: Content, root: str = "/", conflict: bool = False
) -> bool:
    """Make ``path`` below ``root`` exactly ``entry``; True when it was something else.

    ``content`` opens what has a digest. With ``conflict``, what is there is kept first, see
    :func:`keep_conflict`, unless only owner, mode or attributes differ. Whatever kills this, doing
    it again completes it. Missing parents are made, ours and with mode 0755.

    Raises RollbackError, from the OSError where there was one, with the path as it was: for a full
    or read-only file system, an immutable file, a directory that is not empty where something else
    or nothing shall be, anything else where a directory shall be, and a device, socket or FIFO.
    """
    (result,) = put_back_all([Item(path, entry, conflict)], content, root)
    if isinstance(result, RollbackError):
        raise result
    return result


def put_back_all(items: Sequence[Item], content: Content, root: str = "/") -> list[Result]:
    """:func:`put_back` of many, in their order, waiting for the disk once for many files.

    An error of one does not keep the others. Returns for each whether it changed, or its error.
    """
    batch = _Batch(content, root, len(items))
    try:
        for index, item in enumerate(items):
            batch.add(index, item)
        batch.flush()
        batch.sync_directories()
    finally:
        batch.close()
    return batch.results


def keep_conflict(path: str, root: str = "/") -> str | None:
    """Keep the file or link at ``path`` as ``<path>.steadygpu-conflict``, with all that it has.

    Where that name is taken by something else, a number follows it. Returns the path of the copy,
    also where one of the same content is there already; None where there is nothing to keep.
    Raises RollbackError.
    """
    with told(path, root), _place(path, root) as directory:
        now = _look(directory, path)
        if directory is None or now.kind not in ("file", "link"):
            return None
        return beside.keep(directory, path, now)


def sweep_leftovers(directories: Sequence[str], root: str = "/") -> list[str]:
    """Remove what a killed run left in ``directories`` under temporary names; their paths.

    No other run may be putting back at the same time. Raises RollbackError.
    """
    removed = []
    for path in directories:
        with told(path, root), _opened(path, root) as directory:
            if directory is None:
                continue
            for name in filter(scope.is_temporary, sorted(os.listdir(directory))):
                beside.discard(directory, name)
                removed.append(f"{path.rstrip('/')}/{name}")
    return removed


# -- one after the other, synced together -----------------------------------------------


@dataclass
class _Ready:
    """The new form of an item under its ``temporary`` name. A file's ``fd`` is to be synced."""

    index: int
    item: Item
    directory: int
    temporary: str
    now: Entry
    fd: int | None = None
    error: RollbackError | None = None

    @property
    def restyled(self) -> bool:
        """Is its content the one that was there?"""
        return contents_alike(self.now, self.item.entry)

    def drop(self) -> None:
        """Close it, and remove what was not renamed."""
        if self.fd is not None:
            os.close(self.fd)
        if self.temporary:
            with contextlib.suppress(OSError):
                beside.discard(self.directory, self.temporary)
        os.close(self.directory)


@dataclass
class _Changed:
    """A directory that is not synced yet; what became of ``items`` is lost if that fails."""

    fd: int
    path: str
    items: list[int] = field(default_factory=list)
    error: RollbackError | None = None


class _Batch:
    def __init__(self, content: Content, root: str, count: int) -> None:
        self._content = content
        self._root = root
        self.results: list[Result] = [False] * count
        self._ready: list[_Ready] = []
        self._changed: dict[tuple[int, int], _Changed] = {}

    def add(self, index: int, item: Item) -> None:
        """Do it, or at least make its new form ready."""
        if item.entry.kind != "file" or len(self._ready) >= _TOGETHER:
            self.flush()
        try:
            with told(item.path, self._root, item.entry):
                with _place(item.path, self._root, make=item.entry.there) as directory:
                    if directory is not None:
                        self._one(index, item, directory)
        except RollbackError as error:
            self.results[index] = error

    def _one(self, index: int, item: Item, directory: int) -> None:
        path, entry, name = item.path, item.entry, os.path.basename(item.path)
        now = _look(directory, path)
        _refuse(directory, item, now)
        if alike(now, entry):
            # A run that was killed may have done it without making it durable.
            if entry.kind in ("file", "directory"):
                with beside.reading(directory, name) as fd:
                    os.fsync(fd)
            self._mark(index, path, directory)
            return
        if entry.kind == "absent":
            if item.conflict and now.kind != "directory":
                beside.keep(directory, path, now)
            beside.discard(directory, name)
        elif entry.kind == "directory" and now.there:
            beside.dress_directory(directory, name, entry)
        elif entry.kind == "file" and contents_alike(now, entry) and by_one_call(now, entry):
            with beside.reading(directory, name) as fd:
                dress_in_place(fd, now, entry)
                os.fsync(fd)
        else:
            self._make(index, item, directory, now)
            return
        self.results[index] = True
        self._mark(index, path, directory)

    def _make(self, index: int, item: Item, directory: int, now: Entry) -> None:
        entry = item.entry
        temporary = beside.temporary_name(os.path.basename(item.path))
        one = _Ready(index, item, os.dup(directory), temporary, now)
        try:
            if entry.kind == "file":
                with self._content(entry.digest or "") as source:
                    one.fd = beside.make_file(directory, temporary, entry, source)
            elif entry.kind == "link":
                beside.make_link(directory, temporary, entry)
            else:
                beside.make_directory(directory, temporary, entry)
        except BaseException:
            one.drop()
            raise
        self._ready.append(one)
        if entry.kind != "file":
            self.flush()

    def flush(self) -> None:
        """Sync what is ready, all at once, and rename it, one after the other."""
        ready, self._ready = self._ready, []
        try:
            _together(self._sync_file, ready)
            for one in ready:
                try:
                    self._rename(one)
                except RollbackError as error:
                    self.results[one.index] = error
        finally:
            for one in ready:
                one.drop()

    def _sync_file(self, one: _Ready) -> None:
        if one.fd is not None:
            try:
                with told(one.item.path, self._root, one.item.entry):
                    os.fsync(one.fd)
            except RollbackError as error:
                one.error = error

    def _rename(self, one: _Ready) -> None:
        if one.error is not None:
            raise one.error
        path, name, directory = one.item.path, os.path.basename(one.item.path), one.directory
        with told(path, self._root, one.item.entry):
            if one.now.kind == "directory" and one.item.entry.kind != "directory":
                os.rmdir(name, dir_fd=directory)
            elif one.now.there and one.item.conflict and not one.restyled:
                beside.keep(directory, path, one.now)
            os.rename(one.temporary, name, src_dir_fd=directory, dst_dir_fd=directory)
            one.temporary = ""
            self.results[one.index] = True
            self._mark(one.index, path, directory)

    def _mark(self, index: int, path: str, directory: int) -> None:
        seen = os.fstat(directory)
        key = (seen.st_dev, seen.st_ino)
        if key not in self._changed:
            self._changed[key] = _Changed(os.dup(directory), os.path.dirname(path) or "/")
        self._changed[key].items.append(index)

    def sync_directories(self) -> None:
        """Make it all survive a power loss."""
        changed = list(self._changed.values())
        _together(self._sync_directory, changed)
        for one in changed:
            if one.error is not None:
                for index in one.items:
                    self.results[index] = one.error

    def _sync_directory(self, one: _Changed) -> None:
        try:
            with told(one.path, self._root):
                os.fsync(one.fd)
        except RollbackError as error:
            one.error = error

    def close(self) -> None:
        """Let go of everything, also of what an exception left half done."""
        for one in self._ready:
            one.drop()
        for changed in self._changed.values():
            os.close(changed.fd)


def _together(sync: Callable[[Any], None], items: Sequence[Any]) -> None:
    if len(items) < 2:
        for one in items:
            sync(one)
        return
    with ThreadPoolExecutor(_TOGETHER) as pool:
        list(pool.map(sync, items))


# -- before anything is touched ---------------------------------------------------------


def _look(directory: int | None, path: str) -> Entry:
    # Hashes only: a file of any size may lie there now.
    return files.look(directory, path, files.MemorySink(0), None)


def _refuse(directory: int, item: Item, now: Entry) -> None:
    """Raises RollbackError where only a person can tell what to do."""
    path, entry = item.path, item.entry
    if entry.kind == "other":
        raise RollbackError(
            f"{path} was no file, link or directory, or too large to keep, when the checkpoint was "
            "taken, and is left as it is"
        )
    wanted = "nothing" if entry.kind == "absent" else f"a {entry.kind}"
    if now.kind == "other":
        raise RollbackError(
            f"{path} is a device, socket or FIFO now and was {wanted}; it is left as it is, move "
            "it away and restore again"
        )
    if now.kind == "directory" and entry.kind != "directory":
        with beside.reading(directory, os.path.basename(path)) as fd:
            names = sorted(os.listdir(fd))
        if names:
            shown = ", ".join(names[:3]) + (", …" if len(names) > 3 else "")
            raise RollbackError(
                f"{path} is a directory with {len(names)} entries ({shown}) and was {wanted}; it "
                "is left as it is, move them away and restore again"
            )
    if entry.kind == "directory" and now.there and now.kind != "directory":
        raise RollbackError(
            f"{path} is a {now.kind} now and was a directory; it is left as it is, move it away "
            "and restore again"
        )


@contextlib.contextmanager
def _opened(path: str, root: str) -> Iterator[int | None]:
    fd = files.open_directory(path, root)
    try:
        yield fd
    finally:
        if fd is not None:
            os.close(fd)


@contextlib.contextmanager
def _place(path: str, root: str, make: bool = False) -> Iterator[int | None]:
    """The open directory that ``path`` lies in; where it is missing, None, or it is made."""
    parent = os.path.dirname(path) or "/"
    if make:
        _make_parents(parent, root)
    fd = files.open_directory(parent, root)
    try:
        if fd is None and make:
            raise RollbackError(
                f"{path} could not be restored: {parent} is no directory; move it away and "
                "restore again"
            )
        yield fd
    finally:
        if fd is not None:
            os.close(fd)


def _make_parents(path: str, root: str) -> None:
    """Make the directory ``path``, and what leads to it, where it is missing."""
    with _opened(path, root) as there:
        if there is not None or path == "/":
            return
    above = os.path.dirname(path) or "/"
    _make_parents(above, root)
    with _opened(above, root) as directory:
        if directory is not None:
            _make_parent(directory, path)


def _make_parent(directory: int, path: str) -> None:
    name = os.path.basename(path)
    temporary = beside.temporary_name(name)
    try:
        entry = Entry("directory", 0o755, os.geteuid(), os.getegid())
        beside.make_directory(directory, temporary, entry)
        os.rename(temporary, name, src_dir_fd=directory, dst_dir_fd=directory)
        os.fsync(directory)
    except BaseException:
        with contextlib.suppress(OSError):
            beside.discard(directory, temporary)
        raise
