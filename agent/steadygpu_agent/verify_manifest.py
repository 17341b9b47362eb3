# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Manifests of SHA-256 sums: read, written, and trusted only with a signature.

Two forms are read: our JSON (``{"schema": 1, "files": {"NAME": {"sha256": "…"}}}``, also with the
sum itself as the value) and what ``sha256sum`` prints, with or without ``--tag``. Names are
relative to the manifest's own directory.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import stat
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import BinaryIO

from ansible_collections.steadygpu.host.plugins.module_utils.process import (
    CommandMissingError,
    run,
)

# The namespace of the signature: one made for other purposes does not count here.
NAMESPACE = "steadygpu.manifest"
SCHEMA = 1

_LONGEST = 2 * 1024 * 1024
_CHUNK = 1 << 20
_SUM = re.compile(r"[0-9a-fA-F]{64}")
_LINE = re.compile(r"(\\?)([0-9a-fA-F]{64}) [ *](.+)")
_TAGGED = re.compile(r"SHA256 \((.+)\) = ([0-9a-fA-F]{64})")


class ManifestError(Exception):
    """The manifest is missing or cannot be used; says why and what is wanted."""


class FileError(Exception):
    """A file cannot be summed up: it is not there, or no regular file."""


@dataclass(frozen=True)
class Manifest:
    """``sums`` maps names to lower-case SHA-256; ``data`` are the bytes that were signed."""

    path: str
    sums: Mapping[str, str]
    data: bytes

    def locate(self, path: str) -> str | None:
        """The name of a file in this manifest: by its place, or by its bare name if that is
        there once. None when it is not listed.
        """
        directory = os.path.dirname(os.path.realpath(self.path))
        # Its own name first: a link must not stand in for a file that has a sum of its own.
        own = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
        for place in (own, os.path.realpath(path)):
            relative = os.path.relpath(place, directory)
            if relative in self.sums:
                return relative
        same = [name for name in self.sums if os.path.basename(name) == os.path.basename(path)]
        return same[0] if len(same) == 1 else None

    def place(self, name: str) -> str:
        """Where the file of a name lies."""
        return os.path.join(os.path.dirname(self.path), name)


def read(path: str) -> Manifest:
    """Read a manifest. Raises ManifestError."""
    try:
        with _opened(path) as handle:
            if not stat.S_ISREG(os.fstat(handle.fileno()).st_mode):
                raise ManifestError(f"{path} is no regular file")
            data = handle.read(_LONGEST + 1) or b""
    except OSError as error:
        raise ManifestError(f"{path}: {error.strerror}") from error
    if len(data) > _LONGEST:
        raise ManifestError(f"{path} is longer than {_LONGEST} bytes")
    return Manifest(path, parse(data, path), data)


def parse(data: bytes, path: str = "manifest") -> dict[str, str]:
    """The sums of a manifest by name. Raises ManifestError. Pure."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ManifestError(f"{path} is not text in UTF-8") from error
    sums = _json(text, path) if text.lstrip()[:1] in ("{", "[") else _lines(text, path)
    if not sums:
        raise ManifestError(f"{path} names no file")
    for name in sums:
        if not _is_below(name):
            raise ManifestError(
                f"{path} names {name!r}: wanted are names below the manifest's own directory, "
                "in their shortest form"
            )
    return sums


def _is_below(name: str) -> bool:
    """Is it a name that only one file can have, and that leads nowhere else?"""
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:  # Half of a pair of JSON's \\uXXXX.
        return False
    odd = name.startswith("/") or "\0" in name or name in ("", ".", "..")
    return not odd and os.path.normpath(name) == name and not name.startswith("../")


def _json(text: str, path: str) -> dict[str, str]:
    try:
        document = json.loads(text, object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        raise ManifestError(f"{path} is not JSON: {error}") from error
    if not isinstance(document, dict) or not isinstance(document.get("files"), dict):
        raise ManifestError(f'{path} has no "files": wanted is {{"files": {{NAME: SUM}}}}')
    if document.get("schema", SCHEMA) != SCHEMA:
        raise ManifestError(f"{path} has schema {document['schema']!r}; this reads {SCHEMA}")
    sums = {}
    for name, value in document["files"].items():
        found = value.get("sha256") if isinstance(value, dict) else value
        if not isinstance(found, str) or not _SUM.fullmatch(found):
            raise ManifestError(f"{path}: {name!r} has no SHA-256 of 64 hexadecimal digits")
        name = name[2:] if name.startswith("./") else name
        if name in sums:
            raise ManifestError(f"{path}: {name!r} is named twice")
        sums[name] = found.lower()
    return sums


def _once(pairs: Sequence[tuple[str, object]]) -> dict[str, object]:
    """JSON takes the last of two equal keys in silence; who signs such a file may mean another."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key is there twice")
    return found


def _lines(text: str, path: str) -> dict[str, str]:
    sums: dict[str, str] = {}
    for number, line in enumerate(text.replace("\r\n", "\n").split("\n"), 1):
        if not line.strip() or line.startswith("#"):
            continue
        tagged, plain = _TAGGED.fullmatch(line), _LINE.fullmatch(line)
        if tagged:
            name, found = tagged.group(1), tagged.group(2)
        elif plain and not plain.group(1):
            name, found = plain.group(3), plain.group(2)
        elif _SUM.fullmatch(line.strip()) and path.endswith(".sha256"):
            # A sum alone, for the file that the manifest is named after.
            name, found = os.path.basename(path)[: -len(".sha256")], line.strip()
        else:
            raise ManifestError(
                f"{path}:{number}: no sum and name; wanted are lines as sha256sum writes them"
            )
        name = name[2:] if name.startswith("./") else name
        if name in sums:
            raise ManifestError(f"{path}:{number}: {name!r} is named twice")
        sums[name] = found.lower()
    return sums


def text_of(paths: Sequence[str], directory: str, moment: str) -> str:
    """A manifest of these files as JSON; ``directory`` is where it will lie.

    Raises FileError, also for a file that is not below ``directory``.
    """
    files = {}
    for path in paths:
        name = os.path.relpath(os.path.realpath(path), os.path.realpath(directory))
        if name.startswith("../"):
            raise FileError(f"{path} is not below {directory}, where the manifest will lie")
        if not _is_below(name):
            raise FileError(f"{name!r} is no name in UTF-8, which a manifest needs")
        found, size = digest(path)
        files[name] = {"sha256": found, "size": size}
    document = {"schema": SCHEMA, "made": moment, "files": dict(sorted(files.items()))}
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def digest(path: str) -> tuple[str, int]:
    """SHA-256 and size of a regular file, read once. Raises FileError."""
    try:
        with _opened(path) as handle:
            if not stat.S_ISREG(os.fstat(handle.fileno()).st_mode):
                raise FileError(f"{path} is no regular file")
            total, sums = 0, hashlib.sha256()
            while True:
                chunk = handle.read(_CHUNK)
                if not chunk:
                    return sums.hexdigest(), total
                sums.update(chunk)
                total += len(chunk)
    except OSError as error:
        raise FileError(f"{path}: {error.strerror}") from error


def _opened(path: str) -> BinaryIO:
    """A file open to be read. A pipe or a device would be waited for without end."""
    return os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb")


def bad_signature(manifest: Manifest, signature: str, signers: str, identity: str) -> str | None:
    """Why the signature does not vouch for the manifest; None when it does.

    ``signers`` is an allowed-signers file of ssh-keygen(1). Raises ManifestError when it cannot be
    verified at all: a file is missing, or ssh-keygen is.
    """
    for path in (signature, signers):
        if not os.path.isfile(path):
            raise ManifestError(f"{path}: no such file")
    # What is verified are the bytes that were read, whatever happens to the file meanwhile.
    with tempfile.TemporaryDirectory(prefix="steadygpu-verify-") as directory:
        copy = os.path.join(directory, "manifest")
        with open(copy, "wb") as handle:
            handle.write(manifest.data)
        command = 'exec ssh-keygen -Y verify -f "$1" -I "$2" -n "$3" -s "$4" < "$5"'
        argv = ["/bin/sh", "-c", command, "sh"]
        argv += [os.path.abspath(signers), identity, NAMESPACE, os.path.abspath(signature), copy]
        try:
            done = run(argv, 30.0)
        except CommandMissingError as error:
            raise ManifestError(str(error)) from error
    if done.rc == 127:
        raise ManifestError("ssh-keygen is not on this host; it is part of OpenSSH (8.0 or newer)")
    return None if done.ok else done.said.splitlines()[-1]


@dataclass(frozen=True)
class Permissions:
    """Who may write where a file lies.

    ``writable``: this user may replace the file. ``others``: places that users other than the
    owner and root may change, with the reason; what is verified there can be another file a moment
    later.
    """

    directory: str
    writable: bool
    others: tuple[str, ...]


def permissions(path: str) -> Permissions:
    """Look at a file and its directory; a file that is not there is looked at as its directory."""
    directory = os.path.dirname(os.path.realpath(path)) or "/"
    writable = os.access(directory, os.W_OK | os.X_OK)
    others = []
    # Who may write a directory above may put another one in its place.
    above, places = directory, [os.path.realpath(path), directory]
    while above != "/":
        above = os.path.dirname(above)
        places.append(above)
    for place in places:
        with contextlib.suppress(OSError):
            status = os.stat(place)
            sticky = stat.S_ISDIR(status.st_mode) and status.st_mode & stat.S_ISVTX
            if status.st_mode & stat.S_IWOTH and not sticky:
                others.append(f"{place} may be written by everybody")
            elif status.st_mode & stat.S_IWGRP and status.st_gid != 0 and not sticky:
                others.append(f"{place} may be written by group {status.st_gid}")
    return Permissions(directory, writable, tuple(others))
