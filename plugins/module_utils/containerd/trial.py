# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""containerd's files on this host, and what containerd would make of others in their place.

A trial is a copy of all files below a directory of its own, in which the imports point to the
copies. So containerd itself finds, orders and merges them, before anything of the host is changed.
"""

from __future__ import annotations

import os
import posixpath
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..trees import toml_edit
from ..trees.node import TreeError
from ..trees.toml_tree import parse
from .config import Config, covers, load
from .dropin import is_ours
from .dump import Dump, read_dump
from .tool import DumpError, Tool, listed, text_of


class FilesError(Exception):
    """A file of the host cannot be understood; the message names it."""


@dataclass(frozen=True)
class Files:
    """The files that containerd reads, ours left out.

    ``config`` is None without a first file; ``texts`` by path; ``names_in`` the file names by
    directory; ``stray`` are files that look like drop-ins and that no import finds.
    """

    path: str
    config: Config | None
    texts: Mapping[str, str]
    names_in: Mapping[str, Sequence[str]]
    stray: tuple[str, ...] = ()

    @property
    def root_text(self) -> str | None:
        """The first file's text."""
        return self.texts.get(self.path)


def read_files(path: str) -> Files:
    """What is there. Raises FilesError, OSError."""
    texts: dict[str, str] = {}

    def read(name: str) -> str | None:
        text = None if is_ours(name) else text_of(name)
        if text is not None:
            texts[name] = text
        return text

    root = read(path)
    home = posixpath.dirname(path)
    usual = [posixpath.join(home, name) for name in ("conf.d", "config.d")]
    if root is None:
        return Files(path, None, {}, {one: listed(one) for one in usual})
    try:
        config = load(root, path, read, _found)
    except TreeError as error:
        raise FilesError(_broken(path, error)) from error
    if config.broken:
        raise FilesError("; ".join(_broken(name, error) for name, error in config.broken))
    directories = {posixpath.dirname(pattern) for pattern in config.imports if "*" in pattern}
    names_in = {one: listed(one) for one in (*usual, *sorted(directories))}
    return Files(path, config, texts, names_in, _stray(config, usual, names_in))


def _broken(path: str, error: TreeError) -> str:
    return f"{path}:{error.line}:{error.column}: {error.said}"


def _found(pattern: str) -> list[str]:
    directory = posixpath.dirname(pattern)
    paths = [posixpath.join(directory, name) for name in listed(directory)]
    return [path for path in paths if covers(pattern, path)]


def _stray(
    config: Config, usual: Sequence[str], names_in: Mapping[str, Sequence[str]]
) -> tuple[str, ...]:
    read = {file.path for file in config.files}
    paths = [posixpath.join(one, name) for one in usual for name in names_in[one]]
    return tuple(
        path for path in paths if path.endswith(".toml") and path not in read and not is_ours(path)
    )


def dump_of(files: Mapping[str, str], path: str, tool: Tool) -> Dump:
    """What containerd makes of ``files`` (texts by path), of which ``path`` is the first.

    Raises DumpError with containerd's words.
    """
    with tempfile.TemporaryDirectory(prefix="steadygpu-containerd-") as base:
        for name, text in files.items():
            copy = base + name
            os.makedirs(os.path.dirname(copy), mode=0o700, exist_ok=True)
            with open(copy, "w", encoding="utf-8") as handle:
                handle.write(_moved(text, name, base))
        try:
            return parsed(tool.dump(base + path))
        except DumpError as error:
            raise DumpError(str(error).replace(base, "")) from error


def parsed(text: str) -> Dump:
    """A dump that containerd wrote. Raises DumpError."""
    try:
        return read_dump(parse(text).plain())
    except TreeError as error:
        raise DumpError(f"its dump is no TOML: {error}") from error


def _moved(text: str, path: str, base: str) -> str:
    """A file's text whose imports lie below ``base``."""
    imports = toml_edit.parse(text).get("imports")
    if not isinstance(imports, list):
        return text
    home = posixpath.dirname(path)
    moved = [base + posixpath.normpath(posixpath.join(home, str(one))) for one in imports]
    return toml_edit.assign(text, ("imports",), moved)
