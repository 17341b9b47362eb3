# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A ledger of what this collection itself wrote, for the day it is to be undone.

Several programs write ``daemon.json`` or a slice. A restore puts such a file back only where it
finds in the ledger that what is there now is ours. So it is vouched for *before* it is written: a
kill in between leaves a line too many, which does no harm, never a file that nobody answers for.

Every line is a JSON object: ``path``, either ``digest`` (what it holds) or ``absent``,
and ``after``, the sequence of the newest checkpoint at that moment. Lines are only added.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO

from .atomic import fsync_directory, read_text, write_atomic
from .atomic import remove as remove_file

# Below the root of the host, beside the checkpoints.
LEDGER = "/var/lib/steadygpu/rollback/vouched.jsonl"
ABSENT = "absent"


def vouch(path: str, text: str | None, root: str = "/") -> None:
    """Say that ``path`` is about to hold ``text`` in UTF-8, or to be removed (None).

    ``path`` is a path below ``root``, or one as the host sees it, which is what the ledger holds.
    Durable when it returns. Raises OSError: who cannot vouch must not write, because what is
    changed could not be undone.
    """
    token = None if text is None else hashlib.sha256(text.encode("utf-8")).hexdigest()
    vouch_digests({path: token}, root)


def vouch_digest(path: str, token: str | None, root: str = "/") -> None:
    """:func:`vouch` for what is no text: ``token`` is a SHA-256, or ``link:<target>``."""
    vouch_digests({path: token}, root)


def vouch_digests(tokens: Mapping[str, str | None], root: str = "/") -> None:
    """:func:`vouch_digest` for many paths, which costs no more than for one."""
    ledger_path = _ledger(root)
    directory = os.path.dirname(ledger_path)
    after = _sequence(directory)
    if not os.path.isdir(directory):
        make_directory(directory)
    with _locked(ledger_path) as ledger:
        newest = {one["path"]: one for one in _lines(ledger)}
        said = []
        for path, token in tokens.items():
            for name in _names(path, root):
                what = {"absent": True} if token is None else {"digest": token}
                one = {"path": name, **what, "after": after}
                if newest.get(name) != one:
                    said.append(one)
        _append(ledger, "".join(map(_line, said)).encode("ascii"))


def since(sequence: int, root: str = "/") -> dict[str, list[str]]:
    """What was vouched for after the checkpoint ``sequence`` was taken, or while it was.

    By path as the host sees it: the digests, and ``absent`` for a removal, the newest last.
    Raises OSError when the ledger cannot be read.
    """
    found: dict[str, list[str]] = {}
    try:
        with open(_ledger(root), "rb") as ledger:
            lines = _lines(ledger)
    except (FileNotFoundError, NotADirectoryError):
        return {}
    for one in lines:
        if one["after"] >= sequence:
            found.setdefault(one["path"], []).append(one.get("digest", ABSENT))
    return found


def compact(keep_from_sequence: int, directory: str | None = None) -> None:
    """Forget what only checkpoints before ``keep_from_sequence`` could ask for.

    ``directory`` is where the ledger lies. Raises OSError and leaves the old ledger.
    """
    path = os.path.join(directory or os.path.dirname(LEDGER), os.path.basename(LEDGER))
    if not os.path.exists(path):
        return
    with _locked(path) as ledger:
        lines = _lines(ledger)
        staying = [one for one in lines if one["after"] >= keep_from_sequence]
        if len(staying) < len(lines):
            write_atomic(path, "".join(_line(one) for one in staying), mode=0o600)


def write(path: str, text: str, mode: int | None = None, root: str = "/") -> None:
    """:func:`vouch`, then :func:`.atomic.write_atomic`. Raises OSError and leaves the old file."""
    vouch(path, text, root)
    write_atomic(path, text, mode)


def remove(path: str, root: str = "/") -> bool:
    """:func:`vouch`, then :func:`.atomic.remove`. True when there was a file. Raises OSError."""
    if not os.path.lexists(path):
        return False
    vouch(path, None, root)
    return remove_file(path)


def _ledger(root: str) -> str:
    return os.path.join(root, LEDGER.lstrip("/"))


def _names(path: str, root: str) -> list[str]:
    """The path as the host sees it; twice where a directory on the way is a symlink.

    A checkpoint knows a file by one of the two.
    """
    path, root = os.path.abspath(path), os.path.abspath(root)
    prefix = root.rstrip("/")
    if path.startswith(prefix + "/"):
        path = path[len(prefix) :]
    # Every host has this link, and a writer may come before the first mount of /run.
    named = path[len("/var") :] if path.startswith("/var/run/") else path
    directory, real_root = os.path.realpath(prefix + os.path.dirname(named)), _real(root)
    if not directory.startswith(real_root + "/") and directory != (real_root or "/"):
        # An absolute link, which only makes sense to the host itself.
        return [named]
    real = os.path.join(directory[len(real_root) :] or "/", os.path.basename(named))
    return [named] if real == named else [named, real]


def _real(root: str) -> str:
    return os.path.realpath(root).rstrip("/")


def _sequence(directory: str) -> int:
    path = os.path.join(directory, "sequence")
    text = read_text(path)
    if text is None:
        return 0
    if not text.strip().isdecimal():
        raise OSError(
            errno.EINVAL,
            f"it holds {text[:40]!r}, not a number; delete it, and it is made again from the "
            "checkpoints",
            path,
        )
    return int(text)


def make_directory(directory: str) -> None:
    """Make the directory of ledger and checkpoints, durably. Raises OSError."""
    os.makedirs(directory, mode=0o700, exist_ok=True)
    # It may be the first of ours on this host: then the one that it lies in is new as well.
    above = os.path.dirname(os.path.abspath(directory))
    fsync_directory(above)
    fsync_directory(os.path.dirname(above))


@contextlib.contextmanager
def _locked(path: str) -> Iterator[BinaryIO]:
    """The ledger, open and ours alone; made if missing."""
    while True:
        new = not os.path.exists(path)
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        with open(os.open(path, flags, 0o600), "r+b", buffering=0) as ledger:
            # No deadline: it is held for the time of one line.
            fcntl.flock(ledger.fileno(), fcntl.LOCK_EX)
            if _is_at(ledger.fileno(), path):
                if new:
                    fsync_directory(os.path.dirname(path))
                yield ledger
                return
        # compact() put another file in its place while we waited.


def _is_at(fd: int, path: str) -> bool:
    mine = os.fstat(fd)
    try:
        there = os.stat(path)
    except FileNotFoundError:
        return False
    return (mine.st_dev, mine.st_ino) == (there.st_dev, there.st_ino)


def _append(ledger: BinaryIO, lines: bytes) -> None:
    """Add whole lines, durably; also without any, for who wrote them may have been killed."""
    fd = ledger.fileno()
    size = os.fstat(fd).st_size
    if lines and size and os.pread(fd, 1, size - 1) != b"\n":
        # Somebody was killed in the middle of a line.
        lines = b"\n" + lines
    try:
        view = memoryview(lines)
        while view:
            view = view[os.write(fd, view) :]
        os.fsync(fd)
    except OSError:
        with contextlib.suppress(OSError):
            os.ftruncate(fd, size)
        raise


def _line(said: dict[str, Any]) -> str:
    return json.dumps(said, separators=(",", ":")) + "\n"


def _lines(ledger: BinaryIO) -> list[dict[str, Any]]:
    """All lines that are whole. The last one may be torn, and one that was torn is no promise."""
    found = []
    for line in ledger.read().splitlines():
        with contextlib.suppress(ValueError, AttributeError):
            said = json.loads(line)
            known = isinstance(said.get("path"), str) and isinstance(said.get("after"), int)
            if known and (said.get("absent") is True or isinstance(said.get("digest"), str)):
                found.append(said)
    return found
