# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One JSON document in one file: whole and as it was written, or an error that says so.

The file is JSON to everybody, in lines that let us read it twice as fast:

    {"checksum":"<SHA-256 of the lines below>",
    "schema":1,"kind":"checkpoint", … everything small …,
    "state":{…}}

A list of checkpoints needs the second line only.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
from collections.abc import Mapping
from typing import Any

from ...atomic import write_atomic
from ..model import RollbackError

_FIRST_LINE = re.compile(rb'\{"checksum":"([0-9a-f]{64})",')
_LARGE = "state"
_LARGE_LINE = f'"{_LARGE}":'.encode("ascii")


def encode(document: Mapping[str, Any]) -> bytes:
    """The file's content for a JSON object; its ``state``, where it has one, comes last."""
    small = {key: value for key, value in document.items() if key != _LARGE}
    text = json.dumps(small, separators=(",", ":"))[1:-1]
    if _LARGE in document:
        state = json.dumps(document[_LARGE], separators=(",", ":"))
        text += f',\n"{_LARGE}":{state}'
    below = (text + "}\n").encode("ascii")
    first = f'{{"checksum":"{hashlib.sha256(below).hexdigest()}",\n'
    return first.encode("ascii") + below


def decode(content: bytes, light: bool = False) -> dict[str, Any]:
    """What :func:`encode` was given; without its ``state`` if ``light``.

    Raises RollbackError, which names no path, for anything else.
    """
    first, newline, below = content.partition(b"\n")
    form = _FIRST_LINE.fullmatch(first)
    if form is None or not newline:
        raise RollbackError("this is not what steadygpu writes (no checksum in the first line)")
    if hashlib.sha256(below).hexdigest() != form.group(1).decode("ascii"):
        raise RollbackError("it is not as it was written (its checksum differs)")
    small, _newline, rest = below.partition(b"\n")
    if light and rest.startswith(_LARGE_LINE):
        below = small[: -len(b",")] + b"}"
    try:
        document = json.loads(b"{" + below)
    except ValueError as error:
        raise RollbackError(f"this is not what steadygpu writes ({error})") from error
    return dict(document)


def load(path: str, light: bool = False) -> dict[str, Any] | None:
    """The document in a file, None when there is no file. Raises RollbackError."""
    try:
        with open(path, "rb") as handle:
            content = handle.read()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise storage_error(error, path) from error
    try:
        return decode(content, light)
    except RollbackError as error:
        raise RollbackError(
            f"{path} is damaged: {error}; look at it, and delete it to go on without it"
        ) from error


def save(path: str, document: Mapping[str, Any]) -> None:
    """Replace a file by the document, durably. Raises RollbackError and leaves the old file."""
    content = encode(document)
    try:
        write_atomic(path, content.decode("ascii"), mode=0o600)
    except OSError as error:
        raise storage_error(error, os.path.dirname(path), len(content)) from error


def storage_error(error: OSError, path: str, needed: int = 0) -> RollbackError:
    """What a person needs to know when the store cannot be read or written.

    ``needed`` is how many bytes were wanted, as far as that is known.
    """
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        what = "quota" if error.errno == errno.EDQUOT else "space"
        return RollbackError(
            f"no {what} left for the checkpoint in {path}: it needs at least {_size(needed)}, and "
            f"{_free(path)}; nothing was changed. Free some space there, for example with: "
            "steadygpu checkpoint prune --keep 5"
        )
    if error.errno == errno.EROFS:
        return RollbackError(
            f"{path} is on a file system that is mounted read-only, so no checkpoint can be "
            "kept; nothing was changed. Look in the kernel's log why, then: mount -o remount,rw"
        )
    if error.errno in (errno.EACCES, errno.EPERM):
        return RollbackError(
            f"{path} can only be used by root, and this is user {os.geteuid()} "
            f"({error.strerror}); run it as root (become: true)"
        )
    name = f" ({error.filename})" if error.filename and error.filename != path else ""
    return RollbackError(f"{path}{name}: {error.strerror or error}; nothing was changed")


def _free(path: str) -> str:
    # What is missing has the space of the directory that it would be in.
    while not os.path.exists(path) and path != os.path.dirname(path):
        path = os.path.dirname(path)
    try:
        there = os.statvfs(path)
    except OSError:
        return "how much is free cannot be told"
    if there.f_files and not there.f_ffree:
        return "no inode is free"
    return f"{_size(there.f_bfree * there.f_frsize)} are free"


def _size(size: int) -> str:
    return f"{size / 1024**2:.1f} MiB" if size >= 1024**2 else f"{size / 1024:.1f} KiB"
