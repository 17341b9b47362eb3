# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Look at the programs of runtimes: where they are, who owns them, what they say of themselves."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping

from ..packages import Installed
from ..process import CommandMissingError, find_program, run
from .runtimes import Program


def look(asked: str, installed: Installed, deadline_s: float = 10.0) -> Program:
    """What is known of a program by its path or name. Never fails."""
    path = find_program(asked)
    if path is None:
        return Program(asked)
    writable = _writable(path)
    # What anybody may have put there is not run, not even to ask.
    said = "" if writable else _said(path, deadline_s)
    package = owner(path, installed.manager, deadline_s)
    known = installed.packages.get(package)
    return Program(
        asked,
        path,
        said,
        package if known else "",
        known.version if known else "",
        writable,
    )


def _said(path: str, deadline_s: float) -> str:
    try:
        done = run([path, "--version"], deadline_s)
    except (CommandMissingError, OSError):
        # A script for an interpreter that is not there, or a program for another machine.
        return ""
    return done.stdout + done.stderr


def owner(path: str, manager: str | None, deadline_s: float = 10.0) -> str:
    """The package that a file belongs to; "" for none."""
    for spelling in dict.fromkeys((path, os.path.realpath(path), _unmerged(path))):
        if manager == "dpkg":
            done = run(["dpkg-query", "-S", spelling], deadline_s)
            name = done.stdout.partition(": ")[0].partition(",")[0].partition(":")[0]
        elif manager == "rpm":
            done = run(["rpm", "-qf", "--qf", "%{NAME}\n", spelling], deadline_s)
            name = done.stdout.partition("\n")[0]
        else:
            return ""
        if done.ok and name and not name.startswith("diversion "):
            return name
    return ""


def _unmerged(path: str) -> str:
    """The path as dpkg knows files of old packages below /sbin, which is a link to /usr/sbin."""
    return path[len("/usr") :] if path.startswith(("/usr/sbin/", "/usr/bin/")) else path


def _writable(path: str) -> bool:
    """May everybody change what is run? A sticky directory keeps its files."""
    real = os.path.realpath(path)
    try:
        mode, above = os.stat(real).st_mode, os.stat(os.path.dirname(real)).st_mode
    except OSError:
        return False
    return bool(mode & stat.S_IWOTH) or bool(above & stat.S_IWOTH and not above & stat.S_ISVTX)


def all_of(
    definitions: Mapping[str, str | None], installed: Installed, deadline_s: float
) -> dict[str, Program]:
    """The programs of several runtimes by name of the runtime, each looked at once."""
    seen: dict[str, Program] = {}
    found = {}
    for name, asked in definitions.items():
        if asked:
            if asked not in seen:
                seen[asked] = look(asked, installed, deadline_s)
            found[name] = seen[asked]
    return found
