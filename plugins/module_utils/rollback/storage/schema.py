# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The form of the store's documents, and the way to a newer or an older one.

Every document carries the number of its own form, and the file ``schema`` that of the store. The
store's is the higher one at every moment: going up it is written before the first document, going
down after the last. So wherever a migration is cut, an older program refuses the store by its
number, and the newer one reads each document by the document's own and can finish.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ...atomic import read_text, write_atomic
from ..model import NewerStoreError, RollbackError
from . import documents

SCHEMA = 1

Document = dict[str, Any]
Change = Callable[[Document], Document]

# UPGRADES[n] makes a document of form n + 1 from one of form n; DOWNGRADES[n] one of n - 1. The
# document's "kind" says what it is; "schema" is set here.
UPGRADES: Mapping[int, Change] = {}
DOWNGRADES: Mapping[int, Change] = {}


@dataclass(frozen=True)
class Forms:
    """What a program knows: the newest form that it writes, and the changes between forms."""

    newest: int = SCHEMA
    upgrades: Mapping[int, Change] = field(default_factory=lambda: UPGRADES)
    downgrades: Mapping[int, Change] = field(default_factory=lambda: DOWNGRADES)

    @property
    def oldest(self) -> int:
        """The oldest form that it can read."""
        form = self.newest
        while form - 1 in self.upgrades:
            form -= 1
        return form


def document_paths(directory: str) -> list[str]:
    """All documents of a store: labels, window, journal, what is pending, and checkpoints."""
    paths = []
    for folder in (directory, os.path.join(directory, "checkpoints")):
        try:
            names = sorted(os.listdir(folder))
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            raise documents.storage_error(error, folder) from error
        paths += [
            os.path.join(folder, name)
            for name in names
            if name.endswith(".json") and not name.startswith(".")
        ]
    return paths


def store_schema(directory: str) -> int | None:
    """The form that the store says it has; None where there is no store yet."""
    path = os.path.join(directory, "schema")
    try:
        text = read_text(path)
    except OSError as error:
        raise documents.storage_error(error, directory) from error
    if text is None:
        return None
    if not text.strip().isdecimal() or int(text) < 1:
        raise RollbackError(
            f"{path} is damaged: it holds {text[:40]!r}, not a number; the documents beside it "
            f'carry the right one ("schema"): write the highest of them into {path}'
        )
    return int(text)


def check(directory: str, forms: Forms) -> int | None:
    """:func:`store_schema`, unless this program does not know it. Raises NewerStoreError."""
    schema = store_schema(directory)
    if schema is not None:
        _must_know(schema, directory, forms)
    return schema


def write_store_schema(directory: str, schema: int) -> None:
    """Say which form the store has, durably."""
    try:
        write_atomic(os.path.join(directory, "schema"), f"{schema}\n", mode=0o600)
    except OSError as error:
        raise documents.storage_error(error, directory, 4096) from error


def load(path: str, kind: str, forms: Forms, light: bool = False) -> Document | None:
    """A document in the newest form, however old the file is; None when there is none.

    Without the checkpoint's state if ``light``. Raises NewerStoreError, and RollbackError for a
    file that is not a ``kind`` of ours.
    """
    document = documents.load(path, light)
    if document is None:
        return None
    if light and _form(document, path) < forms.newest:
        # A change between forms gets the whole document.
        return load(path, kind, forms)
    return ours(document, path, kind, forms)


def ours(document: Document, path: str, kind: str, forms: Forms) -> Document:
    """A ``kind`` of document out of ``path`` in the newest form. Raises RollbackError."""
    form = _form(document, path)
    _must_know(form, path, forms)
    if document.get("kind") != kind:
        raise RollbackError(
            f"{path} is not a {kind} but a {document.get('kind')!r}; look at it, and delete it to "
            "go on without it"
        )
    return changed(document, forms.newest, forms, path)


def save(path: str, kind: str, body: Mapping[str, Any], forms: Forms) -> None:
    """Write a document in the newest form, durably. Raises RollbackError."""
    documents.save(path, {"schema": forms.newest, "kind": kind, **body})


def changed(document: Document, to: int, forms: Forms, path: str) -> Document:
    """The document in the form ``to``, step by step. Raises RollbackError."""
    form = _form(document, path)
    while form != to:
        way, steps = (1, forms.upgrades) if form < to else (-1, forms.downgrades)
        if form not in steps:
            raise RollbackError(
                f"{path} has the form {form}, and this program knows no way from there to "
                f"{form + way}; nothing was changed"
            )
        document = {**steps[form](dict(document)), "schema": form + way}
        form += way
    return document


def migrate(directory: str, to: int, forms: Forms | None = None) -> list[str]:
    """Rewrite a store in the form ``to``; what could not be read and was left, one message each.

    The caller holds the store's lock, see :meth:`.store.Store.migrate`. Cut anywhere, the next
    call finishes. Raises RollbackError where there is no way to that form.
    """
    forms = forms or Forms()
    now = check(directory, forms)
    if now is None:
        raise RollbackError(f"there are no checkpoints in {directory}, so nothing to migrate")
    _must_be_reachable(directory, now, to, forms)
    if to > now:
        write_store_schema(directory, to)
    messages = []
    for path in document_paths(directory):
        try:
            document = documents.load(path)
        except RollbackError as error:
            # It is as useless in the other form; whoever needs it is told the same.
            messages.append(str(error))
            continue
        if document is not None and _form(document, path) != to:
            document = changed(document, to, forms, path)
            # The other program counts it anew: its states may hold other things.
            document.pop("state_digest", None)
            documents.save(path, document)
    if to < now:
        write_store_schema(directory, to)
    return messages


def _must_be_reachable(directory: str, now: int, to: int, forms: Forms) -> None:
    lowest = forms.newest
    while lowest in forms.downgrades:
        lowest -= 1
    if not min(lowest, now) <= to <= forms.newest:
        raise RollbackError(
            f"the store {directory} has the form {now}, and this program can bring it to "
            f"{lowest} … {forms.newest}, not to {to}; nothing was changed"
        )


def _form(document: Mapping[str, Any], path: str) -> int:
    form = document.get("schema")
    if not isinstance(form, int) or isinstance(form, bool) or form < 1:
        raise RollbackError(
            f"{path} is damaged: its schema is {form!r}, not a number; look at it, and delete it "
            "to go on without it"
        )
    return form


def _must_know(schema: int, path: str, forms: Forms) -> None:
    if schema > forms.newest:
        raise NewerStoreError(
            f"{path} has schema {schema}, this program knows up to {forms.newest}; use the newer "
            f"steadygpu, or run with it: steadygpu checkpoint migrate --to {forms.newest}"
        )
    if schema < forms.oldest:
        raise RollbackError(
            f"{path} has schema {schema}, this program knows {forms.oldest} and newer; use an "
            f"older steadygpu to bring it there: steadygpu checkpoint migrate --to {forms.oldest}"
        )
