# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Kernel modules: loaded at boot, kept away, given options. Our files, and what others wrote."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterator, Sequence

from ..atomic import read_text
from ..process import CommandMissingError
from ..settings.files import header
from . import needed, parameters
from .model import BootError, Machine, Wish

OPTIONS = "/etc/modprobe.d/steadygpu.conf"
LOAD = "/etc/modules-load.d/steadygpu.conf"
# In kmod's order: of files of one name only the first counts.
_DIRECTORIES = (
    "etc/modprobe.d",
    "run/modprobe.d",
    "usr/local/lib/modprobe.d",
    "usr/lib/modprobe.d",
    "lib/modprobe.d",
)
_NAME = re.compile(r"[A-Za-z0-9_-]+")
_VALUE = re.compile(r"[^\s\"'\\#]*")
_DEADLINE_S = 60.0


def options_text(wish: Wish) -> str | None:
    """Our file in modprobe.d; None where nothing is to be in it."""
    lines = [f"blacklist {name}" for name in wish.blacklist]
    for module, pairs in sorted(wish.options.items()):
        said = " ".join(f"{name}={value}" if value else name for name, value in pairs)
        lines.append(f"options {module} {said}")
    for module, softdep in sorted(wish.softdeps.items()):
        parts = [f"softdep {module}"]
        parts += ["pre: " + " ".join(softdep.pre)] if softdep.pre else []
        parts += ["post: " + " ".join(softdep.post)] if softdep.post else []
        lines.append(" ".join(parts))
    return _text(lines)


def load_text(wish: Wish) -> str | None:
    """Our file in modules-load.d; None where nothing is to be in it."""
    return _text(list(wish.modules))


def concerned(wish: Wish) -> list[str]:
    """The modules whose lines in modprobe.d count already in the initramfs, if they are in it."""
    return sorted({*wish.blacklist, *wish.options, *wish.softdeps})


def spoken_of(root: str = "/") -> list[str]:
    """The same, of our file as it is on the host."""
    lines = [line.split() for line in _read(os.path.join(root, OPTIONS.lstrip("/"))).splitlines()]
    return sorted({line[1] for line in lines if len(line) > 1 and not line[0].startswith("#")})


def faults(wish: Wish, machine: Machine) -> list[str]:
    """Why this is not written, one sentence each; reads the host, changes nothing."""
    found = _form(wish)
    if found:
        return found
    found += [
        f"{name} is to be loaded and to be kept away: take it from one of the two lists"
        for name in wish.modules
        if _same(name) in map(_same, wish.blacklist)
    ]
    found += [why for name in wish.blacklist for why in needed.why(name, machine.root)]
    found += _contradicted(wish, machine.root)
    found += _unknown(wish, machine)
    return found + [why for name in wish.modules for why in _why_not_loadable(name, machine)]


def load(name: str, machine: Machine) -> None:
    """Load a module now. Raises BootError in the kernel's words."""
    done = machine.run(["modprobe", name], deadline_s=_DEADLINE_S)
    if not done.ok:
        raise BootError(f"the kernel did not load the module {name}:\n{done.said}")


def prove(wish: Wish, machine: Machine) -> None:
    """Ask modprobe whether it has read our lines. Raises BootError."""
    text = options_text(wish)
    if text is None:
        return
    try:
        done = machine.run(["modprobe", "--showconfig"], deadline_s=_DEADLINE_S)
    except CommandMissingError as error:
        raise BootError(f"{error}: without it nothing reads {OPTIONS}") from error
    known = {_line(line) for line in done.stdout.splitlines()}
    missing = [line for line in text.splitlines()[1:] if _line(line) not in known]
    if missing:
        raise BootError(
            f"{OPTIONS} is written, and modprobe --showconfig does not have {'; '.join(missing)}: "
            "look at the files in /etc/modprobe.d"
        )


def _text(lines: Sequence[str]) -> str | None:
    return header("kernel") + "\n".join(lines) + "\n" if lines else None


def _form(wish: Wish) -> list[str]:
    names = [*wish.modules, *wish.blacklist, *wish.options, *wish.softdeps]
    for softdep in wish.softdeps.values():
        names += [*softdep.pre, *softdep.post]
    found = [f"{name!r} is no name of a module" for name in names if not _NAME.fullmatch(name)]
    for module, pairs in wish.options.items():
        found += [
            f"the option {name!r} = {value!r} of {module}: wanted a name, and a value without "
            "blanks, quotes, # and \\"
            for name, value in pairs
            if not _NAME.fullmatch(name) or not _VALUE.fullmatch(value)
        ]
        if not pairs:
            found.append(f"the options of {module} are empty: leave the module out")
    found += [
        f"the softdep of {module} names no module before or after it"
        for module, softdep in wish.softdeps.items()
        if not softdep.pre and not softdep.post
    ]
    return found


def _why_not_loadable(name: str, machine: Machine) -> Iterator[str]:
    if parameters.is_there(name, machine.root):
        return
    try:
        done = machine.run(["modprobe", "--dry-run", "--quiet", name], deadline_s=_DEADLINE_S)
    except CommandMissingError as error:
        yield f"{name} cannot be loaded: {error}"
        return
    if not done.ok:
        release = _read(os.path.join(machine.root, "proc/sys/kernel/osrelease")).strip()
        yield (
            f"the running kernel {release} has no module {name}: install the package that brings "
            "it, or take it from the list"
        )


def _contradicted(wish: Wish, root: str) -> Iterator[str]:
    """Lines of others that say something else of the same thing."""
    wanted = {
        (_same(module), name): value
        for module, pairs in wish.options.items()
        for name, value in pairs
    }
    for path, fields in _others(root):
        if fields[0] == "blacklist" and len(fields) == 2:
            for name in wish.modules:
                if _same(name) == _same(fields[1]):
                    yield (
                        f"{path} has blacklist {fields[1]}, so that systemd-modules-load does not "
                        f"load {name} at boot: take the line out{_by_hand(path)}"
                    )
        if fields[0] == "options":
            for word in fields[2:]:
                name, _equals, value = word.partition("=")
                ours = wanted.get((_same(fields[1]), name))
                if ours is not None and not parameters.same(value, ours):
                    yield (
                        f"{path} gives {fields[1]} {word}, and {name}={ours} is wanted: which "
                        "one counts depends on the order of the files; take that word out"
                        f"{_by_hand(path)}"
                    )


def _unknown(wish: Wish, machine: Machine) -> Iterator[str]:
    """Options that a module does not have: the kernel leaves them out with a line in its log."""
    for module, pairs in sorted(wish.options.items()):
        try:
            done = machine.run(["modinfo", "--field=parm", module], deadline_s=_DEADLINE_S)
        except CommandMissingError:
            return
        known = {line.partition(":")[0] for line in done.stdout.splitlines()}
        for name, value in pairs if done.ok else ():
            if name not in known:
                said = f"{name}={value}" if value else name
                yield f"{module} has no option {said}: see modinfo -p {module}"


def _others(root: str) -> Iterator[tuple[str, list[str]]]:
    seen = set()
    for directory in _DIRECTORIES:
        for path in sorted(glob.glob(os.path.join(glob.escape(root), directory, "*.conf"))):
            shown = "/" + os.path.relpath(path, root)
            name = os.path.basename(path)
            if shown == OPTIONS or name in seen:
                continue
            seen.add(name)
            for line in _read(path).splitlines():
                fields = line.split("#", 1)[0].split()
                if len(fields) > 1:
                    yield shown, fields


def _by_hand(path: str) -> str:
    """How to change what a package brought."""
    if path.startswith("/etc/"):
        return ""
    return f", in a copy that you put into /etc/modprobe.d as {os.path.basename(path)}"


def _same(name: str) -> str:
    return name.replace("-", "_")


def _line(line: str) -> tuple[str, ...]:
    """A line as modprobe understands it: it writes names with ``_``.

    kmod 34 prints a softdep's ``post:`` without the blank before it.
    """
    fields = line.replace("post:", " post:").split()
    return tuple(_same(field) if "=" not in field else field for field in fields)


def _read(path: str) -> str:
    try:
        return read_text(path) or ""
    except OSError:
        return ""
