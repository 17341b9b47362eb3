# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What containerd's files are to be: tried out with containerd itself before anything is written.

Nothing here changes anything on the host.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Callable

from .. import vouched
from ..secrets import by_key, redact
from ..trees.leaves import Path
from ..trees.toml_edit import parse
from .dropin import (
    Place,
    content,
    is_ours,
    merges,
    place,
    render,
    said,
    with_import,
    without_import,
)
from .dump import Difference, Dump, compare
from .judge import cri_off, undefined_default
from .names import ADDED_UP, Leaves, is_cri, show_path
from .record import Record, digest
from .refusals import ContainerdRefusedError
from .tool import ContainerdState, DumpError, Tool, text_of
from .trial import Files, FilesError, dump_of, parsed, read_files

# So often a trial may show that something is lost before it is given up.
_ROUNDS = 3


@dataclass(frozen=True)
class FileChange:
    """A file and its texts, None where it is not there. ``mode`` None keeps what it has.

    ``kept_as`` is where the text before goes that somebody else wrote.
    """

    path: str
    before: str | None
    after: str | None
    mode: int | None = None
    kept_as: str | None = None


@dataclass(frozen=True)
class Aim:
    """Where all is to go. ``wanted`` is all that is ours then; ``drop_in`` our file's text.

    ``changes`` are in the order in which they are safe to be written. ``now`` and ``after`` are
    what containerd makes of the files as they are and as they are to be.
    """

    files: Files
    wanted: Leaves
    place: Place
    drop_in: str | None
    changes: tuple[FileChange, ...]
    now: Dump
    after: Dump


@dataclass(frozen=True)
class Aiming:
    """``present`` and ``takeover`` as in the wish; ``path`` is the first file."""

    present: bool
    takeover: bool
    tool: Tool
    state: ContainerdState
    path: str
    record: Record
    is_program: Callable[[str], bool]

    def aim(self, asked: Leaves) -> Aim:
        """Raises ContainerdRefusedError, FilesError, TomlTextError, DumpError."""
        files = read_files(self.path)
        version = self._version(files)
        base = self._without_ours(files, version)
        wanted = self._wanted(asked, files, base)
        if wanted:
            self._check(wanted, base)
        former, release = self.record.drop_in, self.state.release
        spot = place(self.path, files.config, files.names_in, release, former)
        now = self._now(files, spot, base)
        root = self._root(files, version, spot, bool(wanted))
        drop_in, after = self._drop_in(files, version, spot, root, wanted, base)
        changes = self._changes(files, spot, root, drop_in)
        return Aim(files, wanted, spot, drop_in, changes, now, after)

    # -- what is there -------------------------------------------------------------------

    def _version(self, files: Files) -> int:
        """The version of the first file, or of containerd's own where there is none."""
        if files.config is None:
            return parsed(self.tool.default()).version
        version = files.config.main.version
        if version < 2:
            raise ContainerdRefusedError(
                f"{self.path} is of version 1, as it says none; containerd 1.x reads no drop-in of "
                "a newer version beside it, and 2.x translates it at every start. Write version = "
                '2 at its top and whole names, such as "io.containerd.grpc.v1.cri" for "cri" in '
                "disabled_plugins (containerd 2.x does it for you: containerd config migrate)"
            )
        return version

    def _without_ours(self, files: Files, version: int) -> Dump:
        texts = dict(files.texts) or {self.path: f"version = {version}\n"}
        try:
            return dump_of(texts, self.path, self.tool)
        except DumpError as error:
            raise FilesError(f"containerd config dump: {by_key.clean(str(error), ())}") from error

    def _now(self, files: Files, spot: Place, base: Dump) -> Dump:
        """What containerd makes of the files as they are, ours with them."""
        ours = self._our_file(spot)
        if ours is None or files.config is None:
            return base
        return dump_of({**files.texts, ours[0]: ours[1]}, self.path, self.tool)

    def _our_file(self, spot: Place) -> tuple[str, str] | None:
        path = self.record.drop_in or spot.drop_in
        text = text_of(path)
        return None if text is None else (path, text)

    # -- what is wanted ------------------------------------------------------------------

    def _wanted(self, asked: Leaves, files: Files, base: Dump) -> Leaves:
        """All that is to be ours afterwards."""
        ours = dict(self.record.wanted)
        if not self.present:
            return {path: value for path, value in ours.items() if asked and path not in asked}
        others = said(files.config.files) if files.config else {}
        conflicts = []
        for path, value in asked.items():
            if path not in ours and base.has(path, value):
                continue  # right already: it stays whose it is
            other = others.get(path)
            # What containerd 1.x reads over in another file counts for nobody.
            counts = other is not None and base.has(path, other.value)
            foreign = path not in ours and path not in ADDED_UP and not self.takeover
            if other is not None and counts and foreign:
                conflicts.append(
                    f"{show_path(path)} is {by_key.show(path, other.value)} in {other.file}, "
                    f"wanted {by_key.show(path, value)}"
                )
            ours[path] = value
        if conflicts:
            raise ContainerdRefusedError(
                "somebody else set what we are to set: {}. Leave it out, make the values equal, or "
                "say takeover: true (our drop-in then counts, and theirs again after state: "
                "absent)".format("; ".join(conflicts))
            )
        return ours

    def _check(self, wanted: Leaves, base: Dump) -> None:
        """Refuse what containerd would accept and no container could start with."""
        errors = []
        cri = [path for path in wanted if is_cri(path)]
        if cri and cri_off(base):
            errors.append(
                f"{show_path(cri[0])} is a setting for Kubernetes, and disabled_plugins switches "
                "that off here (Docker needs none of it): take it out of disabled_plugins, or "
                "leave the setting out"
            )
        errors.extend(
            f"{show_path(path)} is a setting of a plugin that disabled_plugins switches off"
            for path in wanted
            if path not in cri and len(path) > 1 and path[1] in base.disabled()
        )
        for path, value in wanted.items():
            known = self.record.wanted.get(path) == value
            if path[-1] == "BinaryName" and not known and not self.is_program(str(value)):
                errors.append(f"{show_path(path)} is {value}: no such program; install it first")
        if errors:
            raise ContainerdRefusedError("nothing was changed: " + "; ".join(errors))

    # -- what it becomes -----------------------------------------------------------------

    def _root(self, files: Files, version: int, spot: Place, wanted: bool) -> str | None:
        """The first file's text as it is to be."""
        text = files.root_text
        if wanted:
            if spot.add_import is None:
                return text
            return with_import(text or f"version = {version}\n", spot.add_import)
        pattern = self.record.added_import
        if text is None or pattern is None or self._others_need(files, pattern):
            return text
        left = without_import(text, pattern, self.record.former_imports)
        return None if self.record.made_root and set(parse(left)) <= {"version"} else left

    def _others_need(self, files: Files, pattern: str) -> bool:
        """Does somebody else's file come in by the import that we added?"""
        directory, _slash, end = pattern.rpartition("/")
        tail = end.lstrip("*")
        return any(
            name.endswith(tail) and not is_ours(name) for name in files.names_in.get(directory, ())
        )

    def _drop_in(
        self,
        files: Files,
        version: int,
        spot: Place,
        root: str | None,
        wanted: Leaves,
        base: Dump,
    ) -> tuple[str | None, Dump]:
        """The drop-in's text, and what containerd makes of everything then."""
        if not wanted:
            return None, base
        others = files.config.files if files.config else ()
        inside = content(wanted, version, others, not merges(self.state.release))
        difference = Difference((), ())
        for _round in range(_ROUNDS):
            text = render(inside)
            texts = {**files.texts, self.path: root or "", spot.drop_in: text}
            after = dump_of(texts, self.path, self.tool)
            difference = compare(base, after, wanted)
            lost = {
                path: base.leaves[path]
                for path in difference.lost
                if path[0] == "plugins" and path not in inside.leaves
            }
            if not lost or merges(self.state.release):
                break
            inside = inside.with_lost(_telling(lost) or lost)
        self._prove(wanted, after, files, spot, difference)
        missing = undefined_default(after)
        if missing and not cri_off(after):
            raise ContainerdRefusedError(
                f"default_runtime_name is {missing}, which no file defines: Kubernetes could start "
                "nothing. Define it under runtimes, or leave default_runtime out"
            )
        return text, after

    def _prove(
        self, wanted: Leaves, after: Dump, files: Files, spot: Place, difference: Difference
    ) -> None:
        wrong = []
        others = said(files.config.files) if files.config else {}
        for path, value in wanted.items():
            if not after.has(path, value):
                seen = after.value(path)
                shown = "nothing" if seen is None else by_key.show(path, seen)
                text = f"{show_path(path)} would be {shown}, wanted {by_key.show(path, value)}"
                if path in others and others[path].value == seen:
                    text += f"; {others[path].file} has it and is read after {spot.drop_in}"
                elif seen is None:
                    text += "; this containerd has no such setting"
                wrong.append(text)
        wrong.extend(f"{show_path(path)} would be lost" for path in difference.lost)
        wrong.extend(f"{show_path(path)} would come to be" for path in difference.new)
        if wrong:
            raise ContainerdRefusedError(
                "nothing was changed, because containerd config dump shows of the files to be: "
                + "; ".join(wrong[:10])
            )

    def _changes(
        self, files: Files, spot: Place, root: str | None, drop_in: str | None
    ) -> tuple[FileChange, ...]:
        """In the order in which they are safe to be written."""
        changes = []
        ours = self._our_file(spot)
        there = text_of(spot.drop_in)
        if drop_in is not None and there != drop_in:
            hidden = redact.redact(spot.drop_in, drop_in) != drop_in
            kept = self._kept_as(spot.drop_in, there)
            mode = 0o600 if hidden else None
            changes.append(FileChange(spot.drop_in, there, drop_in, mode, kept))
        if root != files.root_text:
            changes.append(FileChange(self.path, files.root_text, root))
        if ours is not None and (drop_in is None or ours[0] != spot.drop_in):
            kept = self._kept_as(ours[0], ours[1])
            changes.append(FileChange(ours[0], ours[1], None, kept_as=kept))
        return tuple(changes)

    def _kept_as(self, path: str, text: str | None) -> str | None:
        """Where a version that is not ours is kept."""
        if text is None or digest(text) == self.record.digest:
            return None
        # A run that was killed before it wrote the file has its record already.
        written = digest(text) in vouched.since(0).get(path, [])
        return None if written else path + ".steadygpu-conflict"


def _telling(lost: Mapping[Path, object]) -> Leaves:
    """Those of the lost settings that say something; the others come to be with their table."""
    return {path: value for path, value in lost.items() if value not in ("", 0, [], {}, False)}
