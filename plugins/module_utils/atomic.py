# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Files that are either the old ones or the new ones, whatever happens in between."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import tempfile

# Far more than any file that is read here has: /proc/kcore claims to have 128 TB.
_LONGEST = 64 << 20
_PIECE = 256 << 10


def read_text(path: str) -> str | None:
    """The content of a UTF-8 text file, or None when there is no such file.

    As a file that is opened as text, with line ends of all systems. Raises OSError as
    :func:`read_exact` does.
    """
    text = read_exact(path)
    return None if text is None else text.replace("\r\n", "\n").replace("\r", "\n")


def read_exact(path: str) -> str | None:
    """As :func:`read_text`, with the line ends as they are, for who writes the file again.

    Bytes that are not UTF-8 are replaced: a broken file must be shown, not crashed on. Raises
    OSError for what is no regular file, is longer than 64 MiB, or would have to be waited for.
    """
    try:
        # A pipe in the place of a file would be waited for without end.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return None
    with os.fdopen(descriptor, "rb", buffering=0) as handle:
        mode = os.fstat(descriptor).st_mode
        if not stat.S_ISREG(mode):
            why = errno.EISDIR if stat.S_ISDIR(mode) else errno.EINVAL
            raise OSError(why, os.strerror(why), path)
        data = b""
        # In pieces: for a file of /proc/sys the kernel sets aside as much as is asked for.
        while piece := handle.read(_PIECE):
            data += piece
            if len(data) > _LONGEST:
                raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), path)
    return data.decode("utf-8", "replace")


def fsync_directory(path: str) -> None:
    """Make a rename in ``path`` survive a power loss."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _make_directories(path: str) -> None:
    """Make a directory and those above it; each new one survives a power loss."""
    if os.path.isdir(path):
        return
    above = os.path.dirname(path)
    _make_directories(above)
    os.makedirs(path, mode=0o755, exist_ok=True)
    fsync_directory(above)


def write_atomic(path: str, content: str, mode: int | None = None) -> None:
    """Replace ``path`` by ``content``: temp file, fsync, rename, directory fsync.

    An existing file keeps its owner and, unless ``mode`` is given, its mode; a new one
    gets ``mode`` or 0644. A symlink is followed, so that a managed link stays a link.
    The directory is created when it is missing. Raises OSError and leaves the old file.
    """
    path = os.path.realpath(path)
    directory = os.path.dirname(path)
    _make_directories(directory)
    try:
        former: os.stat_result | None = os.stat(path)
    except FileNotFoundError:
        former = None
    if mode is None:
        mode = stat.S_IMODE(former.st_mode) if former else 0o644
    fd, temporary = tempfile.mkstemp(prefix="." + os.path.basename(path) + ".", dir=directory)
    try:
        with os.fdopen(fd, "w", encoding="utf-8") as handle:
            handle.write(content)
            handle.flush()
            if former is not None:
                os.fchown(handle.fileno(), former.st_uid, former.st_gid)
            os.fchmod(handle.fileno(), mode)
            os.fsync(handle.fileno())
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
    fsync_directory(directory)


def remove(path: str) -> bool:
    """Delete a file durably. True when there was one."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        return False
    fsync_directory(os.path.dirname(os.path.abspath(path)))
    return True
