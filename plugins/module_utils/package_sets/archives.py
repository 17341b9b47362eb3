# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Package files that lie on the host: which packages they hold."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

from ..process import run
from .model import RefusedError

_DEB = "${Package}\t${Version}\n"
_RPM = "%{NAME}\t%|EPOCH?{%{EPOCH}}:{0}|\t%{VERSION}-%{RELEASE}\n"


@dataclass(frozen=True)
class Archive:
    """One file, and the package in it."""

    path: str
    name: str
    version: str


def missing(paths: Sequence[str]) -> list[str]:
    """Those of the paths that are not there."""
    return [path for path in paths if not os.path.exists(path)]


def read(paths: Sequence[str], manager: str | None) -> list[Archive]:
    """The packages of the files, and of all files in the directories. Raises RefusedError."""
    ending = ".deb" if manager == "dpkg" else ".rpm"
    found = []
    for path in _files(paths, ending):
        found.append(_deb(path) if manager == "dpkg" else _rpm(path))
    return found


def _files(paths: Sequence[str], ending: str) -> list[str]:
    found = []
    for path in paths:
        if os.path.isdir(path):
            inside = sorted(name for name in os.listdir(path) if name.endswith(ending))
            if not inside:
                raise RefusedError(f"{path} holds no file that ends in {ending}")
            found += [os.path.join(path, name) for name in inside]
        elif not os.path.isfile(path):
            raise RefusedError(f"{path} is not on this host; copy it there first")
        else:
            found.append(path)
    return found


def _deb(path: str) -> Archive:
    done = run(["dpkg-deb", "-W", f"--showformat={_DEB}", path])
    fields = done.stdout.strip().split("\t")
    if not done.ok or len(fields) != 2:
        raise RefusedError(f"{path} is not a deb package: {done.said}")
    return Archive(path, fields[0], fields[1])


def _rpm(path: str) -> Archive:
    done = run(["rpm", "-qp", "--nosignature", "--qf", _RPM, path])
    fields = done.stdout.strip().split("\t")
    if not done.ok or len(fields) != 3:
        raise RefusedError(f"{path} is not an rpm package: {done.said}")
    name, epoch, version = fields
    return Archive(path, name, version if epoch == "0" else f"{epoch}:{version}")
