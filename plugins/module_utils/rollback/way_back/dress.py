# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Owner, mode and extended attributes: how they differ, and how to set them.

Nobody gets access in between that neither the former nor the new ones give: first the mode loses
what the new one does not have, and it gets what it lacks last, when owner and ACL are the new ones.
"""

from __future__ import annotations

import contextlib
import os
import stat

from ..model import Entry
from ..observation import files

_SELINUX = "security.selinux"
_CAPABILITY = "security.capability"
_ACL = "system.posix_acl_"
_RUNS_AS_OWNER = stat.S_ISUID | stat.S_ISGID


def alike(now: Entry, wanted: Entry) -> bool:
    """Would putting ``wanted`` in the place of ``now`` change nothing?

    An entry without SELinux label, taken while SELinux was off, goes with any.
    """
    return contents_alike(now, wanted) and not _differences(now, wanted)


def contents_alike(now: Entry, wanted: Entry) -> bool:
    """Do the two differ at most in owner, mode and attributes?"""
    return (now.kind, now.digest, now.target) == (wanted.kind, wanted.digest, wanted.target)


def by_one_call(now: Entry, wanted: Entry) -> bool:
    """Is the difference of two files of one content a single system call without side effect?"""
    differences = _differences(now, wanted)
    if len(differences) != 1:
        return False
    # chown takes away setuid and capabilities; an ACL and the mode are one thing in two forms.
    if differences == ["owner"]:
        plain = not (now.mode | wanted.mode) & _RUNS_AS_OWNER
        return plain and _CAPABILITY not in now.xattrs
    return not differences[0].startswith(_ACL) and not any(n.startswith(_ACL) for n in now.xattrs)


def dress_in_place(fd: int, now: Entry, wanted: Entry) -> None:
    """Make the one call that :func:`by_one_call` promised. Raises OSError."""
    (difference,) = _differences(now, wanted)
    if difference == "owner":
        os.fchown(fd, wanted.uid, wanted.gid)
    elif difference == "mode":
        os.fchmod(fd, wanted.mode)
    elif difference in wanted.xattrs:
        os.setxattr(fd, difference, wanted.xattrs[difference])
    else:
        os.removexattr(fd, difference)


def dress(fd: int, wanted: Entry) -> None:
    """Give an open file or directory what ``wanted`` has. Raises OSError."""
    seen = os.fstat(fd)
    mode = stat.S_IMODE(seen.st_mode)
    if mode & wanted.mode & ~_RUNS_AS_OWNER != mode:
        os.fchmod(fd, mode & wanted.mode & ~_RUNS_AS_OWNER)
    if (seen.st_uid, seen.st_gid) != (wanted.uid, wanted.gid):
        os.fchown(fd, wanted.uid, wanted.gid)
    _set_attributes(fd, wanted)
    # An ACL just set has brought its own bits.
    if stat.S_IMODE(os.fstat(fd).st_mode) != wanted.mode:
        os.fchmod(fd, wanted.mode)


def dress_link(directory: int, name: str, wanted: Entry) -> None:
    """Give a link itself what ``wanted`` has. Raises OSError."""
    os.chown(name, wanted.uid, wanted.gid, dir_fd=directory, follow_symlinks=False)
    _set_attributes(files.link_itself(directory, name), wanted)


def _set_attributes(target: int | str, wanted: Entry) -> None:
    follow = isinstance(target, int)
    now = files.attributes(target)
    for name in now:
        if name not in wanted.xattrs and name != _SELINUX:
            with contextlib.suppress(FileNotFoundError):
                os.removexattr(target, name, follow_symlinks=follow)
    for name, value in wanted.xattrs.items():
        if now.get(name) != value:
            os.setxattr(target, name, value, follow_symlinks=follow)


def _differences(now: Entry, wanted: Entry) -> list[str]:
    """``owner``, ``mode`` and names of attributes in which two of one kind differ."""
    if wanted.kind == "absent":
        return []
    differences = []
    if (now.uid, now.gid) != (wanted.uid, wanted.gid):
        differences.append("owner")
    # The mode of a link means nothing.
    if wanted.kind != "link" and now.mode != wanted.mode:
        differences.append("mode")
    for name in sorted({*now.xattrs, *wanted.xattrs}):
        if now.xattrs.get(name) == wanted.xattrs.get(name):
            continue
        if name != _SELINUX or name in wanted.xattrs:
            differences.append(name)
    return differences
