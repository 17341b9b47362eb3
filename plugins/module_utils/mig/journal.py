# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a MIG change leaves on the disk: a journal while it runs, the layout before it, a lock.

Whatever kills a change, the next run (or the boot unit) finds in the journal what the host
had before and which services were stopped.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from .. import file_lock
from ..atomic import read_text, remove, write_atomic
from . import targets
from .layout_json import layout_from_json, layout_to_json
from .model import GpuLayout, MigError
from .stop_set import Item, item_of

DIRECTORY = "/var/lib/steadygpu/mig"
_VERSION = 1


@dataclass(frozen=True)
class Journal:
    """A change under way: the GPUs it is for, as they were, and what is ``stopped`` for it.

    ``phase`` is ``changing``, or ``starting`` when all is done but to start what was stopped.
    ``stopped`` is in the order of stopping.
    """

    phase: str
    before: tuple[GpuLayout, ...]
    stopped: tuple[Item, ...] = ()


class Store:
    """The files below ``directory``. Raises MigError for a file that is not ours."""

    def __init__(self, directory: str = DIRECTORY) -> None:
        self._directory = directory
        self.journal_path = os.path.join(directory, "journal.json")
        self.previous_path = os.path.join(directory, "previous.json")

    @contextlib.contextmanager
    def locked(self, deadline_s: float) -> Iterator[None]:
        """Only one change at a time. Raises MigError when another one takes too long."""
        os.makedirs(self._directory, mode=0o755, exist_ok=True)
        path = os.path.join(self._directory, "lock")
        try:
            descriptor = file_lock.acquire(path, deadline_s, mode=0o644)
        except file_lock.HeldError as error:
            raise MigError(
                f"another MIG change is under way (process {error.owner}, lock {path}) and did not "
                f"end within {deadline_s:g} s; nothing was changed"
            ) from None
        try:
            yield
        finally:
            os.close(descriptor)

    def read(self) -> Journal | None:
        """The journal of a change that did not end, None when the last one did."""
        document = self._load(self.journal_path)
        if document is None:
            return None
        try:
            return Journal(
                phase=document["phase"],
                before=tuple(layout_from_json(one) for one in document["before"]),
                stopped=tuple(item_of(entry) for entry in document["stopped"]),
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise self._foreign(self.journal_path, error) from error

    def write(self, journal: Journal) -> None:
        """Keep the journal, durably. Raises OSError."""
        # What the driver offers is asked again, never restored.
        before = [layout_to_json(replace(one, geometry=None)) for one in journal.before]
        self._save(
            self.journal_path,
            {
                "phase": journal.phase,
                "before": before,
                "stopped": [item.text for item in journal.stopped],
            },
        )

    def clear(self) -> None:
        """The change ended."""
        remove(self.journal_path)

    def previous(self) -> tuple[targets.Target, ...] | None:
        """The layout before the last change; None before the first."""
        document = self._load(self.previous_path)
        if document is None:
            return None
        return targets.from_json(self.previous_path, document.get("gpus"))

    def write_previous(self, before: Sequence[targets.Target]) -> None:
        """Keep what ``state: previous`` goes back to. Raises OSError."""
        self._save(self.previous_path, {"gpus": targets.to_json(before)})

    def _load(self, path: str) -> dict[str, Any] | None:
        text = read_text(path)
        if text is None:
            return None
        try:
            document = json.loads(text)
        except ValueError as error:
            raise self._foreign(path, error) from error
        if not isinstance(document, dict):
            raise self._foreign(path, TypeError("not an object"))
        if document.get("version") != _VERSION:
            told = f"version {document.get('version')!r}, this reads {_VERSION}"
            raise self._foreign(path, ValueError(told))
        return document

    @staticmethod
    def _foreign(path: str, error: Exception) -> MigError:
        return MigError(
            f"{path} is not what this program writes ({type(error).__name__}: {error}); look at "
            "it, and delete it to go on without it"
        )

    @staticmethod
    def _save(path: str, document: Mapping[str, Any]) -> None:
        text = json.dumps({"version": _VERSION, **document}, indent=2, sort_keys=True) + "\n"
        if read_text(path) != text:
            write_atomic(path, text, mode=0o600)
