# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which file gives a kernel setting its value at boot: the last one that names it wins.

Order and syntax: sysctl.d(5). All directories together are sorted by file name; of two files of one
name only that in the first directory is read.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass

from ..atomic import read_text

_DIRECTORIES = ("/etc/sysctl.d", "/run/sysctl.d", "/usr/local/lib/sysctl.d", "/usr/lib/sysctl.d")
_OURS = "/etc/sysctl.d/"


@dataclass(frozen=True)
class Assignment:
    """A line of a sysctl.d file: ``key`` with slashes, as below /proc/sys."""

    path: str
    key: str
    value: str


def outvoted(keys: dict[str, str], ours: str, root: str = "/") -> list[Assignment]:
    """Who gives one of ``keys`` (dotted key to wanted value) another value after ``ours``.

    ``ours`` is a path in /etc/sysctl.d, which may not be written yet.
    """
    if not ours.startswith(_OURS):
        return []
    wanted = {slashed(key): " ".join(value.split()) for key, value in keys.items()}
    last: dict[str, Assignment] = {}
    for said in _assignments(os.path.basename(ours), root):
        # Ours spells the name out, which counts more than any pattern (sysctl.d(5)).
        if said.key in wanted:
            last[said.key] = said
    return [said for key, said in sorted(last.items()) if said.value != wanted[key]]


def slashed(key: str) -> str:
    """``net.ipv4.conf.eth0/1.x``, or the form with slashes, as a path below /proc/sys."""
    first = re.search("[./]", key)
    if first and first.group() == ".":
        return key.translate(str.maketrans("./", "/."))
    return key


def _assignments(after: str, root: str) -> Iterator[Assignment]:
    """What the files say that are read after one of the name ``after``."""
    paths: dict[str, str] = {}
    for directory in _DIRECTORIES:
        try:
            names = os.listdir(os.path.join(root, directory.lstrip("/")))
        except OSError:
            continue
        for name in names:
            if name.endswith(".conf"):
                paths.setdefault(name, f"{directory}/{name}")
    for name in sorted(paths):
        if name <= after:
            continue
        try:
            text = read_text(os.path.join(root, paths[name].lstrip("/"))) or ""
        except OSError:
            continue
        for line in text.splitlines():
            key, equals, value = line.strip().partition("=")
            key = key.strip().lstrip("-").strip()
            if equals and key and key[0] not in "#;":
                yield Assignment(paths[name], slashed(key), " ".join(value.split()))
