# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A checkpoint as one file, to keep elsewhere or to look at on another machine.

It is a tar archive, not compressed: ``checkpoint.json`` first, then ``objects/<SHA-256>``. The same
checkpoint gives the same bytes. Who imports an archive and restores from it trusts whoever made
it: the archive says what files shall hold.
"""

from __future__ import annotations

import contextlib
import functools
import io
import os
import re
import tarfile
import tempfile
from collections.abc import Iterator
from typing import IO

from ...atomic import fsync_directory
from ...secrets import redact
from .. import codec, scope
from ..model import Checkpoint, NewerStoreError, RollbackError
from ..observation.files import MOST_BYTES
from . import documents, json_fields, schema
from .store import Store

_DOCUMENT = "checkpoint.json"
_OBJECT = re.compile(r"objects/([0-9a-f]{64})")
# 100,000 files need 30 MB.
_DOCUMENT_LIMIT = 128 * 1024**2
# What is larger is not searched for secrets, but taken for one.
_SEARCHED = 1024**2
_CHUNK = 1024**2


def export(store: Store, selector: str, path: str, secrets: bool = True) -> list[str]:
    """Write a checkpoint to the file ``path`` (mode 0600); the paths whose contents are not in it.

    Without ``secrets`` these are all files that may hold one: those of secret areas, and those in
    which :mod:`...secrets.redact` finds something to hide. That they were there, their mode,
    owner, size and digest, and all that is not a file's content is in the archive all the same.

    Raises RollbackError, also for damaged content, and leaves the old file.
    """
    checkpoint = store.get(selector)
    left_out = {} if secrets else _secret(store, checkpoint)
    files = checkpoint.state.files.items()
    contents = {
        entry.digest: entry.size
        for name, entry in files
        if entry.digest is not None and entry.digest not in left_out.values()
    }
    forms = schema.Forms()
    document = documents.encode(
        {
            "schema": forms.newest,
            "kind": "checkpoint",
            "left_out": sorted(left_out),
            **codec.checkpoint_to_json(checkpoint),
        }
    )
    mtime = max(0, int(checkpoint.taken_at))
    with _new_file(path) as handle:
        with tarfile.open(fileobj=handle, mode="w", format=tarfile.USTAR_FORMAT) as archive:
            archive.addfile(_member(_DOCUMENT, len(document), mtime), io.BytesIO(document))
            for digest in sorted(contents):
                with store.open_content(digest) as content:
                    size = os.fstat(content.fileno()).st_size
                    archive.addfile(_member(f"objects/{digest}", size, mtime), content)
    return sorted(left_out)


class _UnfitError(RollbackError):
    """What is in an archive that is not as we make them; it names no path."""


def import_(store: Store, path: str) -> Checkpoint:
    """Put an exported checkpoint into the store; the checkpoint as it is there.

    It keeps its id, unless another checkpoint has it: then it gets the next one. One that is there
    already stays as it is. Where contents were left out, the checkpoint can be looked at, and those
    files cannot be restored. It may be another machine's. It goes with its sequence: an old one is
    gone with the next prune, unless it is labelled.

    Raises RollbackError for an archive that is not one of ours, whole and unchanged; the store is
    then as it was.
    """
    try:
        with open(path, "rb") as handle, tarfile.open(fileobj=handle, mode="r:") as archive:
            members = iter(archive)
            checkpoint, left_out = _document(archive, next(members, None), path)
            with store.locked():
                found = _take_objects(store, archive, members, checkpoint)
                for name, entry in sorted(checkpoint.state.files.items()):
                    if entry.digest and entry.digest not in found and name not in left_out:
                        raise _UnfitError(f"the content of {name} is missing")
                return store.adopt(checkpoint)
    except (_UnfitError, tarfile.TarError, EOFError) as error:
        raise RollbackError(
            f"{path} is no export of a checkpoint, or not a whole one: {error}. Nothing was "
            "imported; export it again, or look for another copy"
        ) from error
    except OSError as error:
        raise RollbackError(f"{path} cannot be read: {error.strerror or error}") from error


def _secret(store: Store, checkpoint: Checkpoint) -> dict[str, str]:
    """The digest, by path, of every content that may hold a secret."""
    areas = scope.areas(checkpoint.declared)
    files = [
        (name, entry)
        for name, entry in sorted(checkpoint.state.files.items())
        if entry.digest is not None
    ]
    hidden = set()
    for name, entry in files:
        area = scope.area_of(name, areas)
        if (
            area is None
            or area.secret
            or entry.size > _SEARCHED
            or _holds_secret(name, store.content(entry.digest or ""))
        ):
            hidden.add(entry.digest)
    return {name: entry.digest or "" for name, entry in files if entry.digest in hidden}


def _holds_secret(path: str, content: bytes) -> bool:
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        # Every byte is a character there, so what is readable in it is found.
        text = content.decode("latin-1")
    return redact.redact(path, text) != text


def _document(
    archive: tarfile.TarFile, member: tarfile.TarInfo | None, path: str
) -> tuple[Checkpoint, frozenset[str]]:
    """The checkpoint, and the paths whose contents are not in the archive."""
    if member is None or member.name != _DOCUMENT:
        raise _UnfitError(f"it does not begin with {_DOCUMENT}")
    content = _content(archive, member, _DOCUMENT_LIMIT).read()
    try:
        document = documents.decode(content)
        document = schema.ours(document, f"{_DOCUMENT} in {path}", "checkpoint", schema.Forms())
        checkpoint = codec.checkpoint_from_json(document)
        left_out = json_fields.texts(document, "left_out", "checkpoint")
    except NewerStoreError:
        raise
    except RollbackError as error:
        raise _UnfitError(str(error)) from error
    for name in (*checkpoint.state.files, *checkpoint.declared):
        if not name.startswith("/") or os.path.normpath(name) != name or name.startswith("//"):
            raise _UnfitError(f"{name!r} in it is no plain absolute path")
    return checkpoint, frozenset(left_out)


def _take_objects(
    store: Store,
    archive: tarfile.TarFile,
    members: Iterator[tarfile.TarInfo],
    checkpoint: Checkpoint,
) -> set[str]:
    wanted = {entry.digest for entry in checkpoint.state.files.values() if entry.digest}
    found: set[str] = set()
    for member in members:
        form = _OBJECT.fullmatch(member.name)
        if form is None or form.group(1) not in wanted:
            raise _UnfitError(f"{member.name!r} does not belong into it")
        if form.group(1) in found:
            raise _UnfitError(f"{member.name} is in it twice")
        content = _content(archive, member, MOST_BYTES)
        digest, _size = store.sink.put(iter(functools.partial(content.read, _CHUNK), b""))
        if digest != form.group(1):
            raise _UnfitError(f"{member.name} is damaged: its content has the SHA-256 {digest}")
        found.add(digest)
    return found


def _content(archive: tarfile.TarFile, member: tarfile.TarInfo, limit: int) -> IO[bytes]:
    content = archive.extractfile(member) if member.isreg() and not member.issparse() else None
    if content is None:
        raise _UnfitError(f"{member.name!r} in it is not a plain file")
    if member.size > limit:
        raise _UnfitError(
            f"{member.name} in it has {member.size} bytes, and {limit} is the most that can be"
        )
    return content


def _member(name: str, size: int, mtime: int) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.size, member.mtime, member.mode = size, mtime, 0o600
    return member


@contextlib.contextmanager
def _new_file(path: str) -> Iterator[IO[bytes]]:
    """A file that is there, whole and durable, once all went well."""
    directory = os.path.dirname(os.path.abspath(path))
    temporary = None
    try:
        fd, temporary = tempfile.mkstemp(prefix=f".{os.path.basename(path)}.", dir=directory)
        with os.fdopen(fd, "wb") as handle:
            yield handle
            handle.flush()
            os.fsync(handle.fileno())
        os.replace(temporary, path)
        temporary = None
        fsync_directory(directory)
    except OSError as error:
        raise RollbackError(
            f"the export {path} could not be written: {error.strerror or error}; what was there "
            "is as it was"
        ) from error
    finally:
        if temporary is not None:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
