# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Our keys in a configuration file, beside everybody else's. Pure: text in, text out.

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
from typing import Any, Callable, Protocol

from ..trees.leaves import Path, flatten
from .owned_record import Owned, Record

# The former text of a table that only longer headers named, before we gave it one of its own.
_IMPLIED = ""

Show = Callable[[Path, Any], str]


class Editor(Protocol):
    """How the text of one format is edited; :mod:`.json_text` and :mod:`..trees.toml_edit`."""

    EMPTY: str

    def parse(self, text: str) -> dict[str, Any]:
        """What the whole text says. Raises ValueError."""

    def value_of(self, literal: str) -> Any:
        """What the text of one value says."""

    def raw(self, text: str, path: Path) -> str | None:
        """The text of the value at a path, None where there is none."""

    def assign(self, text: str, path: Path, value: Any) -> str:
        """The text with a value at a path."""

    def assign_raw(self, text: str, path: Path, literal: str | None) -> str:
        """The text with the text of a value at a path."""

    def delete(self, text: str, path: Path) -> str:
        """The text without what is at a path."""

    def is_blank(self, text: str) -> bool:
        """Does it hold nothing that anybody would miss?"""

    def is_opened(self, text: str, path: Path) -> bool:
        """Has a table that is there a place of its own?"""

    def close(self, text: str, path: Path) -> str:
        """The text without the place of a table's own, if that is empty."""


@dataclass(frozen=True)
class Layout:
    """How the keys of one kind of file are owned.

    ``atoms`` are objects that are one thing: half of somebody's runtime under our path would be
    neither theirs nor ours. ``keyed_lists`` are lists of ``name=value`` words where each name has
    its own owner. ``neutral`` are values that stand for an absent key. ``nobodys`` says of a value
    whether it is one that comes with the file: to set another one overrules nobody.
    """

    editor: Editor
    atoms: tuple[Path, ...] = ()
    keyed_lists: tuple[str, ...] = ()
    neutral: Mapping[str, Any] = field(default_factory=dict)
    nobodys: Callable[[Path, Any], bool] = lambda _key, _value: False

    def document(self, text: str | None) -> dict[str, Any]:
        """The configuration in a file's text; {} for no file or a blank one. Raises ValueError."""
        return self.editor.parse(text) if text is not None and text.strip() else {}


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


def show_key(key: Path) -> str:
    """``features.cdi``, ``exec-opts.native.cgroupdriver``."""
    return ".".join(key).rstrip("=")


def show_value(_key: Path, value: Any) -> str:
    """A value for a person. Who has secrets gives :func:`put` a function that knows the keys."""
    return json.dumps(value, ensure_ascii=False)


def put(
    layout: Layout,
    text: str | None,
    record: Record,
    wanted: Mapping[str, Any],
    takeover: bool = False,
    show: Show = show_value,
) -> Merge:
    """Set the leaves of ``wanted``; keep everything else byte by byte.

    Raises ForeignOwnerError, naming every conflict at once, or the editor's error for a text that
    it cannot read. A value that is right already stays whose it is.
    """
    editor = layout.editor
    leaves = _wanted_leaves(layout, wanted)
    if not leaves:
        return Merge(text, record, ())
    current, record = _begin(editor, text, record)
    editor.parse(current)
    conflicts: list[tuple[str, str, str]] = []
    actions: list[str] = []
    for key, value in leaves:
        seen = _value_at(layout, current, key)
        if seen is not None and _same(seen, value):
            continue
        owner = record.owner_of(key)
        blocker = _blocker(layout, current, key)
        foreign = blocker is not None or (seen is not None and not layout.nobodys(key, seen))
        if owner is None and foreign and not takeover:
            place, found = (key, seen) if blocker is None else blocker
            conflicts.append((show_key(place), show(place, found), show(key, value)))
            continue
        former = owner.former if owner else _former_text(layout, current, key)
        current, record = _set(layout, current, record, key, value)
        record = record.claim(key, value, former)
        if seen is None:
            actions.append(f"set {show_key(key)} = {show(key, value)}")
        else:
            actions.append(f"changed {show_key(key)} from {show(key, seen)} to {show(key, value)}")
    if conflicts:
        raise ForeignOwnerError(conflicts)
    return Merge(current if actions else text, record, tuple(actions))


def take_back(
    layout: Layout,
    text: str | None,
    record: Record,
    wanted: Mapping[str, Any] | None = None,
    show: Show = show_value,
) -> Merge:
    """Undo :func:`put` for the leaves of ``wanted``, or for all that is ours (None).

    A key that somebody changed after us is left to them and forgotten. Raises the editor's error
    for a text that it cannot read.
    """
    editor = layout.editor
    chosen = None if wanted is None else {key for key, _value in _wanted_leaves(layout, wanted)}
    current = editor.EMPTY if text is None or not text.strip() else text
    editor.parse(current)
    kept = [owned for owned in record.owned if chosen is not None and owned.key not in chosen]
    actions: list[str] = []
    for owned in reversed(record.owned):
        if owned in kept:
            continue
        seen = _value_at(layout, current, owned.key)
        if seen is None:
            continue
        name = show_key(owned.key)
        if not _same(seen, owned.value) and not _is_neutral(layout, owned.key, seen):
            said = show(owned.key, seen)
            actions.append(f"left {name} = {said}: somebody changed it after us")
            continue
        current = _restore(layout, current, owned)
        if owned.former is None:
            actions.append(f"{name} removed")
        else:
            former = show(owned.key, editor.value_of(owned.former))
            actions.append(f"{name} restored to {former}")
    record = replace(record, owned=tuple(kept))
    current, record = _restore_containers(editor, current, record)
    return _finish(editor, text, current, record, actions)


def _begin(editor: Editor, text: str | None, record: Record) -> tuple[str, Record]:
    """A text to work on; remembers what the file was when nothing in it is ours yet."""
    blank = text is None or not text.strip()
    if not record.owned:
        record = replace(
            record,
            file_existed=text is not None,
            blank=text if blank and text is not None else None,
            containers={},
        )
    return (editor.EMPTY if text is None or blank else text), record


def _finish(
    editor: Editor, before: str | None, current: str, record: Record, actions: Sequence[str]
) -> Merge:
    """Bring back "no file" or a blank one once nothing of ours is left in it."""
    result: str | None = current
    if not record.owned and editor.is_blank(current):
        if record.blank is not None:
            result = record.blank
        elif not record.file_existed:
            result = None
    if not record.owned:
        record = Record(pending=record.pending)
    untouched = (before is None or not before.strip()) and result == editor.EMPTY
    return Merge(before if untouched else result, record, tuple(actions))


def _set(layout: Layout, text: str, record: Record, key: Path, value: Any) -> tuple[str, Record]:
    """Put one value in place, making the objects above it and noting what they were."""
    editor = layout.editor
    if _is_word(layout, key):
        words = _words(editor, text, key[0])
        record = record.contain(key[:1], editor.raw(text, key[:1]))
        record = _note_empty_root(editor, text, record)
        return editor.assign(text, key[:1], _with_word(words, key[1], value)), record
    record = _note_empty_root(editor, text, record)
    for depth in range(1, len(key)):
        above = editor.raw(text, key[:depth])
        value_above = None if above is None else editor.value_of(above)
        if not isinstance(value_above, dict):
            text = editor.assign(text, key[:depth], {})
        if not value_above or not isinstance(value_above, dict):
            record = record.contain(key[:depth], above)
    if len(key) > 1 and not editor.is_opened(text, key[:-1]):
        record = record.contain(key[:-1], _IMPLIED)
    return editor.assign(text, key, value), record


def _note_empty_root(editor: Editor, text: str, record: Record) -> Record:
    return record if editor.parse(text) else record.contain((), editor.raw(text, ()))


def _restore(layout: Layout, text: str, owned: Owned) -> str:
    editor = layout.editor
    if _is_word(layout, owned.key):
        former = None if owned.former is None else editor.value_of(owned.former)
        words = _with_word(_words(editor, text, owned.key[0]), owned.key[1], former)
        return editor.assign(text, owned.key[:1], words)
    if owned.former is None:
        return editor.delete(text, owned.key)
    return editor.assign_raw(text, owned.key, owned.former)


def _restore_containers(editor: Editor, text: str, record: Record) -> tuple[str, Record]:
    """Objects and lists that we made or filled become again what they were, innermost first."""
    left = dict(record.containers)
    for key in sorted(record.containers, key=len, reverse=True):
        if any(owned.key[: len(key)] == key for owned in record.owned):
            continue
        former = left.pop(key)
        present = editor.raw(text, key)
        if former == _IMPLIED:
            text = editor.close(text, key)
        elif present is not None:
            value = editor.value_of(present)
            as_before = former is not None and _same(value, editor.value_of(former))
            if former is None and value in ({}, []):
                text = editor.delete(text, key)
            elif former is not None and (as_before or value in ({}, [])):
                text = editor.assign_raw(text, key, former)
    return text, replace(record, containers=left)


def _wanted_leaves(layout: Layout, wanted: Mapping[str, Any]) -> list[tuple[Path, Any]]:
    leaves: list[tuple[Path, Any]] = []
    for key, value in flatten(dict(wanted), layout.atoms):
        if len(key) == 1 and key[0] in layout.keyed_lists and isinstance(value, list):
            leaves.extend(((key[0], _name(str(word))), word) for word in value)
        elif key:
            leaves.append((key, value))
    return leaves


def _is_word(layout: Layout, key: Path) -> bool:
    return key[0] in layout.keyed_lists and len(key) == 2


def _value_at(layout: Layout, text: str, key: Path) -> Any:
    """The value at ``key``; None when there is none (``null`` counts as none)."""
    if _is_word(layout, key):
        words = _words(layout.editor, text, key[0])
        return next((word for word in words if _name(str(word)) == key[1]), None)
    found = layout.editor.raw(text, key)
    return None if found is None else layout.editor.value_of(found)


def _former_text(layout: Layout, text: str, key: Path) -> str | None:
    if _is_word(layout, key):
        word = _value_at(layout, text, key)
        return None if word is None else json.dumps(word)
    return layout.editor.raw(text, key)


def _blocker(layout: Layout, text: str, key: Path) -> tuple[Path, Any] | None:
    """Something above ``key`` that is no object (or no list), so that ``key`` cannot be set."""
    wanted_type = list if key[0] in layout.keyed_lists else dict
    for depth in range(1, len(key)):
        above = layout.editor.raw(text, key[:depth])
        value = None if above is None else layout.editor.value_of(above)
        if value is not None and not isinstance(value, wanted_type):
            return key[:depth], value
    return None


def _words(editor: Editor, text: str, key: str) -> list[Any]:
    found = editor.raw(text, (key,))
    value = None if found is None else editor.value_of(found)
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


def _is_neutral(layout: Layout, key: Path, seen: Any) -> bool:
    neutral = layout.neutral
    return len(key) == 1 and key[0] in neutral and _same(seen, neutral[key[0]])


def _same(one: Any, other: Any) -> bool:
    """Equal as JSON: 1 is not true, and the order of keys does not matter."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
