# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A systemd unit, slice or drop-in as it is written. Pure."""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass

from ..model import Position
from .commands import CommandLine


@dataclass(frozen=True)
class Setting:
    """One assignment: ``value`` has its continuation lines joined by blanks; ``at`` is the key."""

    section: str
    key: str
    value: str
    at: Position


@dataclass(frozen=True)
class UnitFile:
    """One unit file. ``settings`` are in the order of the file, also those that are set again.

    ``commands`` are the commands of its Exec lines; docker run lines among them are documents of
    their own as well. Specifiers (``%n``) stay as they are written.
    """

    at: Position
    settings: tuple[Setting, ...] = ()
    commands: tuple[CommandLine, ...] = ()

    @property
    def drop_in(self) -> bool:
        """Is it a drop-in: a file ``x.conf`` in a directory ``y.service.d``?"""
        return posixpath.dirname(self.at.file).endswith(".d")

    @property
    def unit(self) -> str:
        """The unit it is about, ``docker.service``; "" when the name of the file does not say."""
        directory, name = posixpath.split(self.at.file)
        if self.drop_in:
            name = posixpath.basename(directory)[: -len(".d")]
        return name if re.search(r"\.(service|slice|scope|socket|path|timer|mount)$", name) else ""

    def all(self, section: str, key: str) -> tuple[Setting, ...]:
        """The assignments of a key that count: an empty one takes back those before it."""
        found: list[Setting] = []
        for setting in self.settings:
            if (setting.section, setting.key) == (section, key):
                found = [*found, setting] if setting.value else []
        return tuple(found)

    def last(self, section: str, key: str) -> Setting | None:
        """The last assignment of a key, also when it is empty."""
        same = [s for s in self.settings if (s.section, s.key) == (section, key)]
        return same[-1] if same else None

    def named(self, name: str) -> tuple[CommandLine, ...]:
        """The commands of a program, ``dockerd``."""
        return tuple(command for command in self.commands if command.name == name)
