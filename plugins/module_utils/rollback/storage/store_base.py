# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The store's directory: its lock, its documents, and clearing up after a killed run."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ... import file_lock, vouched
from ...atomic import fsync_directory, read_text, remove, write_atomic
from .. import codec
from ..model import DIRECTORY, BusyError, RollbackError
from . import schema
from .documents import storage_error
from .objects import Objects


class StoreBase:
    """What :class:`.store.Store` stands on; see there."""

    def __init__(
        self,
        directory: str = DIRECTORY,
        wait_s: float = 30.0,
        now: Callable[[], float] = time.time,
        forms: schema.Forms | None = None,
    ) -> None:
        self.directory = directory
        self._wait_s = wait_s
        self._now = now
        self._forms = forms or schema.Forms()
        self._objects = Objects(directory)
        self._depth = 0
        self._reserved: int | None = None

    # -- the lock -----------------------------------------------------------------------

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Only one process at a time. May be taken again by who has it."""
        with self._exclusive():
            yield

    @contextlib.contextmanager
    def _exclusive(self, upgrade: bool = True) -> Iterator[None]:
        if self._depth:
            self._depth += 1
            try:
                yield
            finally:
                self._depth -= 1
            return
        try:
            self._make_directory()
            lock = self._acquire()
        except OSError as error:
            raise storage_error(error, self.directory, 4096) from error
        self._depth = 1
        try:
            self._prepare(upgrade)
            yield
        finally:
            self._depth, self._reserved = 0, None
            try:
                self._objects.abandon()
            finally:
                file_lock.release(lock)

    def _acquire(self) -> int:
        path = self._path("lock")
        try:
            return file_lock.acquire(path, self._wait_s)
        except file_lock.HeldError as error:
            raise BusyError(
                f"process {error.owner} is working with the checkpoints (lock {path}) and did not "
                f"end within {self._wait_s:g} s; nothing was changed. Try again when it has ended"
            ) from None

    def _make_directory(self) -> None:
        if not os.path.isdir(self._path("checkpoints")):
            vouched.make_directory(self.directory)
            os.makedirs(self._path("checkpoints"), mode=0o700, exist_ok=True)
            fsync_directory(self.directory)
        if os.stat(self.directory).st_mode & 0o077:
            os.chmod(self.directory, 0o700)

    def _prepare(self, upgrade: bool) -> None:
        """Look whether the store is ours to change, and clear away what a killed run left."""
        form = schema.check(self.directory, self._forms)
        if form is None:
            if self._ids():
                raise RollbackError(
                    f"{self._path('schema')} is missing although there are checkpoints; they carry "
                    'the number themselves ("schema"): write the highest of them into that file'
                )
            schema.write_store_schema(self.directory, self._forms.newest)
        try:
            for folder in (self.directory, self._path("checkpoints")):
                for name in sorted(os.listdir(folder)):
                    if name.startswith("."):
                        os.unlink(os.path.join(folder, name))
        except OSError as error:
            raise storage_error(error, self.directory) from error
        self._objects.sweep()
        if upgrade and form is not None and form < self._forms.newest:
            schema.migrate(self.directory, self._forms.newest, self._forms)

    def migrate(self, to: int) -> list[str]:
        """Bring the documents to another form; a message for each that was damaged and left."""
        with self._exclusive(upgrade=False):
            return schema.migrate(self.directory, to, self._forms)

    # -- inside -------------------------------------------------------------------------

    def _path(self, name: str) -> str:
        return os.path.join(self.directory, name)

    def _checkpoint_path(self, name: str) -> str:
        return os.path.join(self.directory, "checkpoints", f"{name}.json")

    def _ids(self) -> list[str]:
        """By sequence, the oldest first; what is not an id is not ours."""
        schema.check(self.directory, self._forms)
        try:
            names = os.listdir(self._path("checkpoints"))
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise storage_error(error, self.directory) from error
        ids = [name[: -len(".json")] for name in names if name.endswith(".json")]
        return sorted((one for one in ids if codec.ID.fullmatch(one)), key=sequence_of)

    def _load(self, path: str, kind: str, light: bool = False) -> dict[str, Any] | None:
        schema.check(self.directory, self._forms)
        return schema.load(path, kind, self._forms, light)

    def _save(self, path: str, kind: str, body: Mapping[str, Any]) -> None:
        with self.locked():
            schema.save(path, kind, body, self._forms)

    def _remove(self, path: str) -> None:
        with self.locked():
            try:
                remove(path)
            except OSError as error:
                raise storage_error(error, self.directory) from error

    def _read_line(self, name: str) -> str | None:
        """The one line of a small file that is the same in every form of the store."""
        schema.check(self.directory, self._forms)
        try:
            text = read_text(self._path(name))
        except OSError as error:
            raise storage_error(error, self.directory) from error
        return None if text is None else text.strip()

    def _write_line(self, name: str, text: str) -> None:
        with self.locked():
            try:
                write_atomic(self._path(name), f"{text}\n", mode=0o600)
            except OSError as error:
                raise storage_error(error, self.directory, 4096) from error

    # -- the sequence -------------------------------------------------------------------

    def sequence(self) -> int:
        """The number that was taken last, 0 before the first."""
        text = self._read_line("sequence")
        if text is not None and not text.isdecimal():
            path = self._path("sequence")
            raise RollbackError(
                f"{path} is damaged: it holds {text[:40]!r}, not a number; delete it, and it is "
                "made again from the checkpoints"
            )
        return max([int(text or 0), *(sequence_of(name) for name in self._ids()[-1:])])

    def _reserve(self, sequence: int | None = None) -> int:
        """Take the next number, or see to it that no later one is ``sequence`` or less.

        It is durable before the checkpoint is there, so no number is ever used twice.
        """
        if sequence is None:
            if self._reserved is None:
                self._reserved = self.sequence() + 1
                self._write_line("sequence", str(self._reserved))
            return self._reserved
        if self.sequence() < sequence:
            self._write_line("sequence", str(sequence))
        return sequence


def sequence_of(name: str) -> int:
    """The sequence that an id begins with."""
    return int(name.partition("-")[0])


@contextlib.contextmanager
def naming(path: str) -> Iterator[None]:
    """Add to the error of a codec which file it was about."""
    try:
        yield
    except RollbackError as error:
        raise RollbackError(
            f"{path}: {error}; look at it, and delete it to go on without it"
        ) from error
