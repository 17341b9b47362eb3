# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Our keys in dockerd's configuration file, beside everybody else's. Pure: text in, text out.

What is ours is remembered in a :class:`Record` with the text that stood there before, so
that taking a key back restores exactly what it replaced. A key that somebody else set to
another value is theirs: we say so and change nothing.

When a program is killed between two writes the record must claim too much rather than too
little. A claim without the value in the file is forgotten at the next take-back, because
the file does not hold our value; a value in the file without a claim would look foreign
for ever, and what it replaced would be lost. So whoever writes these writes the record
before the file when keys are set, and the file before the record when they are taken back.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from .json_text import Path, assign, assign_raw, delete, flatten, parse, raw

# Where dockerd looks unless its unit says --config-file.
CONFIG_PATH = "/etc/docker/daemon.json"

# Objects that are one thing: half of somebody's runtime under our path would be neither
# theirs nor ours.
ATOMS: tuple[Path, ...] = (("runtimes", "*"), ("default-ulimits", "*"))

# Lists of ``name=value`` words where each name has its own owner.
KEYED_LISTS = ("exec-opts",)

# Explicit values that make dockerd forget a key on reload; an absent key keeps its old one.
NEUTRAL: Mapping[str, Any] = {
    "runtimes": {},
    "default-runtime": "runc",
    "live-restore": False,
    "labels": [],
    "debug": False,
    "insecure-registries": [],
    "registry-mirrors": [],
}


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


def document(text: str | None) -> dict[str, Any]:
    """The configuration in a file's text; {} for no file and, as dockerd has it, a blank one."""
    return parse(text) if text is not None and text.strip() else {}


class ForeignOwnerError(Exception):
    """Keys we are to set hold another value that we did not write."""

    def __init__(self, conflicts: Sequence[tuple[str, str, str]]) -> None:
        lines = [f"{key} is {seen}, wanted {wanted}" for key, seen, wanted in conflicts]
        super().__init__(
            "somebody else set what we are to set: {}. Leave the key out of config, make the "
            "values equal, or say takeover: true (the former value is kept and comes back "
            "with state: absent)".format("; ".join(lines))
        )


@dataclass(frozen=True)
class Merge:
    """The new text (None: no file), the new record, and what was done, for a person."""

    text: str | None
    record: Record
    actions: tuple[str, ...]


def put(
    text: str | None, record: Record, wanted: Mapping[str, Any], takeover: bool = False
) -> Merge:
    """Set the leaves of ``wanted``; keep everything else byte by byte.

    Raises ForeignOwnerError, naming every conflict at once, or JsonTextError for a text that is
    no object. A value that is right already stays whose it is.
    """
    leaves = _wanted_leaves(wanted)
    if not leaves:
        return Merge(text, record, ())
    current, record = _begin(text, record)
    parse(current)
    conflicts: list[tuple[str, str, str]] = []
    actions: list[str] = []
    for key, value in leaves:
        seen = _value_at(current, key)
        if seen is not None and _same(seen, value):
            continue
        owner = record.owner_of(key)
        blocker = _blocker(current, key)
        if owner is None and (seen is not None or blocker is not None) and not takeover:
            place, found = (key, seen) if blocker is None else blocker
            conflicts.append((show_key(place), _show(found), _show(value)))
            continue
        former = owner.former if owner else _former_text(current, key)
        current, record = _set(current, record, key, value)
        record = record.claim(key, value, former)
        actions.append(_told(key, seen, value))
    if conflicts:
        raise ForeignOwnerError(conflicts)
    return Merge(current if actions else text, record, tuple(actions))


def take_back(text: str | None, record: Record, wanted: Mapping[str, Any] | None = None) -> Merge:
    """Undo :func:`put` for the leaves of ``wanted``, or for all that is ours (None).

    A key that somebody changed after us is left to them and forgotten. Raises
    JsonTextError for a text that is no object.
    """
    chosen = None if wanted is None else {key for key, _value in _wanted_leaves(wanted)}
    current = "{}\n" if text is None or not text.strip() else text
    parse(current)
    kept = [owned for owned in record.owned if chosen is not None and owned.key not in chosen]
    actions: list[str] = []
    for owned in reversed(record.owned):
        if owned in kept:
            continue
        seen = _value_at(current, owned.key)
        if seen is None:
            continue
        if not _same(seen, owned.value) and not _is_neutral(owned.key, seen):
            actions.append(
                f"left {show_key(owned.key)} = {_show(seen)}: somebody changed it after us"
            )
            continue
        current = _restore(current, owned)
        back = "removed" if owned.former is None else "restored to " + owned.former
        actions.append(f"{show_key(owned.key)} {back}")
    record = replace(record, owned=tuple(kept))
    current, record = _restore_containers(current, record)
    return _finish(text, current, record, actions)


def _begin(text: str | None, record: Record) -> tuple[str, Record]:
    """A text to work on; remembers what the file was when nothing in it is ours yet."""
    blank = text is None or not text.strip()
    if not record.owned:
        record = replace(
            record,
            file_existed=text is not None,
            blank=text if blank and text is not None else None,
            containers={},
        )
    return ("{}\n" if text is None or blank else text), record


def _finish(before: str | None, current: str, record: Record, actions: Sequence[str]) -> Merge:
    """Bring back "no file" or a blank one once nothing of ours is left in it."""
    result: str | None = current
    if not record.owned and not parse(current):
        if record.blank is not None:
            result = record.blank
        elif not record.file_existed:
            result = None
    if not record.owned:
        record = Record(pending=record.pending)
    untouched = (before is None or not before.strip()) and result == "{}\n"
    return Merge(before if untouched else result, record, tuple(actions))


def _set(text: str, record: Record, key: Path, value: Any) -> tuple[str, Record]:
    """Put one value in place, making the objects above it and noting what they were."""
    if key[0] in KEYED_LISTS and len(key) == 2:
        words = _words(text, key[0])
        record = record.contain(key[:1], raw(text, key[:1]))
        record = _note_empty_root(text, record)
        return assign(text, key[:1], _with_word(words, key[1], value)), record
    record = _note_empty_root(text, record)
    for depth in range(1, len(key)):
        above = raw(text, key[:depth])
        value_above = None if above is None else json.loads(above)
        if not isinstance(value_above, dict):
            text = assign(text, key[:depth], {})
        if not value_above or not isinstance(value_above, dict):
            record = record.contain(key[:depth], above)
    return assign(text, key, value), record


def _note_empty_root(text: str, record: Record) -> Record:
    return record if parse(text) else record.contain((), raw(text, ()))


def _restore(text: str, owned: Owned) -> str:
    if owned.key[0] in KEYED_LISTS and len(owned.key) == 2:
        former = None if owned.former is None else json.loads(owned.former)
        words = _with_word(_words(text, owned.key[0]), owned.key[1], former)
        return assign(text, owned.key[:1], words)
    if owned.former is None:
        return delete(text, owned.key)
    return assign_raw(text, owned.key, owned.former)


def _restore_containers(text: str, record: Record) -> tuple[str, Record]:
    """Objects and lists that we made or filled become again what they were, innermost first."""
    left = dict(record.containers)
    for key in sorted(record.containers, key=len, reverse=True):
        if any(owned.key[: len(key)] == key for owned in record.owned):
            continue
        former = left.pop(key)
        present = raw(text, key)
        if present is None:
            continue
        value = json.loads(present)
        as_before = former is not None and _same(value, json.loads(former))
        if value in ({}, []) or as_before:
            text = delete(text, key) if former is None else assign_raw(text, key, former)
    return text, replace(record, containers=left)


def _wanted_leaves(wanted: Mapping[str, Any]) -> list[tuple[Path, Any]]:
    leaves: list[tuple[Path, Any]] = []
    for key, value in flatten(dict(wanted), ATOMS):
        if len(key) == 1 and key[0] in KEYED_LISTS and isinstance(value, list):
            leaves.extend(((key[0], _name(str(word))), word) for word in value)
        elif key:
            leaves.append((key, value))
    return leaves


def _value_at(text: str, key: Path) -> Any:
    """The value at ``key``; None when there is none (``null`` counts as none)."""
    if key[0] in KEYED_LISTS and len(key) == 2:
        return next((word for word in _words(text, key[0]) if _name(str(word)) == key[1]), None)
    found = raw(text, key)
    return None if found is None else json.loads(found)


def _former_text(text: str, key: Path) -> str | None:
    if key[0] in KEYED_LISTS and len(key) == 2:
        word = _value_at(text, key)
        return None if word is None else json.dumps(word)
    return raw(text, key)


def _blocker(text: str, key: Path) -> tuple[Path, Any] | None:
    """Something above ``key`` that is no object (or no list), so that ``key`` cannot be set."""
    wanted_type = list if key[0] in KEYED_LISTS else dict
    for depth in range(1, len(key)):
        above = raw(text, key[:depth])
        value = None if above is None else json.loads(above)
        if value is not None and not isinstance(value, wanted_type):
            return key[:depth], value
    return None


def _words(text: str, key: str) -> list[Any]:
    found = raw(text, (key,))
    value = None if found is None else json.loads(found)
    return value if isinstance(value, list) else []


def _with_word(words: Sequence[Any], name: str, word: Any) -> list[Any]:
    """The list with the word of that name replaced, appended, or (``word`` None) left out."""
    result = []
    placed = word is None
    for other in words:
        if _name(str(other)) != name:
            result.append(other)
        elif not placed:
            result.append(word)
            placed = True
    return result if placed else [*result, word]


def _name(word: str) -> str:
    return word.partition("=")[0] + "="


def _is_neutral(key: Path, seen: Any) -> bool:
    return len(key) == 1 and key[0] in NEUTRAL and _same(seen, NEUTRAL[key[0]])


def _same(one: Any, other: Any) -> bool:
    """Equal as JSON: 1 is not true, and the order of keys does not matter."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def show_key(key: Path) -> str:
    """``features.cdi``, ``exec-opts.native.cgroupdriver``."""
    return ".".join(key).rstrip("=")


def _show(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _told(key: Path, seen: Any, value: Any) -> str:
    if seen is None:
        return f"set {show_key(key)} = {_show(value)}"
    return f"changed {show_key(key)} from {_show(seen)} to {_show(value)}"
