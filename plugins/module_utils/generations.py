# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Generations of the agent on a host: each a whole directory, one of them current.

    LIBDIR/<sha256>/   the zipapp of that digest, unpacked and compiled
    LIBDIR/current     a symlink to one of them
    BINDIR/steadygpu   a launcher that runs the current one

A generation is unpacked beside its place and gets its name by one rename; ``current`` is
switched by another. Whoever kills this code leaves the old state, the new state and
perhaps a directory with a dot, which the next run removes.
"""

from __future__ import annotations

import compileall
import fcntl
import hashlib
import json
import os
import re
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from shlex import quote
from typing import Any

from .atomic import fsync_directory, read_text, remove, write_atomic

MANIFEST = "MANIFEST.json"
CURRENT = "current"
LAUNCHER = "steadygpu"

_GENERATION = re.compile(r"[0-9a-f]{64}$")
_TEMPORARY = ".steadygpu-"
_LOCK = ".lock"
_LAUNCHER_MARK = "# Written by Ansible (steadygpu.host.agent_install)."


class GenerationError(Exception):
    """An artifact or a directory is not what it must be; the host is as it was."""


@dataclass(frozen=True)
class Layout:
    """Where generations live, and with which Python the launcher runs them."""

    libdir: str
    bindir: str
    python: str = sys.executable

    @property
    def current(self) -> str:
        """The symlink that names the generation in use."""
        return os.path.join(self.libdir, CURRENT)

    @property
    def launcher(self) -> str:
        """The command a person types."""
        return os.path.join(self.bindir, LAUNCHER)

    def generation(self, digest: str) -> str:
        """The directory of a generation, whether it is there or not."""
        return os.path.join(self.libdir, digest)


@dataclass(frozen=True)
class State:
    """What is installed. ``complete`` are digests whose files are all as built, newest first.

    ``damaged`` have the name of a generation and not its content; ``leftovers`` are names
    in the library directory from interrupted runs. ``launcher`` is the text of the
    launcher, None without one. ``linked``: there is a link ``current``, wherever it leads;
    ``current`` is None unless it leads to a complete generation.
    """

    current: str | None = None
    complete: list[str] = field(default_factory=list)
    damaged: list[str] = field(default_factory=list)
    leftovers: list[str] = field(default_factory=list)
    launcher: str | None = None
    linked: bool = False


@dataclass(frozen=True)
class Plan:
    """The steps from a state to the wanted one, in their order. An empty one changes nothing."""

    clean: list[str] = field(default_factory=list)
    unpack: bool = False
    switch: bool = False
    write_launcher: bool = False
    remove_entry: bool = False
    delete: list[str] = field(default_factory=list)


def launcher_text(layout: Layout) -> str:
    """The launcher. It follows ``current`` once, so that a running agent never mixes two.

    ``-I`` keeps the caller's environment and directory out of the agent.
    """
    return (
        "#!/bin/sh\n"
        f"{_LAUNCHER_MARK} Changes are overwritten.\n"
        f'exec {quote(layout.python)} -I "$(readlink -f {quote(layout.current)})" "$@"\n'
    )


def read(layout: Layout) -> State:
    """What is installed below ``layout``. Reads every file of every generation."""
    try:
        names = os.listdir(layout.libdir)
    except FileNotFoundError:
        names = []
    digests = [name for name in names if _GENERATION.match(name)]
    complete = [name for name in digests if is_complete(layout.generation(name))]
    complete.sort(key=lambda name: os.stat(layout.generation(name)).st_mtime_ns, reverse=True)
    target = os.readlink(layout.current) if os.path.islink(layout.current) else None
    return State(
        current=target if target in complete else None,
        complete=complete,
        damaged=sorted(set(digests) - set(complete)),
        leftovers=sorted(name for name in names if name.startswith(_TEMPORARY)),
        launcher=read_text(layout.launcher),
        linked=target is not None,
    )


def is_complete(directory: str) -> bool:
    """Does the directory hold every file its manifest lists, with the content it lists?"""
    try:
        with open(os.path.join(directory, MANIFEST), encoding="utf-8") as handle:
            files = json.load(handle)["files"]
        return all(
            file_digest(os.path.join(directory, name)) == digest for name, digest in files.items()
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False


def version(directory: str) -> str | None:
    """The version a generation's manifest names; None without a readable one."""
    try:
        return str(json.loads(read_text(os.path.join(directory, MANIFEST)) or "")["version"])
    except (ValueError, KeyError, TypeError):
        return None


def plan(state: State, layout: Layout, digest: str, keep: int) -> Plan:
    """What makes ``digest`` current and leaves ``keep`` generations. Pure.

    The generation that was current is the first one worth keeping: it is known to work.
    Raises GenerationError when something of somebody else is in the launcher's place.
    """
    _refuse_foreign_launcher(state, layout)
    others = [name for name in state.complete if name != digest]
    others.sort(key=lambda name: name != state.current)
    return Plan(
        clean=state.leftovers,
        unpack=digest not in state.complete,
        switch=state.current != digest,
        write_launcher=state.launcher != launcher_text(layout),
        delete=others[keep - 1 :] + [name for name in state.damaged if name != digest],
    )


def plan_removal(state: State, layout: Layout) -> Plan:
    """What removes every trace. Raises GenerationError for a launcher that is not ours."""
    _refuse_foreign_launcher(state, layout)
    return Plan(
        clean=state.leftovers,
        remove_entry=state.launcher is not None or state.linked,
        delete=state.complete + state.damaged,
    )


def _refuse_foreign_launcher(state: State, layout: Layout) -> None:
    if state.launcher is not None and _LAUNCHER_MARK not in state.launcher:
        raise GenerationError(
            f"{layout.launcher} exists and was not written by this collection; wanted is no file "
            "or our launcher. Move it away, or set bindir to another directory"
        )


def describe(steps: Plan, layout: Layout, digest: str) -> list[str]:
    """The steps as sentences for a person; [] when there is nothing to do."""
    told = [f"remove {name}, left behind by an interrupted run" for name in steps.clean]
    if steps.unpack:
        told.append(f"unpack generation {digest[:12]} below {layout.libdir}")
    if steps.write_launcher:
        told.append(f"write {layout.launcher}")
    if steps.switch:
        told.append(f"make {digest[:12]} the current generation")
    if steps.remove_entry:
        told.append(f"remove {layout.launcher} and {layout.current}")
    told += [f"delete generation {name[:12]}" for name in steps.delete]
    return told


def install(layout: Layout, digest: str, keep: int, artifact: str | None) -> None:
    """Make ``digest`` the current generation. ``artifact`` is the zipapp if it is not there.

    Raises GenerationError for an artifact that is not the wanted one or a launcher that is
    not ours, OSError for a disk that is full or read-only. The switch is the last step that
    matters, so in all these cases the current generation is still the old one; only old ones
    that cannot be deleted are found after it.
    """
    plan(read(layout), layout, digest, keep)  # refuses before anything is created
    os.makedirs(layout.libdir, mode=0o755, exist_ok=True)
    with _locked(layout):
        steps = plan(read(layout), layout, digest, keep)
        _clean(layout, steps.clean)
        if steps.unpack:
            if artifact is None:
                raise GenerationError(
                    f"generation {digest} is not complete below {layout.libdir} and no artifact "
                    "came with the task. Run the task again"
                )
            _unpack(layout, digest, artifact)
        if steps.write_launcher:
            write_atomic(layout.launcher, launcher_text(layout), mode=0o755)
        if steps.switch:
            _switch(layout, digest)
        for name in steps.delete:
            _delete(layout, name)


def uninstall(layout: Layout) -> None:
    """Remove every trace, the launcher first: no command may point into nothing.

    Raises GenerationError for a launcher that is not ours; then nothing was touched.
    """
    plan_removal(read(layout), layout)
    os.makedirs(layout.libdir, mode=0o755, exist_ok=True)
    with _locked(layout):
        steps = plan_removal(read(layout), layout)
        _clean(layout, steps.clean)
        remove(layout.launcher)
        remove(layout.current)
        for name in steps.delete:
            _delete(layout, name)
        remove(os.path.join(layout.libdir, _LOCK))
    if not os.listdir(layout.libdir):
        os.rmdir(layout.libdir)


@contextmanager
def _locked(layout: Layout) -> Iterator[None]:
    """Two plays at once take turns. The kernel gives the lock back when we are killed."""
    with open(os.path.join(layout.libdir, _LOCK), "w", encoding="utf-8") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _unpack(layout: Layout, digest: str, artifact: str) -> None:
    found = file_digest(artifact)
    if found != digest:
        raise GenerationError(
            f"{artifact} has sha256 {found}, wanted {digest}: it was damaged on its way or changed "
            "on the controller meanwhile. Run the task again"
        )
    temporary = tempfile.mkdtemp(prefix=_TEMPORARY, dir=layout.libdir)
    try:
        _extract(artifact, temporary)
        if not compileall.compile_dir(temporary, quiet=2, ddir=layout.generation(digest)):
            raise GenerationError(
                f"Python {sys.version.split()[0]} ({layout.python}) cannot compile the agent; "
                "wanted is Python 3.9 or newer. Set ansible_python_interpreter for this host"
            )
        _settle(temporary)
        if os.path.lexists(layout.generation(digest)):
            _delete(layout, digest)  # damaged: a complete one would not be unpacked
        os.rename(temporary, layout.generation(digest))
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    fsync_directory(layout.libdir)


def _extract(artifact: str, directory: str) -> None:
    """Unpack an agent artifact, and nothing else, into an empty directory."""
    try:
        with zipfile.ZipFile(artifact) as archive:
            for entry in archive.infolist():
                _refuse_outside(entry.filename, artifact)
            archive.extractall(directory)
    except zipfile.BadZipFile as error:
        raise GenerationError(
            f"{artifact} is no zipapp: {error}. Build it with: make agent"
        ) from error
    if not is_complete(directory):
        raise GenerationError(
            f"{artifact} is no agent artifact: its {MANIFEST} is missing or does not fit its "
            "files. Build it with: make agent"
        )


def _refuse_outside(name: str, artifact: str) -> None:
    if name.startswith("/") or "\\" in name or ".." in name.split("/"):
        raise GenerationError(
            f"{artifact} holds the entry {name!r}, which would be written outside its directory; "
            "wanted are relative names. Do not use this file; build one with: make agent"
        )


def _switch(layout: Layout, digest: str) -> None:
    """Point ``current`` at a generation: a new symlink renamed over the old one."""
    temporary = os.path.join(layout.libdir, f"{_TEMPORARY}{CURRENT}")
    remove(temporary)
    os.symlink(digest, temporary)
    os.replace(temporary, layout.current)
    fsync_directory(layout.libdir)


def _delete(layout: Layout, name: str) -> None:
    """Take the name away first: half a generation must not look like one."""
    doomed = os.path.join(layout.libdir, f"{_TEMPORARY}delete-{name}")
    shutil.rmtree(doomed, ignore_errors=True)
    os.rename(layout.generation(name), doomed)
    shutil.rmtree(doomed)


def _clean(layout: Layout, leftovers: list[str]) -> None:
    for name in leftovers:
        path = os.path.join(layout.libdir, name)
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path)
        else:
            remove(path)


def _settle(directory: str) -> None:
    """Readable for everybody whatever the umask, and on the disk before the rename."""
    for parent, _directories, files in os.walk(directory):
        os.chmod(parent, 0o755)
        for name in files:
            with open(os.path.join(parent, name), "rb") as handle:
                os.fchmod(handle.fileno(), 0o644)
                os.fsync(handle.fileno())
        fsync_directory(parent)


def file_digest(path: str) -> str:
    """The sha256 of a file in hexadecimal. Raises OSError."""
    digest = hashlib.sha256()
    with open(path, "rb") as handle:
        for chunk in iter(lambda: handle.read(1 << 20), b""):
            digest.update(chunk)
    return digest.hexdigest()


def diff(before: State, steps: Plan, digest: str) -> dict[str, dict[str, Any]]:
    """``before`` and ``after`` of a plan, as far as a person wants to see them."""
    kept = set(before.complete) - set(steps.delete)
    gone = steps.remove_entry
    return {
        "before": _shown(before.current, set(before.complete), before.launcher is not None),
        "after": _shown(
            digest if steps.switch else None if gone else before.current,
            kept | {digest} if steps.unpack else kept,
            steps.write_launcher or (before.launcher is not None and not gone),
        ),
    }


def _shown(current: str | None, digests: set[str], launcher: bool) -> dict[str, Any]:
    return {"current": current, "generations": sorted(digests), "launcher": launcher}
