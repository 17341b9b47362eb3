# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is ours in a file that others keep too: which values, and what they replaced. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ..trees.leaves import Path


@dataclass(frozen=True)
class Owned:
    """A value we set at ``key``, and the text it replaced (None: there was nothing).

    An element of a keyed list has the path ``(list, "name=")``.
    """

    key: Path
    value: Any
    former: str | None


@dataclass(frozen=True)
class Record:
    """What is ours in one file.

    ``containers`` holds, for each object or list we had to make or fill, the text it had
    before (None: not there). ``blank`` is the text of a file that held nothing but blanks,
    ``file_existed`` whether there was a file. ``pending`` names top-level keys that are in
    the file and that the daemon was not yet seen to take.
    """

    owned: tuple[Owned, ...] = ()
    containers: Mapping[Path, str | None] = field(default_factory=dict)
    file_existed: bool = True
    blank: str | None = None
    pending: tuple[str, ...] = ()

    def owner_of(self, key: Path) -> Owned | None:
        """Our entry for a key, or None when the key is not ours."""
        return next((owned for owned in self.owned if owned.key == key), None)

    def claim(self, key: Path, value: Any, former: str | None) -> Record:
        """The record with one more (or one renewed) value of ours."""
        others = tuple(owned for owned in self.owned if owned.key != key)
        return replace(self, owned=(*others, Owned(key, value, former)))

    def contain(self, key: Path, former: str | None) -> Record:
        """The record with the former text of an object or list; the first one stays."""
        if key in self.containers:
            return self
        return replace(self, containers={**self.containers, key: former})


class RecordError(Exception):
    """The ownership record is there and cannot be understood."""


def dump_record(record: Record) -> str:
    """The record as JSON text, for its file."""
    document = {
        "version": 1,
        "file_existed": record.file_existed,
        "blank": record.blank,
        "pending": list(record.pending),
        "owned": [
            {"key": list(owned.key), "value": owned.value, "former": owned.former}
            for owned in record.owned
        ],
        "containers": [
            {"key": list(key), "former": former} for key, former in record.containers.items()
        ],
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def load_record(text: str | None) -> Record:
    """The record in ``text``; an empty one for None. Raises RecordError."""
    if text is None:
        return Record()
    try:
        document = json.loads(text)
        return Record(
            owned=tuple(
                Owned(tuple(entry["key"]), entry["value"], entry["former"])
                for entry in document["owned"]
            ),
            containers={tuple(entry["key"]): entry["former"] for entry in document["containers"]},
            file_existed=bool(document["file_existed"]),
            blank=document["blank"],
            pending=tuple(document["pending"]),
        )
    except (ValueError, KeyError, TypeError) as error:
        raise RecordError(f"not a record of version 1 ({error!r})") from error
