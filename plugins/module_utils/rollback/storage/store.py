# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where checkpoints are kept, and what is under way.

Below the directory, which only root can read:

    schema           the form of the documents, see :mod:`.schema`
    lock             who is writing
    sequence         the number of the newest checkpoint; it only counts up
    objects/a/…      contents of files, see :mod:`.objects`
    checkpoints/ID.json, labels.json, window.json, restore.json, pending.json
    settled          the id of the checkpoint that shows what this collection left behind last
    vouched.jsonl    what this collection wrote itself, see :mod:`...vouched`

A file is written beside its place, made durable and renamed. What a checkpoint needs is there
before it, and goes after it, so a store that was cut anywhere is whole.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, BinaryIO

from ... import vouched
from .. import codec, scope
from ..model import Checkpoint, Host, NewerStoreError, Reason, RollbackError, State
from . import json_fields, retention, schema, selector
from .documents import storage_error
from .objects import Objects
from .store_base import naming, sequence_of
from .under_way import UnderWay

_DIGESTS = re.compile(rb"[0-9a-f]{64}")


@dataclass(frozen=True)
class Summary:
    """A checkpoint for a list. ``files`` is the number of paths that it knows."""

    id: str
    sequence: int
    taken_at: float
    host: Host
    reason: Reason
    declared: tuple[str, ...]
    files: int
    state_digest: str | None
    labels: tuple[str, ...] = ()


class Store(UnderWay):
    """The checkpoints in ``directory``.

    Reading needs no lock, and a store that is not there is an empty one. What writes takes the
    lock by itself; who does several things that belong together takes :meth:`locked` around them.
    Not for several threads. ``wait_s`` bounds the wait for another process, ``now`` gives seconds
    since the epoch, ``forms`` what this program knows of documents.

    Everything raises RollbackError: BusyError when another process did not end in time,
    NewerStoreError when a newer program wrote the store.
    """

    # -- contents -----------------------------------------------------------------------

    @property
    def sink(self) -> Objects:
        """Where an observation puts contents, by ``put_file(fd)`` and ``put(chunks)``.

        They become visible with :meth:`add`. From here on, what this collection writes counts as
        written after the checkpoint that is about to be. Only within :meth:`locked`.
        """
        if not self._depth:
            raise RuntimeError("Store.sink is for who holds the lock: with store.locked(): …")
        self._objects.begin_batch()
        self._reserve()
        return self._objects

    def content(self, digest: str) -> bytes:
        """What a file held. Raises RollbackError when it is damaged or gone."""
        return self._objects.read(digest)

    def open_content(self, digest: str) -> BinaryIO:
        """Like :meth:`content`, for what is too large to hold: verified, open at its beginning."""
        return self._objects.open(digest)

    # -- checkpoints --------------------------------------------------------------------

    def add(
        self, state: State, reason: Reason, host: Host, declared: Sequence[str] = ()
    ) -> Checkpoint:
        """Keep a state, whose files' contents came through :attr:`sink`.

        When nothing differs from the newest checkpoint, that one is returned instead of a twin.
        """
        with self.locked():
            fresh = self._objects.flush()
            try:
                return self._add(state, reason, host, tuple(declared))
            except BaseException:
                # Nothing refers to them.
                for digest in fresh:
                    self._objects.remove(digest)
                raise
            finally:
                self._reserved = None

    def _add(
        self, state: State, reason: Reason, host: Host, declared: tuple[str, ...]
    ) -> Checkpoint:
        for path, entry in state.files.items():
            if entry.digest is not None and not self._objects.has(entry.digest):
                raise RollbackError(
                    f"what {path} holds is not in the store {self.directory}, so this would be no "
                    "checkpoint; nothing was kept. Take it again"
                )
        digest = codec.state_digest(state)
        ids = self._ids()
        newest = self._summary(ids[-1]) if ids else None
        if newest is not None and (newest.state_digest, newest.host.machine, newest.declared) == (
            digest,
            host.machine,
            declared,
        ):
            # One that turns out to be damaged is no twin, nor one that looked at less.
            with contextlib.suppress(RollbackError):
                twin = self._read(newest.id)
                if twin.looked == scope.patterns(declared):
                    return twin
        sequence = self._reserve()
        checkpoint = Checkpoint(
            id=f"{sequence}-{digest[:8]}",
            sequence=sequence,
            taken_at=self._now(),
            host=host,
            reason=reason,
            state=state,
            declared=declared,
            looked=scope.patterns(declared),
        )
        self._write(checkpoint, digest)
        return checkpoint

    def adopt(self, checkpoint: Checkpoint) -> Checkpoint:
        """Keep a checkpoint that was taken elsewhere, whose contents came through :attr:`sink`.

        Under its own id, unless another one has it. Contents may be missing.
        """
        with self.locked():
            fresh = self._objects.flush()
            try:
                return self._adopt(checkpoint)
            except BaseException:
                for digest in fresh:
                    self._objects.remove(digest)
                raise
            finally:
                self._reserved = None

    def _adopt(self, checkpoint: Checkpoint) -> Checkpoint:
        if checkpoint.id in self._ids():
            with contextlib.suppress(RollbackError):
                present = self._read(checkpoint.id)
                if present == checkpoint:
                    return present
            sequence = self._reserve()
            name = f"{sequence}-{checkpoint.id.partition('-')[2]}"
            checkpoint = replace(checkpoint, id=name, sequence=sequence)
        self._write(checkpoint, codec.state_digest(checkpoint.state))
        return checkpoint

    def _write(self, checkpoint: Checkpoint, state_digest: str) -> None:
        self._reserve(checkpoint.sequence)
        body = codec.checkpoint_to_json(checkpoint)
        extra = {"state_digest": state_digest, "files": len(checkpoint.state.files)}
        self._save(self._checkpoint_path(checkpoint.id), "checkpoint", {**extra, **body})

    def get(self, selector_text: str) -> Checkpoint:
        """The checkpoint that is meant, see :func:`.selector.find`."""
        return self._read(self.find(selector_text))

    def find(self, selector_text: str) -> str:
        """The id of the checkpoint that is meant, see :func:`.selector.find`."""
        ids = self._ids()
        if selector_text in ids:
            # Whatever is the matter with the labels or the window.
            return selector_text
        window = self.window()
        return selector.find(
            selector_text,
            ids,
            self.labels(),
            window.base if window else None,
            lambda: {one.id: one.taken_at for one in self.summaries()},
        )

    def checkpoints(self) -> list[Checkpoint]:
        """All of them, the oldest first, without the :meth:`damaged` ones."""
        found = []
        for name in self._ids():
            with contextlib.suppress(RollbackError):
                found.append(self._read(name))
        return found

    def summaries(self) -> list[Summary]:
        """All of them for a list, the oldest first, without the :meth:`damaged` ones."""
        labels = self.labels()
        return [
            replace(one, labels=tuple(sorted(name for name in labels if labels[name] == one.id)))
            for one in map(self._summary, self._ids())
            if one is not None
        ]

    def damaged(self) -> list[str]:
        """A message for every checkpoint that cannot be read."""
        messages = []
        for name in self._ids():
            try:
                self._read(name)
            except RollbackError as error:
                messages.append(str(error))
        return messages

    def verify(self) -> list[str]:
        """:meth:`damaged`, and a message for every content that is missing or damaged."""
        messages, seen = self.damaged(), set()
        for checkpoint in self.checkpoints():
            for path, entry in checkpoint.state.files.items():
                if entry.digest is None or entry.digest in seen:
                    continue
                seen.add(entry.digest)
                try:
                    self._objects.open(entry.digest).close()
                except RollbackError as error:
                    messages.append(f"checkpoint {checkpoint.id}, {path}: {error}")
        return messages

    def remove(self, name: str) -> None:
        """Delete the checkpoint of an id, unless a label or something under way needs it."""
        with self.locked():
            if name not in self._ids():
                raise RollbackError(f"there is no checkpoint {name} in {self.directory}")
            self.refuse_needed(name)
            self._remove(self._checkpoint_path(name))
            self._sweep()

    def refuse_needed(self, name: str, besides: Collection[str] = ()) -> None:
        """Raise RollbackError if something needs the checkpoint of an id, ``besides`` labels."""
        needed = self._under_way()
        if name in needed:
            raise RollbackError(f"checkpoint {name} is {needed[name]}")
        labels = sorted(
            label for label, one in self.labels().items() if one == name and label not in besides
        )
        if labels:
            raise RollbackError(
                f"checkpoint {name} is labelled {', '.join(labels)}, so it is not removed; remove "
                f"the label first (steadygpu checkpoint unlabel {labels[0]})"
            )

    def prune(self, keep: int, max_age_days: float | None, now: float) -> list[str]:
        """Delete what :func:`.retention.going` says, then what nothing refers to; the ids."""
        if keep < 1:
            raise RollbackError(f"keep is {keep}; wanted is a number from 1")
        with self.locked():
            gone = retention.going(
                [self._kept(name) for name in self._ids()],
                keep,
                max_age_days,
                now,
                {*self.labels().values(), *self._under_way()},
            )
            for name in gone:
                self._remove(self._checkpoint_path(name))
            self._sweep()
            ids = self._ids()
            if ids:
                try:
                    vouched.compact(sequence_of(ids[0]), self.directory)
                except OSError as error:
                    raise storage_error(error, self.directory) from error
            return gone

    def _sweep(self) -> None:
        """Mark and sweep. What looks like a digest counts, also in a document that is damaged."""
        marked: set[str] = set()
        try:
            for path in schema.document_paths(self.directory):
                with open(path, "rb") as handle:
                    marked.update(
                        found.decode("ascii") for found in _DIGESTS.findall(handle.read())
                    )
            for digest in sorted(self._objects.all() - marked):
                self._objects.remove(digest)
        except OSError as error:
            raise storage_error(error, self.directory) from error

    # -- inside -------------------------------------------------------------------------

    def _read(self, name: str) -> Checkpoint:
        path = self._checkpoint_path(name)
        document = self._load(path, "checkpoint")
        if document is None:
            raise RollbackError(f"there is no checkpoint {name} in {self.directory}")
        with naming(path):
            checkpoint = codec.checkpoint_from_json(document)
            if checkpoint.id != name:
                raise RollbackError(f"it is the checkpoint {checkpoint.id}")
        return checkpoint

    def _summary(self, name: str) -> Summary | None:
        """None for a checkpoint that is damaged."""
        path = self._checkpoint_path(name)
        try:
            document = self._load(path, "checkpoint", light=True)
            return None if document is None else _summary(name, document)
        except NewerStoreError:
            raise
        except RollbackError:
            return None

    def _kept(self, name: str) -> retention.Kept:
        summary = self._summary(name)
        return retention.Kept(name, sequence_of(name), summary.taken_at if summary else None)


def _summary(name: str, document: Mapping[str, Any]) -> Summary:
    place = "checkpoint"
    host = json_fields.part(document, "host", place)
    return Summary(
        id=name,
        sequence=sequence_of(name),
        taken_at=json_fields.number(document, "taken_at", place),
        host=Host(
            json_fields.text(host, "machine", "host"), json_fields.text(host, "hostname", "host")
        ),
        reason=codec.reason_from_json(json_fields.get(document, "reason", place)),
        declared=json_fields.texts(document, "declared", place),
        files=json_fields.whole(document, "files", place),
        state_digest=document.get("state_digest"),
    )
