# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Containers by their shims: a container that runs lives in one, a process of its own.

Nobody is asked: a shim outlives dockerd and containerd, and a dockerd that starts may end those
that it finds alive.
"""

from __future__ import annotations

import glob
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ..atomic import read_text
from ..versions import at_least

_PROGRAM = "containerd-shim"
# What every shim is started with, a runtime's with a name of its own too (containerd, runtime v2).
_FLAGS = {"-namespace", "-id", "-address"}
_NAMESPACE = "moby"
# The version that every shim speaks, and by release those that a containerd asks of the shims that
# it starts. An older containerd says "unsupported shim version" when it starts, and ends the
# container (containerd, core/runtime/v2: CurrentShimVersion; seen with 2.1.9 and 1.7.24).
_FIRST = 2
_SPEAKS = (("2.0.0", 3),)
# Containerd as a service, and the one that dockerd starts itself.
_ADDRESSES = ("/run/containerd/containerd.sock", "/run/docker/containerd/containerd.sock")


@dataclass(frozen=True)
class Shim:
    """A shim that runs; what its command line does not tell is "".

    ``program`` is its name, ``namespace`` and ``container`` are those of containerd, ``address`` is
    that of containerd's socket, ``groups`` are its control groups, of each hierarchy one.
    ``version`` is that of the language that it and its containerd have agreed on.
    """

    pid: int
    program: str
    namespace: str
    container: str
    address: str
    groups: tuple[str, ...]
    version: int = _FIRST

    @property
    def name(self) -> str:
        """``moby/0123456789ab``, for a person."""
        return f"{self.namespace or '?'}/{self.container[:12] or '?'}"


def shims(root: str = "/") -> list[Shim]:
    """All that run, by process id, of whichever containerd."""
    return sorted(_shims(root), key=lambda shim: shim.pid)


def identities(flags: Mapping[str, str], root: str = "/") -> list[str]:
    """The ids of Docker's living containers. ``flags`` are those of dockerd's unit.

    The shim of a container that has ended stays until dockerd has seen it: it does not count.
    """
    address = flags.get("--containerd", "")
    addresses = {plain(one) for one in (*_ADDRESSES, address) if one}
    namespace = flags.get("--containerd-namespace") or _NAMESPACE
    ours = [
        shim
        for shim in shims(root)
        if shim.namespace == namespace and plain(shim.address) in addresses and shim.container
    ]
    return sorted({shim.container for shim in ours if lives(shim, root)})


def speaks(release: str | None) -> int:
    """The newest version that a containerd understands; of one that is not known the first."""
    return max([version for since, version in _SPEAKS if at_least(release, since)] or [_FIRST])


def lost_to(release: str | None, root: str = "/") -> list[Shim]:
    """Those whose containers a containerd of this release ends when it starts."""
    newest = speaks(release)
    return [shim for shim in shims(root) if shim.version > newest and lives(shim, root)]


def names(root: str = "/") -> list[str]:
    """The living containers of every containerd of this host, as ``NAMESPACE/ID``."""
    return sorted({shim.name for shim in shims(root) if lives(shim, root)})


def plain(address: str) -> str:
    """The path of a socket, however it is written."""
    return address.replace("unix://", "", 1).replace("/var/run/", "/run/", 1)


def _shims(root: str) -> Iterator[Shim]:
    for path in glob.glob(os.path.join(glob.escape(root), "proc/[0-9]*/cmdline")):
        words = _read(path).split("\x00")
        program = os.path.basename(words[0])
        if not program.startswith(_PROGRAM) and not _FLAGS.issubset(words):
            continue
        given = dict(zip(words[1:], words[2:]))
        pid = int(os.path.basename(os.path.dirname(path)))
        yield Shim(
            pid=pid,
            program=program,
            namespace=given.get("-namespace", ""),
            container=given.get("-id", ""),
            address=given.get("-address", ""),
            groups=_groups(os.path.dirname(path)),
            version=_version(pid, root),
        )


def _groups(process: str) -> tuple[str, ...]:
    lines = _read(os.path.join(process, "cgroup")).splitlines()
    return tuple(line.split(":", 2)[2] for line in lines if line.count(":") > 1)


def _bundle(pid: int, root: str) -> str | None:
    """Where a shim has the files of its container; None where that is not told."""
    try:
        link = os.readlink(os.path.join(root, "proc", str(pid), "cwd"))
    except OSError:
        return None
    return os.path.join(root, link.lstrip("/"))


def _version(pid: int, root: str) -> int:
    bundle = _bundle(pid, root)
    try:
        told = json.loads(_read(os.path.join(bundle, "bootstrap.json")) if bundle else "{}")
        return max(_FIRST, int(told["version"]))
    except (ValueError, TypeError, KeyError):
        return _FIRST


def lives(shim: Shim, root: str = "/") -> bool:
    """Has the container of this shim a process? In doubt it has."""
    bundle = _bundle(shim.pid, root)
    if bundle is None:
        return True
    if not os.path.isdir(bundle):
        return False  # That of an engine in a container, which has files of its own.
    pid = _read(os.path.join(bundle, "init.pid")).strip()
    if not pid.isdecimal():
        return True
    # Its number may have gone to another process since.
    return shim.container in _read(os.path.join(root, "proc", pid, "cgroup"))


def _read(path: str) -> str:
    try:
        return read_text(path) or ""
    except OSError:  # It may end while we look.
        return ""
