# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What lies below a directory, seen without the code under test."""

from __future__ import annotations

import hashlib
import os
import stat
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Seen:
    """One path: ``kind`` is ``file``, ``link``, ``directory`` or ``other``.

    ``content`` is the SHA-256 of a file or where a link leads; ``mode`` has the permission bits.
    """

    kind: str
    mode: int
    uid: int
    gid: int
    xattrs: tuple[tuple[str, bytes], ...] = ()
    content: str = ""


Tree = dict[str, Seen]


def look(root: Path, leave_out: str = "") -> Tree:
    """Every path below ``root``, by its name as seen from there; ``leave_out`` is not entered."""
    tree: Tree = {}
    for directory, names, files in os.walk(root):
        here = "/" + os.path.relpath(directory, root)
        here = "" if here == "/." else here
        names[:] = [name for name in names if f"{here}/{name}" != leave_out]
        for name in names + files:
            tree[f"{here}/{name}"] = seen(Path(directory, name))
    return tree


def seen(path: Path) -> Seen:
    """One path. Raises FileNotFoundError."""
    found = path.lstat()
    mode = stat.S_IMODE(found.st_mode)
    if stat.S_ISLNK(found.st_mode):
        return Seen("link", 0, found.st_uid, found.st_gid, (), os.readlink(path))
    if stat.S_ISDIR(found.st_mode):
        return Seen("directory", mode, found.st_uid, found.st_gid, _xattrs(path))
    if stat.S_ISREG(found.st_mode):
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        return Seen("file", mode, found.st_uid, found.st_gid, _xattrs(path), content)
    return Seen("other", mode, found.st_uid, found.st_gid)


def _xattrs(path: Path) -> tuple[tuple[str, bytes], ...]:
    try:
        names = sorted(os.listxattr(path, follow_symlinks=False))
    except OSError:
        return ()
    return tuple((name, os.getxattr(path, name, follow_symlinks=False)) for name in names)
