# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What of the host a CDI specification names: device nodes and files. Pure.

Hosts have no YAML library, so YAML is read by lines, in the layout that ``nvidia-ctk`` writes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

# ``hostPath: /usr/lib/libcuda.so.1`` and ``major: 511``, also as the first key of a list's item.
_ENTRY = re.compile(
    r"""[ ]*(?:-[ ]+)?["']?(?P<key>hostPath|path|major)["']?:[ ]*"""
    r"""["']?(?P<value>[^"'#,]+?)["']?,?[ ]*(?:[ ]#.*)?$"""
)
# Libraries of the driver end in its whole version: libcuda.so.550.163.01.
_LIBRARY = re.compile(r"/lib(?:cuda|nvidia-ml|nvidia-[a-z0-9-]+)\.so\.(\d{3,4}\.\d+(?:\.\d+)?)$")


@dataclass(frozen=True)
class Named:
    """``files`` of the host that must be there when a container starts, nodes among them.

    ``majors`` are the numbers that a node is said to have, where it is said. ``drivers`` are the
    versions of the driver's libraries.
    """

    files: tuple[str, ...] = ()
    majors: tuple[tuple[str, int], ...] = ()
    drivers: tuple[str, ...] = ()

    @property
    def nodes(self) -> frozenset[str]:
        """Those of the files that are device nodes."""
        return frozenset(path for path in self.files if path.startswith("/dev/"))


def named(text: str) -> Named:
    """Read the text of a specification. What is not understood names nothing."""
    try:
        entries = list(_of_tree(json.loads(text)))
    except (ValueError, RecursionError):
        entries = list(_of_lines(text))
    files, majors = [], []
    for entry in entries:
        path = entry.get("hostPath") or entry.get("path") or ""
        if not path.startswith("/"):
            continue
        files.append(path)
        if entry.get("major", "").isdecimal():
            majors.append((path, int(entry["major"])))
    found = [match.group(1) for match in map(_LIBRARY.search, files) if match]
    return Named(
        tuple(dict.fromkeys(files)), tuple(dict.fromkeys(majors)), tuple(dict.fromkeys(found))
    )


def _of_tree(value: Any) -> Iterator[dict[str, str]]:
    """The objects with a path: device nodes, mounts and hooks."""
    if isinstance(value, list):
        for one in value:
            yield from _of_tree(one)
    elif isinstance(value, dict):
        keys = ("hostPath", "path", "major")
        entry = {key: str(value[key]) for key in keys if value.get(key) is not None}
        if entry:
            yield entry
        for one in value.values():
            yield from _of_tree(one)


def _of_lines(text: str) -> Iterator[dict[str, str]]:
    """The same of YAML: keys of one column belong together until the next item of their list."""
    entry: dict[str, str] = {}
    column = -1
    for line in text.splitlines():
        bare = line.lstrip(" ")
        at = len(line) - len(bare)
        is_item = bare.startswith("- ")
        if is_item:
            at += len(bare) - len(bare[1:].lstrip(" "))
        match = _ENTRY.match(line)
        # The arguments of a hook are a list inside it: their items stand deeper than its keys.
        ends = at <= column if is_item else at < column
        if entry and (ends or (match is not None and at != column)):
            yield entry
            entry = {}
        if match is not None:
            column = at
            entry[match.group("key")] = match.group("value").strip()
    if entry:
        yield entry
