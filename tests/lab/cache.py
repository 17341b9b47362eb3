# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The cache directory: entries named after the content that made them, locked, bounded.

Layout under ``$XDG_CACHE_HOME/steadygpu/lab`` (shared by all checkouts of a user)::

    rootfs/    <suite>-<key>/          an unpacked Debian, as a tar
    images/    <suite>-<key>/          a bootable disk, its kernel and initrd
    frozen/    <suite>-<key>/          an image's machine, booted once and stopped
    snapshots/ <checkout>-<name>/      the same, made from a host by a user
    hosts/     <checkout>-<name>/      a running host; never collected while it runs
    ssh/ kvm/ locks/                   small state

An entry is complete or absent: it is made in a directory beside it and renamed. Its
``entry.json`` lists in ``needs`` the entries its files refer to (a qcow2 and its backing file).
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import stat
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .console import LabError, say

LIMIT_VARIABLE = "STEADYGPU_LAB_CACHE_GIB"
DEFAULT_LIMIT_GIB = 12.0

# What the collector may delete, and in which order entries of equal age go: what is made
# from others goes first.
COLLECTED = ("snapshots", "frozen", "images", "rootfs")

_MANIFEST = "entry.json"
_BUILDING = ".building-"


@dataclass(frozen=True)
class Entry:
    """One complete directory of the cache. ``ident`` is ``kind/name``."""

    ident: str
    path: Path
    manifest: Mapping[str, Any]

    @property
    def needs(self) -> list[str]:
        """The entries whose files this one's files refer to, directly."""
        return list(self.manifest.get("needs", []))

    def size(self) -> int:
        """Bytes on disk; files with holes count what they really take."""
        return sum(item.lstat().st_blocks * 512 for item in self.path.rglob("*"))

    def used_at(self) -> float:
        """When the entry was last used, in seconds since the epoch."""
        return (self.path / _MANIFEST).stat().st_mtime


def key(*parts: Any) -> str:
    """12 hex digits that stand for the JSON of ``parts``."""
    text = json.dumps(parts, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def tree_digest(*roots: Path) -> str:
    """A digest of every file below ``roots``: path, kind, content. Bytecode is left out."""
    digest = hashlib.sha256()
    for root in roots:
        files = [root] if root.is_file() else sorted(root.rglob("*"))
        for path in files:
            if "__pycache__" in path.parts or not (path.is_file() or path.is_symlink()):
                continue
            content = os.readlink(path).encode() if path.is_symlink() else path.read_bytes()
            name = path.relative_to(root.parent)
            head = f"{name} {_git_mode(path.lstat().st_mode):o} {len(content)}\n"
            digest.update(head.encode() + content)
    return digest.hexdigest()


def _git_mode(mode: int) -> int:
    """A file's mode as git keeps it: two checkouts under different umasks are the same."""
    if stat.S_ISLNK(mode):
        return 0o120777
    return 0o100755 if mode & stat.S_IXUSR else 0o100644


class Cache:
    """The directory, its locks and its entries."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @classmethod
    def of_user(cls, environ: Mapping[str, str]) -> Cache:
        """The cache of the user whose environment this is; created when missing."""
        base = environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
        root = Path(base) / "steadygpu" / "lab"
        try:
            root.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise LabError(
                f"cannot create the lab's cache {root}: {error.strerror}; set XDG_CACHE_HOME "
                "to a writable directory"
            ) from error
        return cls(root)

    def directory(self, name: str) -> Path:
        """A sub-directory for small state, created when missing."""
        path = self.root / name
        path.mkdir(exist_ok=True, mode=0o700)
        return path

    @contextlib.contextmanager
    def lock(self, name: str, shared: bool = False, wait: bool = True) -> Iterator[None]:
        """Hold a named lock across processes; it ends with the process that holds it.

        Raises BlockingIOError when ``wait`` is false and somebody else holds it.
        """
        path = self.directory("locks") / (name.replace("/", "+") + ".lock")
        mode = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
        with open(path, "w", encoding="utf-8") as handle:
            try:
                fcntl.flock(handle, mode | fcntl.LOCK_NB)
            except BlockingIOError:
                if not wait:
                    raise
                say(f"waiting for another process of the lab ({name})")
                fcntl.flock(handle, mode)
            yield

    def in_use(self) -> contextlib.AbstractContextManager[None]:
        """While held, the collector deletes nothing: entries found stay until a host has them."""
        return self.lock("collector", shared=True)

    def find(self, ident: str, touch: bool = True) -> Entry | None:
        """A complete entry, marked as used now, or None."""
        path = self.root / ident
        try:
            manifest = json.loads((path / _MANIFEST).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        entry = Entry(ident, path, manifest)
        if touch:
            for used in [ident, *self.closure([ident])]:
                with contextlib.suppress(OSError):
                    os.utime(self.root / used / _MANIFEST)
        return entry

    def entries(self, kind: str) -> list[Entry]:
        """All complete entries of a kind, the most recently used first."""
        names = sorted(os.listdir(self.root / kind)) if (self.root / kind).is_dir() else []
        found = [self.find(f"{kind}/{name}", touch=False) for name in names]
        present = [entry for entry in found if entry is not None]
        return sorted(present, key=lambda entry: entry.used_at(), reverse=True)

    def closure(self, idents: Iterable[str]) -> set[str]:
        """``idents`` and everything they need, however indirectly."""
        seen: set[str] = set()
        todo = list(idents)
        while todo:
            ident = todo.pop()
            if ident not in seen:
                seen.add(ident)
                entry = self.find(ident, touch=False)
                todo += entry.needs if entry else []
        return seen

    @contextlib.contextmanager
    def building(self, ident: str, manifest: dict[str, Any]) -> Iterator[Path]:
        """A directory that becomes the entry ``ident`` when the block ends without an error.

        The caller holds the lock named after ``ident``, so leftovers of a builder that was
        killed can be removed. An entry of that name is replaced.
        """
        final = self.root / ident
        final.parent.mkdir(parents=True, exist_ok=True)
        for leftover in final.parent.glob(final.name + _BUILDING + "*"):
            shutil.rmtree(leftover, ignore_errors=True)
        work = final.parent / (final.name + _BUILDING + uuid.uuid4().hex[:8])
        work.mkdir(mode=0o755)
        try:
            yield work
            text = json.dumps(manifest, indent=1, sort_keys=True)
            (work / _MANIFEST).write_text(text + "\n", encoding="utf-8")
            if final.exists():
                former = work.with_name(work.name + "-former")
                final.rename(former)
                work.rename(final)
                shutil.rmtree(former)
            else:
                work.rename(final)
        finally:
            shutil.rmtree(work, ignore_errors=True)

    def remove(self, entry: Entry) -> None:
        """Delete an entry; it is no entry any more from the first moment on."""
        with contextlib.suppress(FileNotFoundError):
            (entry.path / _MANIFEST).unlink()
        shutil.rmtree(entry.path, ignore_errors=True)

    def require_free(self, wanted_mib: int, purpose: str) -> None:
        """Raise LabError unless the cache's file system has room."""
        free_mib = shutil.disk_usage(self.root).free >> 20
        if free_mib < wanted_mib:
            raise LabError(
                f"{purpose} needs {wanted_mib} MiB of disk and {self.root} has {free_mib} MiB "
                "free; free some, run `python3 tests/lab gc`, or set XDG_CACHE_HOME to a larger "
                "disk"
            )

    def collect(
        self, limit_bytes: int, protected: Callable[[], Iterable[str]], wait: bool = False
    ) -> list[str]:
        """Delete least recently used entries until the rest fits; returns what went.

        Nothing that ``protected`` names or that this needs goes, whatever the size; it is asked
        when no host can start any more. An entry others are made from takes them along. Does
        nothing while a host is being started elsewhere, unless ``wait``.
        """
        try:
            with self.lock("collector", wait=wait):
                return self._collect(limit_bytes, self.closure(protected()))
        except BlockingIOError:
            return []

    def _sweep(self) -> None:
        """Remove what builders that were killed left: nobody holds their entry's lock."""
        for kind in COLLECTED:
            for path in (self.root / kind).glob("*" + _BUILDING + "*"):
                ident = f"{kind}/{path.name.partition(_BUILDING)[0]}"
                with contextlib.suppress(BlockingIOError), self.lock(ident, wait=False):
                    shutil.rmtree(path, ignore_errors=True)

    def _collect(self, limit_bytes: int, protected: set[str]) -> list[str]:
        self._sweep()
        entries = {e.ident: e for kind in COLLECTED for e in self.entries(kind)}
        sizes = {ident: entry.size() for ident, entry in entries.items()}
        oldest_first = sorted(entries.values(), key=lambda e: int(e.used_at()))
        removed: list[str] = []
        for candidate in oldest_first:
            if sum(sizes.values()) <= limit_bytes:
                break
            doomed = [i for i in sizes if candidate.ident in self.closure([i])]
            if candidate.ident not in sizes or protected.intersection(doomed):
                continue
            for ident in sorted(doomed, key=lambda i: COLLECTED.index(i.split("/")[0])):
                self.remove(entries[ident])
                del sizes[ident]
                removed.append(ident)
        return removed


def limit_bytes(environ: Mapping[str, str]) -> int:
    """The bound of the cache from STEADYGPU_LAB_CACHE_GIB, or the default of 12 GiB."""
    text = environ.get(LIMIT_VARIABLE) or str(DEFAULT_LIMIT_GIB)
    try:
        gib = float(text)
        if not 0 < gib < float("inf"):
            raise ValueError(text)
    except ValueError:
        raise LabError(
            f"{LIMIT_VARIABLE}={text!r} is not a size; give a number of GiB above 0"
        ) from None
    return int(gib * 2**30)
