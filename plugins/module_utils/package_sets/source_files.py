# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A package source of ours for apt: its key, its entry, and entries of others in its way."""

from __future__ import annotations

import glob
import hashlib
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from .. import vouched
from ..atomic import read_text
from ..process import CommandMissingError, run
from . import sources
from .model import RefusedError

_HEAD = "Written by steadygpu.host; changes by hand are lost."
_SOURCES = "/etc/apt/sources.list.d"
_OTHERS = ("/etc/apt/sources.list", f"{_SOURCES}/*.list", f"{_SOURCES}/*.sources")


@dataclass(frozen=True)
class Source:
    """The options of the module ``apt_source``, which documents them."""

    name: str
    uris: Sequence[str] = ()
    suites: Sequence[str] = ()
    components: Sequence[str] = ()
    architectures: Sequence[str] = ()
    key: str = ""
    key_file: str = ""
    key_sha256: str = ""
    competing: Sequence[str] = ()
    replace: bool = False
    pins: Mapping[str, str] = field(default_factory=dict)
    present: bool = True

    @property
    def path(self) -> str:
        """Where apt reads it."""
        return f"{_SOURCES}/steadygpu-{self.name}.sources"

    @property
    def pin_path(self) -> str:
        """Where apt reads which versions it prefers."""
        return f"/etc/apt/preferences.d/steadygpu-{self.name}.pref"

    @property
    def pin_text(self) -> str:
        """The preferences (apt_preferences(5)); the priority is one that also goes down."""
        stanzas = (
            f"Package: {' '.join(sorted(n for n in self.pins if self.pins[n] == version))}\n"
            f"Pin: version {version}\nPin-Priority: 1001\n"
            for version in sorted(set(self.pins.values()))
        )
        return f"# {_HEAD}\n" + "\n".join(stanzas)

    @property
    def key_path(self) -> str:
        """The key that its packages are signed with."""
        return self.key_file or f"/etc/apt/keyrings/steadygpu-{self.name}.asc"

    @property
    def mark(self) -> str:
        """By this an entry is known that was switched off for it."""
        return f"steadygpu.host {self.name}:"

    @property
    def text(self) -> str:
        """The entry as apt reads it (sources.list(5), deb822 style)."""
        fields = [
            ("Types", "deb"),
            ("URIs", " ".join(self.uris)),
            ("Suites", " ".join(self.suites)),
            ("Components", " ".join(self.components)),
            ("Architectures", " ".join(self.architectures)),
            ("Signed-By", self.key_path),
        ]
        lines = [f"{field}: {value}\n" for field, value in fields if value]
        return f"# {_HEAD}\n" + "".join(lines)


@dataclass(frozen=True)
class Change:
    """One file: its text before and after, None for no file, and the change in words."""

    path: str
    before: str | None
    after: str | None
    told: str


def plan(source: Source, root: str = "/") -> list[Change]:
    """What is to be done, in this order. Raises RefusedError and OSError."""
    if not source.present:
        return _plan_absent(source, root)
    _check_key(source, root)
    changes = _in_its_way(source, root)
    if source.key:
        changes += _write(
            source.key_path, _normal(source.key), "write the key of the repository", root
        )
    changes += _write(source.path, source.text, "name the repository", root)
    if source.pins:
        return changes + _write(source.pin_path, source.pin_text, "pin the versions", root)
    return changes + _remove((source.pin_path,), root)


def carry_out(changes: Sequence[Change], root: str = "/") -> None:
    """Write the files. Raises OSError.

    Killed on the way, the host has no entry for a moment, never two that contradict each other.
    """
    for change in changes:
        path = _below(root, change.path)
        if change.after is None:
            vouched.remove(path, root)
        else:
            vouched.write(path, change.after, None if change.before else 0o644, root)


def has_digest(key: str, sha256: str) -> bool:
    """Is it the key with this SHA-256, or is any one good?"""
    return not sha256 or _digest(_normal(key)) == sha256.lower()


def _plan_absent(source: Source, root: str) -> list[Change]:
    keys = (f"/etc/apt/keyrings/steadygpu-{source.name}{end}" for end in (".asc", ".gpg"))
    changes = _remove((source.path, source.pin_path, *keys), root)
    for path, before in _others(source, root):
        after = sources.switched_on(before, source.mark)
        if after != before:
            changes.append(Change(path, before, after, f"switch on again what {path} named"))
    return changes


def _in_its_way(source: Source, root: str) -> list[Change]:
    repository = sources.Repository(source.uris, source.competing, _architecture())
    found = []
    changes = []
    for path, before in _others(source, root):
        named = sources.naming(before, repository.is_named_by)
        if not named:
            continue
        found.append(f"{path} names the repository already ({', '.join(named)})")
        try:
            after = sources.switched_off(before, repository.is_named_by, source.mark)
        except sources.MixedStanzaError as error:
            raise RefusedError(
                f"{path}, {error}. Give the address a stanza of its own, or take it out"
            ) from error
        changes.append(Change(path, before, after, f"switch off {', '.join(named)} in {path}"))
    if changes and not source.replace:
        raise RefusedError(
            f"{'; '.join(found)}, and was written by somebody else. Two entries for one address "
            "with two keys stop apt. Use what is there and leave this out, or set replace: true to "
            "switch those entries off; with state: absent they are on again"
        )
    return changes


def _check_key(source: Source, root: str) -> None:
    if source.key:
        content = _normal(source.key).encode("utf-8")
        if "BEGIN PGP PUBLIC KEY BLOCK" not in source.key:
            raise RefusedError(
                "key is no armored public key: -----BEGIN PGP PUBLIC KEY BLOCK----- is missing"
            )
    elif not source.key_file:
        raise RefusedError(
            "a repository needs its key: give key, or key_file with a file of the host"
        )
    elif not source.key_sha256:
        return
    else:
        try:
            with open(_below(root, source.key_file), "rb") as handle:
                content = handle.read()
        except FileNotFoundError:
            return
    digest = hashlib.sha256(content).hexdigest()
    if source.key_sha256 and digest != source.key_sha256.lower():
        raise RefusedError(
            f"the key has the SHA-256 {digest}, wanted {source.key_sha256}. If the vendor has "
            "changed it, check the new one and correct the checksum"
        )


def _others(source: Source, root: str) -> list[tuple[str, str]]:
    """All other source files with their text."""
    below = root.rstrip("/")
    found = []
    for pattern in _OTHERS:
        for path in sorted(glob.glob(glob.escape(below) + pattern)):
            named = path[len(below) :]
            text = read_text(path) if named != source.path else None
            if text is not None:
                found.append((named, text))
    return found


def _write(path: str, text: str, told: str, root: str) -> list[Change]:
    before = read_text(_below(root, path))
    return [] if before == text else [Change(path, before, text, f"{told} in {path}")]


def _remove(paths: Iterable[str], root: str) -> list[Change]:
    texts = [(path, read_text(_below(root, path))) for path in paths]
    return [Change(path, text, None, f"remove {path}") for path, text in texts if text is not None]


def _normal(key: str) -> str:
    return key.strip() + "\n"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def _architecture() -> str:
    try:
        return run(["dpkg", "--print-architecture"]).stdout.strip()
    except CommandMissingError:
        return ""


def _below(root: str, path: str) -> str:
    return os.path.join(root, path.lstrip("/"))
