# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is kept of a host's settings, by owner: ``/var/lib/steadygpu/owned/settings-*.json``.

Of each setting how it is read back and the live value before the first change; and the files that
were written for it. The record is written before anything is changed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .. import vouched
from ..atomic import read_text
from .model import SettingsError, Target, target_from_dict

DIRECTORY = "/var/lib/steadygpu/owned"
_PREFIX, _SUFFIX = "settings-", ".json"
_VERSION = 1
NO_FILE = "(no file)"


@dataclass(frozen=True)
class Former:
    """A setting that is kept, and ``value``, the live one before us; None: there was none.

    ``left`` is what the kernel made of what was written, where that is not what was wanted;
    :data:`NO_FILE` where there was nothing to write to.
    """

    target: Target
    value: str | None
    left: str | None = None


@dataclass(frozen=True)
class Record:
    """All that one owner keeps. ``extra`` is the owner's own, of plain JSON values.

    ``returning`` are settings that nobody wants any more, and whose former value the kernel has not
    taken yet; each run tries again.
    """

    owner: str
    formers: tuple[Former, ...] = ()
    files: tuple[str, ...] = ()
    extra: dict[str, Any] = field(default_factory=dict)
    returning: tuple[Former, ...] = ()


def path_of(owner: str) -> str:
    """Where the record of an owner lies, as the host sees it."""
    return f"{DIRECTORY}/{_PREFIX}{owner}{_SUFFIX}"


def owner_of(path: str) -> str | None:
    """Whose record lies at ``path``, as the host sees it; None where it is no record."""
    directory, _slash, name = path.rpartition("/")
    if directory != DIRECTORY or not name.startswith(_PREFIX) or not name.endswith(_SUFFIX):
        return None
    return name[len(_PREFIX) : -len(_SUFFIX)]


def owners(root: str = "/") -> list[str]:
    """Who keeps something on this host, sorted."""
    try:
        names = os.listdir(_below(root, DIRECTORY))
    except (FileNotFoundError, NotADirectoryError):
        return []
    found = (owner_of(f"{DIRECTORY}/{name}") for name in names)
    return sorted(owner for owner in found if owner is not None)


def load(owner: str, root: str = "/") -> Record | None:
    """The record of an owner. Raises SettingsError for one that cannot be understood."""
    path = _below(root, path_of(owner))
    try:
        text = read_text(path)
    except OSError as error:
        raise SettingsError(f"{path} cannot be read: {error.strerror}") from error
    return None if text is None else parse(owner, text, path)


def parse(owner: str, text: str, path: str = "") -> Record:
    """The record in ``text``. Raises SettingsError."""
    path = path or path_of(owner)
    try:
        return _record(owner, json.loads(text))
    except (ValueError, KeyError, TypeError, AttributeError, SettingsError) as error:
        raise SettingsError(
            f"{path} cannot be understood ({error}). It tells which values were there before ours: "
            "put it back from a checkpoint, or move it away to begin anew"
        ) from error


def save(record: Record, root: str = "/") -> bool:
    """Write the record, if it says something new. True when it did. Raises OSError."""
    path = _below(root, path_of(record.owner))
    text = text_of(record)
    if read_text(path) == text:
        return False
    vouched.write(path, text, mode=0o600, root=root)
    return True


def forget(owner: str, root: str = "/") -> bool:
    """Remove the record. True when there was one. Raises OSError."""
    return vouched.remove(_below(root, path_of(owner)), root)


def text_of(record: Record) -> str:
    """The record as its file holds it."""
    said = {
        "version": _VERSION,
        "settings": [_former_to_dict(former) for former in record.formers],
        "files": list(record.files),
        "extra": record.extra,
    }
    if record.returning:
        said["returning"] = [_former_to_dict(former) for former in record.returning]
    return json.dumps(said, indent=2, sort_keys=True) + "\n"


def _record(owner: str, said: Mapping[str, Any]) -> Record:
    if said["version"] != _VERSION:
        raise ValueError(f"its version is {said['version']}, known is {_VERSION}")
    if not all(isinstance(path, str) for path in said["files"]):
        raise ValueError("its files are no list of paths")
    extra = said.get("extra", {})
    if not isinstance(extra, dict):
        raise ValueError("extra is no object")
    formers = tuple(map(_former_from_dict, said["settings"]))
    returning = tuple(map(_former_from_dict, said.get("returning", ())))
    return Record(owner, formers, tuple(said["files"]), extra, returning)


def _former_to_dict(former: Former) -> dict[str, Any]:
    return {**former.target.as_dict(), "former": former.value, "left": former.left}


def _former_from_dict(said: Mapping[str, Any]) -> Former:
    value, left = said["former"], said.get("left")
    if not all(text is None or isinstance(text, str) for text in (value, left)):
        raise ValueError(f"the former value of {said.get('name')} is no text")
    return Former(target_from_dict(said), value, left)


def _below(root: str, path: str) -> str:
    return os.path.join(root, path.lstrip("/"))
