# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Docker's containers that live on while dockerd does not run, each in a shim of its own.

Nobody is asked: a dockerd that starts is the only one that knows them, and it may end them then.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Mapping

from ..atomic import read_text

_SHIM = "containerd-shim"
_NAMESPACE = "moby"
# Containerd as a service, and the one that dockerd starts itself.
_ADDRESSES = ("/run/containerd/containerd.sock", "/run/docker/containerd/containerd.sock")


def identities(flags: Mapping[str, str], root: str = "/") -> list[str]:
    """The ids of the containers. ``flags`` are those of dockerd's unit.

    The shim of a container that has ended stays until dockerd has seen it: it does not count.
    """
    address = flags.get("--containerd", "")
    addresses = {_plain(one) for one in (*_ADDRESSES, address) if one}
    namespace = flags.get("--containerd-namespace") or _NAMESPACE
    return sorted(set(_shims(addresses, namespace, root)))


def _shims(addresses: set[str], namespace: str, root: str) -> Iterator[str]:
    for path in glob.glob(os.path.join(glob.escape(root), "proc/[0-9]*/cmdline")):
        words = _read(path).split("\x00")
        if not os.path.basename(words[0]).startswith(_SHIM):
            continue
        given = dict(zip(words[1:], words[2:]))
        identity = given.get("-id", "")
        ours = given.get("-namespace") == namespace
        ours = ours and _plain(given.get("-address", "")) in addresses
        if ours and identity and _lives(identity, os.path.dirname(path), root):
            yield identity


def _lives(identity: str, process: str, root: str) -> bool:
    """Has the container of this shim a process? In doubt it has."""
    try:
        bundle = os.path.join(root, os.readlink(os.path.join(process, "cwd")).lstrip("/"))
    except OSError:
        return True
    if not os.path.isdir(bundle):
        return False  # That of an engine in a container, which has files of its own.
    pid = _read(os.path.join(bundle, "init.pid")).strip()
    if not pid.isdecimal():
        return True
    # Its number may have gone to another process since.
    return identity in _read(os.path.join(root, "proc", pid, "cgroup"))


def _plain(address: str) -> str:
    return address.replace("unix://", "", 1).replace("/var/run/", "/run/", 1)


def _read(path: str) -> str:
    try:
        return read_text(path) or ""
    except OSError:  # It may end while we look.
        return ""
