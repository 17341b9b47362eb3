# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What of containerd's configuration is ours, remembered. Pure: text in, text out.

The drop-in is ours as a whole, so what it replaced needs no memory: without it containerd reads
what others say again. Remembered is what was asked for, since on containerd 1.x the drop-in also
repeats what others say, and what was added to the first file.

As with ``daemon.json``, the record goes before the files when something is set and after them when
it is taken back, so that a run that is killed claims too much rather than too little.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import Any

from ..trees.leaves import Path

RECORD_PATH = "/var/lib/steadygpu/owned/containerd_config.json"


@dataclass(frozen=True)
class Record:
    """``wanted`` are our settings in the names of version 3; ``drop_in`` is where they stand and
    ``digest`` that of its text.

    ``added_import`` is what we made the first file import, ``former_imports`` the text of the list
    before (None: there was none), ``made_root`` whether the first file itself is ours. ``pending``:
    the files are not yet known to have been read by the daemon.
    """

    wanted: dict[Path, Any] = field(default_factory=dict)
    drop_in: str | None = None
    digest: str | None = None
    added_import: str | None = None
    former_imports: str | None = None
    made_root: bool = False
    pending: bool = False


class RecordError(Exception):
    """The record is there and cannot be understood."""


def dump_record(record: Record) -> str:
    """The record as JSON text, for its file."""
    document = {
        "version": 1,
        "wanted": [{"key": list(path), "value": value} for path, value in record.wanted.items()],
        "drop_in": record.drop_in,
        "digest": record.digest,
        "added_import": record.added_import,
        "former_imports": record.former_imports,
        "made_root": record.made_root,
        "pending": record.pending,
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def load_record(text: str | None) -> Record:
    """The record in ``text``; an empty one for None. Raises RecordError."""
    if text is None:
        return Record()
    try:
        document = json.loads(text)
        if document["version"] != 1:
            raise ValueError(f"version {document['version']}")
        return Record(
            wanted={tuple(one["key"]): one["value"] for one in document["wanted"]},
            drop_in=document["drop_in"],
            digest=document["digest"],
            added_import=document["added_import"],
            former_imports=document["former_imports"],
            made_root=bool(document["made_root"]),
            pending=bool(document["pending"]),
        )
    except (ValueError, KeyError, TypeError) as error:
        raise RecordError(f"not a record of version 1 ({error!r})") from error


def digest(text: str) -> str:
    """What a text is known again by."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()
