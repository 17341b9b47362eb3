# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Maintainer scripts neither stop, start nor restart a container engine while we change packages.

Debian's scripts ask ``/usr/sbin/policy-rc.d`` before they touch a unit (deb-systemd-invoke(1p),
invoke-rc.d(8)). Ours only speaks for a package manager that we started, which it knows by a
variable in its environment: one that a killed run has left behind says nothing to anybody else,
while the package manager that outlives us still obeys. A policy that the host has already is asked
after ours, and put back by one rename.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator

from ..atomic import fsync_directory
from ..boot_unit import ENGINES

# The units that must not be touched, in the environment of the package manager.
VARIABLE = "STEADYGPU_UNITS_TO_KEEP"
UNITS = f"docker.socket {ENGINES}"

_POLICY = "/usr/sbin/policy-rc.d"
_FORMER = "/usr/sbin/policy-rc.d.steadygpu-former"
_NEW = "/usr/sbin/policy-rc.d.steadygpu-new"
_MARK = "# Of steadygpu.host. It binds only the package manager that steadygpu.host has started."
_TEXT = f"""\
#!/bin/sh
{_MARK}
for word in "$@"; do
    case " ${VARIABLE} " in
    *" $word "* | *" $word.service "*) exit 101 ;;
    esac
done
[ ! -x {_FORMER} ] || exec {_FORMER} "$@"
exit 0
"""


@contextlib.contextmanager
def engines_kept(
    root: str = "/", busy: Callable[[], bool] = lambda: False
) -> Iterator[dict[str, str]]:
    """Yields what the environment of the package manager needs. Raises OSError.

    ``busy``: is a package manager at work still? Asked where ours was given up.
    """
    install(root)
    ended = False
    try:
        yield {VARIABLE: UNITS}
        ended = True
    finally:
        # What was given up may live on and still asks; then the next run takes the policy away.
        if ended or not busy():
            remove(root)


def install(root: str = "/") -> None:
    """Put our policy in place, before one that is there. Raises OSError."""
    remove(root)
    policy, former, new = _paths(root)
    directory = os.path.dirname(policy)
    os.makedirs(directory, mode=0o755, exist_ok=True)
    if os.path.lexists(policy):
        os.link(policy, former, follow_symlinks=False)
    with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o755), "w") as handle:
        handle.write(_TEXT)
        os.fchmod(handle.fileno(), 0o755)
        os.fsync(handle.fileno())
    # Not through a link: the link is the policy that is asked after ours.
    os.replace(new, policy)
    fsync_directory(directory)


def left_behind(root: str = "/") -> bool:
    """Has a killed run left its policy here?"""
    policy, former, new = _paths(root)
    return _is_ours(policy) or os.path.lexists(former) or os.path.lexists(new)


def remove(root: str = "/") -> None:
    """Take our policy away, whoever left it, and give the former one back. Raises OSError."""
    policy, former, new = _paths(root)
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        os.unlink(new)
    if os.path.lexists(former):
        if _is_ours(policy) or not os.path.lexists(policy):
            os.replace(former, policy)
        else:
            os.unlink(former)
    elif _is_ours(policy):
        os.unlink(policy)
    else:
        return
    fsync_directory(os.path.dirname(policy))


def _paths(root: str) -> tuple[str, str, str]:
    """The policy, the one that was there before, and ours before it is in place."""
    below = root.rstrip("/")
    return below + _POLICY, below + _FORMER, below + _NEW


def _is_ours(policy: str) -> bool:
    if os.path.islink(policy) or not os.path.isfile(policy):
        return False
    with open(policy, "rb") as handle:
        return _MARK.encode("ascii") in handle.read(1024)
