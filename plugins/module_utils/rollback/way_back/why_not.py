# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Why a path could not be restored, and what to do about it."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
from collections.abc import Iterator

from ..model import ABSENT, Entry, RollbackError
from ..observation import files

# FS_IOC_GETFLAGS and the flags of linux/fs.h, the same on x86_64 and aarch64.
_GET_FLAGS = 0x80086601
_ATTRIBUTES = ((0x10, "immutable", "i"), (0x20, "append-only", "a"))


@contextlib.contextmanager
def told(path: str, root: str = "/", entry: Entry = ABSENT) -> Iterator[None]:
    """Raises the OSErrors of its block as RollbackError: ``path`` could not become ``entry``."""
    try:
        yield
    except OSError as error:
        reason = _reason(path, root, entry, error)
        raise RollbackError(f"{path} could not be restored: {reason}") from error


def _reason(path: str, root: str, entry: Entry, error: OSError) -> str:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        what = "no space is left" if error.errno == errno.ENOSPC else "the quota is used up"
        needed = f" ({entry.size} bytes are needed)" if entry.size else ""
        return f"{what} in the file system of {_parent(path)}{needed}; free some and restore again"
    if error.errno == errno.EROFS:
        return f"the file system of {_parent(path)} is read-only; remount it writable"
    if error.errno == errno.EPERM:
        for candidate in (path, _parent(path)):
            for word, letter in _attributes(candidate, root):
                return f"{candidate} is {word}; allow the change with chattr -{letter} {candidate}"
    if error.errno in (errno.EACCES, errno.EPERM):
        return f"{error.strerror}; run as root"
    if error.errno == errno.EINVAL:
        return (
            f"its owner {entry.uid}:{entry.gid} or one of its attributes "
            f"({', '.join(sorted(entry.xattrs)) or 'none'}) cannot be here ({error.strerror})"
        )
    if error.errno == errno.ENOTSUP:
        names = ", ".join(sorted(entry.xattrs)) or "these"
        return f"the file system of {_parent(path)} does not keep the attributes {names}"
    if error.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR, errno.EISDIR):
        return f"something else came to lie there ({error.strerror}); restore again"
    return error.strerror or str(error)


def _parent(path: str) -> str:
    return os.path.dirname(path) or "/"


def _attributes(path: str, root: str) -> Iterator[tuple[str, str]]:
    """What chattr has set on a file or directory, as far as its file system knows it."""
    parent = files.open_directory(_parent(path), root)
    if parent is None:
        return
    try:
        fd = files.open_file(os.path.basename(path) or ".", parent)
    except OSError:
        return
    finally:
        os.close(parent)
    try:
        answer = fcntl.ioctl(fd, _GET_FLAGS, bytes(8))
    except OSError:
        return
    finally:
        os.close(fd)
    flags = int.from_bytes(answer[:4], "little")
    for flag, word, letter in _ATTRIBUTES:
        if flags & flag:
            yield word, letter
