# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Labels, the open window, the restore that did not end, and what is left for later."""

from __future__ import annotations

import os
from collections.abc import Sequence

from .. import codec
from ..model import Left, RestoreJournal, RollbackError, Window
from . import json_fields, selector
from .documents import storage_error
from .store_base import StoreBase, naming


class UnderWay(StoreBase):
    """The part of :class:`.store.Store` that is not checkpoints."""

    def labels(self) -> dict[str, str]:
        """The id by label."""
        path = self._path("labels.json")
        document = self._load(path, "labels")
        with naming(path):
            return json_fields.text_mapping(document, "labels", "labels") if document else {}

    def label(self, name: str, checkpoint: str) -> bool:
        """Put a label on the checkpoint of an id; True when it was not there. It moves."""
        selector.check_label(name)
        with self.locked():
            if checkpoint not in self._ids():
                raise RollbackError(f"there is no checkpoint {checkpoint} to label {name}")
            labels = self.labels()
            if labels.get(name) == checkpoint:
                return False
            labels[name] = checkpoint
            self._save(self._path("labels.json"), "labels", {"labels": labels})
            return True

    def unlabel(self, name: str) -> bool:
        """Take a label away; True when there was one."""
        if name not in self.labels():
            return False
        with self.locked():
            labels = self.labels()
            there = labels.pop(name, None) is not None
            if there:
                self._save(self._path("labels.json"), "labels", {"labels": labels})
            return there

    def window(self) -> Window | None:
        """The open window."""
        path = self._path("window.json")
        document = self._load(path, "window")
        with naming(path):
            return codec.window_from_json(document) if document else None

    def write_window(self, window: Window) -> None:
        """Open a window, or change the open one."""
        self._save(self._path("window.json"), "window", codec.window_to_json(window))

    def clear_window(self) -> None:
        """The change is confirmed or undone."""
        self._remove(self._path("window.json"))

    def restore_journal(self) -> RestoreJournal | None:
        """The restore that did not end."""
        path = self._path("restore.json")
        document = self._load(path, "restore")
        with naming(path):
            return codec.restore_from_json(document) if document else None

    def write_restore(self, journal: RestoreJournal) -> None:
        """Say what a restore is about to do."""
        self._save(self._path("restore.json"), "restore", codec.restore_to_json(journal))

    def clear_restore(self) -> None:
        """The restore ended."""
        self._remove(self._path("restore.json"))

    def pending(self) -> list[Left]:
        """What the last restore left for later."""
        path = self._path("pending.json")
        document = self._load(path, "pending")
        with naming(path):
            left = json_fields.sequence(document.get("left"), "left") if document else []
            return [codec.left_from_json(one) for one in left]

    def pending_since(self) -> float:
        """When that was told, in seconds since the epoch; 0 if nothing ever was."""
        try:
            return os.stat(self._path("pending.json")).st_mtime
        except FileNotFoundError:
            return 0.0
        except OSError as error:
            raise storage_error(error, self.directory) from error

    def write_pending(self, left: Sequence[Left]) -> None:
        """Keep what is left for later."""
        self._save(
            self._path("pending.json"),
            "pending",
            {"left": [codec.left_to_json(one) for one in left]},
        )

    def settled(self) -> str | None:
        """The id of the checkpoint that shows the host as this collection left it last."""
        text = self._read_line("settled")
        if text is not None and not codec.ID.fullmatch(text):
            raise RollbackError(
                f"{self._path('settled')} is damaged: it holds {text[:40]!r}, not an id; look at "
                "it, and delete it to go on without it"
            )
        return text

    def set_settled(self, checkpoint: str) -> None:
        """Say which checkpoint shows the host as this collection left it."""
        self._write_line("settled", checkpoint)

    def _under_way(self) -> dict[str, str]:
        """The ids that something relies on, what that is, and how that would end."""
        needed = {}
        settled, window, journal = self.settled(), self.window(), self.restore_journal()
        if settled is not None:
            needed[settled] = (
                "what this collection left behind last, so it is not removed; the next confirmed "
                "change or restore frees it"
            )
        if window is not None:
            needed[window.base] = (
                "the base of the open window, so it is not removed; confirm or restore first"
            )
        for one in (journal.target, journal.replaced) if journal is not None else ():
            needed[one] = (
                "part of a restore that has not ended, so it is not removed; end it first "
                "(steadygpu checkpoint resume)"
            )
        return needed
