# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where our drop-in of containerd's configuration goes, what must stand in it, and its text. Pure.

Two generations of containerd read the same files differently (tried on 1.6.20, 1.7.24 and 2.1.9).
1.x takes the table of a plugin whole from the file that it reads last: what other files say of
that plugin is gone, and a map that is written replaces the built-in one, so that a file which
adds one runtime takes runc away. 2.x merges key by key, and a list is taken from the last file.
In both, files are read in the order of ``imports``, those that an imported file imports last, and
``disabled_plugins`` adds up.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..trees import toml_edit
from ..trees.leaves import Path, flatten
from ..trees.toml_write import path_text, value_text
from ..versions import at_least
from .config import Config, ConfigFile, covers
from .names import Leaves, named, nested, show_path, to_v3

# The later a name sorts, the later it is read.
_NAMES = ("steadygpu.toml", "zz-steadygpu.toml")
_OURS = frozenset(_NAMES)

_HEADER = """\
# Written by steadygpu.host.containerd_config; changes by hand are replaced at its next run.
# Everything here: state: absent takes it away again.
"""
_REPEATED = """\
#
# containerd 1.x takes the table of a plugin from one file only, the one that it reads last. So
# what {files} had in it is repeated here, beside what was asked for:
{ours}
# After a change there run the module again.
"""


def is_ours(path: str) -> bool:
    """Is a file one that we write?"""
    return posixpath.basename(path) in _OURS


def merges(release: str | None) -> bool:
    """Does this containerd merge the tables of a plugin over its files?"""
    return at_least(release, "2.0.0")


@dataclass(frozen=True)
class Place:
    """``drop_in`` is our file. ``add_import`` is what the first file has to import for it to be
    read, None where it does already.
    """

    drop_in: str
    add_import: str | None = None


def place(
    path: str,
    config: Config | None,
    names_in: Mapping[str, Sequence[str]],
    release: str | None,
    former: str | None = None,
) -> Place:
    """Where our drop-in is read last.

    ``config`` is what the first file, ``path``, and its imports say without it (None: there is no
    such file), ``names_in`` the file names by directory (those of the imports and ``conf.d``),
    ``former`` where it lies already.
    """
    home = posixpath.dirname(path)
    imports = list(zip(config.main.texts("imports"), config.imports)) if config else []
    for node, pattern in reversed(imports):
        if "*" in node.value and not node.value.startswith("/") and not at_least(release, "1.7.0"):
            continue  # looked for from the daemon's own directory
        directory = posixpath.dirname(pattern)
        if "*" in directory or not directory.startswith(home + "/"):
            continue  # a directory of somebody else, which no checkpoint knows
        fitting = [name for name in _NAMES if covers(pattern, posixpath.join(directory, name))]
        if fitting:
            name = _last_name(fitting, names_in.get(directory, ()), pattern, former)
            return Place(posixpath.join(directory, name))
    directory = posixpath.join(home, "conf.d")
    others = [name for name in names_in.get(directory, ()) if name not in _OURS]
    # Files that lie there unread must not come to life with ours.
    everything = not any(name.endswith(".toml") for name in others)
    wanted = "*.toml" if everything else "*steadygpu.toml"
    return Place(posixpath.join(directory, _NAMES[0]), posixpath.join(directory, wanted))


def _last_name(
    fitting: Sequence[str], names: Iterable[str], pattern: str, former: str | None
) -> str:
    """The name of ours that sorts behind all others that the pattern finds."""
    directory = posixpath.dirname(pattern)
    others = [
        name
        for name in names
        if name not in _OURS and covers(pattern, posixpath.join(directory, name))
    ]
    behind = [name for name in fitting if all(name > other for other in others)]
    for name in behind:
        if former == posixpath.join(directory, name):
            return name
    return behind[0] if behind else fitting[-1]


def with_import(text: str, pattern: str) -> str:
    """The first file's text with one more import; all else stays. Raises TomlTextError."""
    present = toml_edit.parse(text).get("imports")
    listed = present if isinstance(present, list) else []
    return toml_edit.assign(text, ("imports",), [*listed, pattern])


def without_import(text: str, pattern: str, former: str | None) -> str:
    """The first file's text with our import taken back; ``former`` is the list's text before us."""
    present = toml_edit.parse(text).get("imports")
    left = [one for one in present if one != pattern] if isinstance(present, list) else []
    if former is None:
        if not left:
            return toml_edit.delete(text, ("imports",))
    elif toml_edit.value_of(former) == left:
        return toml_edit.assign_raw(text, ("imports",), former)
    return toml_edit.assign(text, ("imports",), left)


# -- who said what ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Said:
    """A setting in a file: ``path`` in the names of version 3."""

    file: str
    path: Path
    value: Any


def said(files: Iterable[ConfigFile]) -> dict[Path, Said]:
    """What each setting is said to be by the file that is read last of those that say it."""
    found: dict[Path, Said] = {}
    for file in files:
        for path, value in flatten(file.root.plain()):
            if path:
                found[to_v3(path)] = Said(file.path, to_v3(path), value)
    return found


# -- what stands in it -----------------------------------------------------------------------


@dataclass(frozen=True)
class Content:
    """``leaves`` of the drop-in in the names of its ``version``; ``repeated`` are those that other
    files have and that only stand here because containerd 1.x would lose them.
    """

    version: int
    leaves: Leaves
    repeated: tuple[Path, ...] = ()
    files: tuple[str, ...] = ()

    def with_lost(self, lost: Mapping[Path, Any]) -> Content:
        """The same with what a trial showed to be lost."""
        return Content(
            self.version,
            {**lost, **self.leaves},
            (*self.repeated, *(path for path in lost if path not in self.leaves)),
            self.files or ("the built-in configuration",),
        )


def content(wanted: Leaves, version: int, others: Sequence[ConfigFile], replaces: bool) -> Content:
    """The drop-in for ``wanted`` (names of version 3), of the first file's ``version``.

    ``others`` are all other files in the order they are read, ``replaces`` as in containerd 1.x.
    """
    ours = {named(path, version): value for path, value in wanted.items()}
    if not replaces:
        return Content(version, ours)
    repeated: Leaves = {}
    files: list[str] = []
    for plugin in {path[1]: None for path in ours if path[0] == "plugins"}:
        holder = next((file for file in reversed(others) if file.root.get("plugins", plugin)), None)
        node = None if holder is None else holder.root.get("plugins", plugin)
        if holder is None or node is None or not node.is_map:
            continue
        for inside, value in flatten(node.plain()):
            if inside:
                repeated[("plugins", plugin, *inside)] = value
        if holder.path not in files:
            files.append(holder.path)
    only = {path: value for path, value in repeated.items() if not _clashes(path, ours)}
    return Content(version, {**only, **ours}, tuple(only), tuple(files))


def _clashes(path: Path, ours: Leaves) -> bool:
    """Is it said by us, or above or below what is?"""
    return any(path[: len(own)] == own[: len(path)] for own in ours)


def render(content: Content) -> str:
    """The text of the drop-in."""
    ours = [path for path in content.leaves if path not in set(content.repeated)]
    lines = [_HEADER.rstrip("\n")]
    if content.repeated:
        listed = "\n".join(f"#   {show_path(path)}" for path in ours)
        files = ", ".join(content.files)
        lines.append(_REPEATED.format(files=files, ours=listed).rstrip("\n"))
    lines.append(f"version = {content.version}")
    lines.extend(_table((), nested(content.leaves)))
    return "\n".join(lines) + "\n"


def _table(path: Path, table: Mapping[str, Any]) -> list[str]:
    """The lines of a table: its own values, then the tables in it."""
    own = [(key, value) for key, value in table.items() if not isinstance(value, dict)]
    below = [(key, value) for key, value in table.items() if isinstance(value, dict)]
    lines = []
    if path and (own or not below):
        lines.extend(["", f"[{path_text(path)}]"])
    lines.extend(f"{path_text((key,))} = {value_text(value)}" for key, value in own)
    for key, value in below:
        lines.extend(_table((*path, key), value))
    return lines
