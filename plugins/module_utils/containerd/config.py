# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""containerd's configuration, versions 1 to 4, with the files that it imports. Pure.

Sources: containerd ``services/server/config`` at 1.7.24, ``cmd/containerd/server/config`` at
2.0.0 to 2.3.4, ``docs/cri/config.md`` and ``RELEASES.md``.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ..trees.node import Node, TreeError
from ..trees.toml_tree import parse

CONFIG_PATH = "/etc/containerd/config.toml"

# The table with the settings for Kubernetes, by the version of the file.
CRI_V1 = "cri"
CRI_V2 = "io.containerd.grpc.v1.cri"
CRI_V3 = "io.containerd.cri.v1.runtime"
CRI_IMAGES_V3 = "io.containerd.cri.v1.images"
CRI_TABLES = (CRI_V1, CRI_V2, CRI_V3)

# The newest version of the file that we know, and the release of containerd that a version needs.
NEWEST_VERSION = 4
NEEDS_RELEASE = {1: "1.0.0", 2: "1.3.0", 3: "2.0.0", 4: "2.3.0"}

# Shims of the first generation, removed in 2.0.
REMOVED_SHIMS = ("io.containerd.runtime.v1.linux", "io.containerd.runc.v1")
RUNC_SHIM = "io.containerd.runc.v2"

# File names that tools use for what they add, tried where a directory cannot be listed.
_USUAL_NAMES = ("99-nvidia.toml", "nvidia.toml", "50-nvidia.toml")
# An import of an import of an import … is no configuration that anybody keeps.
_MOST_FILES = 64

ReadFile = Callable[[str], "str | None"]
ListFiles = Callable[[str], "Sequence[str]"]


@dataclass(frozen=True)
class ConfigFile:
    """One file: its table, and the version it says (1 where it says none)."""

    path: str
    root: Node

    @property
    def version(self) -> int:
        """The version as containerd counts it."""
        node = self.root.get("version")
        said: Any = None if node is None else node.value
        return said if isinstance(said, int) and not isinstance(said, bool) and said > 0 else 1

    def texts(self, *path: str) -> list[Node]:
        """The texts in the list at a path."""
        node = self.root.get(*path)
        inside = node.elements() if node is not None else []
        return [element for element in inside if isinstance(element.value, str)]


@dataclass(frozen=True)
class Runtime:
    """One runtime for Kubernetes. ``node`` is its table in ``file``; ``table`` the CRI table.

    ``kind`` is its ``runtime_type``, ``binary`` its ``BinaryName``; None where they are not set.
    """

    name: str
    file: ConfigFile
    table: str
    node: Node

    def option(self, name: str) -> Node | None:
        """One of its options, such as ``SystemdCgroup``."""
        return self.node.get("options", name)

    @property
    def kind(self) -> str | None:
        """The shim."""
        return _text(self.node.get("runtime_type"))

    @property
    def binary(self) -> str | None:
        """The program that the shim runs."""
        return _text(self.option("BinaryName"))

    @property
    def is_runc_like(self) -> bool:
        """Does its shim take runc's options?"""
        return self.kind in (None, "", RUNC_SHIM, *REMOVED_SHIMS)

    @property
    def systemd_cgroup(self) -> bool:
        """Is it told to use systemd for cgroups? The default is no."""
        node = self.option("SystemdCgroup")
        return node is not None and node.value is True


@dataclass(frozen=True)
class Config:
    """A configuration: ``files`` are the first file and those it imports, in order.

    ``unread`` are import patterns of which nothing could be read: whether there is anything
    behind them is not known. ``broken`` are imported files that are no TOML, with the error.
    """

    files: tuple[ConfigFile, ...]
    unread: tuple[str, ...] = ()
    broken: tuple[tuple[str, TreeError], ...] = ()

    @property
    def main(self) -> ConfigFile:
        """The file that containerd was given."""
        return self.files[0]

    @property
    def imports(self) -> list[str]:
        """The import patterns of the first file, made absolute."""
        return [_absolute(self.main.path, node.value) for node in self.main.texts("imports")]

    def runtimes(self) -> Iterator[Runtime]:
        """Every runtime of every file, whatever the table is called."""
        for file in self.files:
            for table in CRI_TABLES:
                runtimes = file.root.get("plugins", table, "containerd", "runtimes")
                for key, node in runtimes.items() if runtimes is not None else ():
                    if node.is_map:
                        yield Runtime(key.name, file, table, node)

    def default_runtimes(self) -> Iterator[tuple[ConfigFile, str, Node]]:
        """Each ``default_runtime_name`` with its file and CRI table."""
        for file in self.files:
            for table in CRI_TABLES:
                node = file.root.get("plugins", table, "containerd", "default_runtime_name")
                if node is not None and isinstance(node.value, str):
                    yield file, table, node


def load(
    text: str, path: str, read_file: ReadFile | None = None, list_files: ListFiles | None = None
) -> Config:
    """The configuration in ``text``, which stands at ``path``, and what it imports.

    ``read_file`` gives the text of a path or None; ``list_files`` the paths that match a pattern
    with ``*``. Raises TreeError for a first file that is no TOML.
    """
    files = [ConfigFile(path, parse(text))]
    unread: list[str] = []
    broken: list[tuple[str, TreeError]] = []
    seen = {path}
    waiting = list(files)
    while waiting:
        file = waiting.pop(0)
        for node in file.texts("imports"):
            pattern = _absolute(file.path, node.value)
            found = list(_imported(pattern, read_file, list_files))
            if not found:
                unread.append(pattern)
            for name, inside in found:
                if name in seen or len(seen) >= _MOST_FILES:
                    continue
                seen.add(name)
                try:
                    imported = ConfigFile(name, parse(inside))
                except TreeError as error:
                    broken.append((name, error))
                    continue
                files.append(imported)
                waiting.append(imported)
    return Config(tuple(files), tuple(unread), tuple(broken))


def _imported(
    pattern: str, read_file: ReadFile | None, list_files: ListFiles | None
) -> Iterator[tuple[str, str]]:
    if read_file is None:
        return
    if "*" not in pattern:
        names: Sequence[str] = [pattern]
    elif list_files is not None:
        names = sorted(list_files(pattern))
    else:
        names = [posixpath.join(posixpath.dirname(pattern), name) for name in _USUAL_NAMES]
    for name in names:
        text = read_file(name)
        if text is not None:
            yield name, text


def covers(pattern: str, path: str) -> bool:
    """Would an absolute import pattern find a file? ``*`` does not cross a slash, as in Go."""
    wanted, parts = pattern.split("/"), path.split("/")
    return len(wanted) == len(parts) and all(_part(w, p) for w, p in zip(wanted, parts))


def _part(pattern: str, name: str) -> bool:
    """One part of a path against a pattern in which only ``*`` is special."""
    pieces = pattern.split("*")
    if len(pieces) == 1:
        return pattern == name
    if len(name) < len(pieces[0]) + len(pieces[-1]):
        return False
    if not (name.startswith(pieces[0]) and name.endswith(pieces[-1])):
        return False
    at, end = len(pieces[0]), len(name) - len(pieces[-1])
    for piece in pieces[1:-1]:
        found = name.find(piece, at, end)
        if found < 0:
            return False
        at = found + len(piece)
    return True


def _absolute(parent: str, pattern: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(parent), pattern))


def _text(node: Node | None) -> str | None:
    return node.value if node is not None and isinstance(node.value, str) else None
