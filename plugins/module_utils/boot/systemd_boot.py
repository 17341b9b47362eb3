# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""systemd-boot with kernel-install: /etc/kernel/cmdline, and an entry for each kernel.

kernel-install(8): entries that are made take their parameters from that file. It belongs to
everybody, so words are added to it and taken from it, and nothing else in it changes.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass

from .. import vouched
from ..atomic import read_text
from ..process import CommandMissingError
from . import words
from .model import BootError, Machine

CMDLINE = "/etc/kernel/cmdline"
ENTRIES = tuple(f"{boot}/loader/entries" for boot in ("/efi", "/boot", "/boot/efi"))
_DEADLINE_S = 300.0
_OPTIONS = re.compile(r"^options\s+(.*)$", re.MULTILINE)
# What kernel-install adds by itself.
_GENERATED = "systemd.machine_id="
_VERSION = re.compile(r"^version\s+(\S+)\s*$", re.MULTILINE)


@dataclass(frozen=True)
class SystemdBoot:
    """The boot loader of this kind."""

    machine: Machine
    name: str = "systemd-boot"

    def others(self, ours: Sequence[str]) -> list[tuple[str, str]]:
        """Each word of the file that is not ours."""
        return [(word, CMDLINE) for word in words.without(self._line(), ours)]

    def given(self, ours: Sequence[str]) -> set[str]:
        """What entries have without ours."""
        return set(words.without(self._line(), ours))

    def files(self, parameters: Sequence[str]) -> dict[str, str | None]:
        """It has no file of ours."""
        return {}

    def due(self, parameters: Sequence[str], gone: Sequence[str]) -> list[str]:
        """What is still to be done so that the next boot is as wanted."""
        actions = []
        line, wanted = self._line(), self._wanted(parameters, gone)
        if line != wanted:
            added, taken = words.without(wanted, line), words.without(line, wanted)
            said = [f"add {word}" for word in added] + [f"take out {word}" for word in taken]
            actions.append(f"{CMDLINE}: {', '.join(said)}")
        stale = self._stale(parameters, gone)
        return actions + [f"run kernel-install add {version}" for version in stale]

    def apply(self, parameters: Sequence[str], gone: Sequence[str]) -> None:
        """Change the file, and make the entries anew. Raises BootError and OSError."""
        wanted = self._wanted(parameters, gone)
        if self._line() != wanted:
            text = " ".join(wanted) + "\n"
            vouched.write(_below(self.machine.root, CMDLINE), text, root=self.machine.root)
        for version in self._stale(parameters, gone):
            self._install(version)
        stale = self._stale(parameters, gone)
        if stale:
            raise BootError(
                f"kernel-install ran, and the entries of {', '.join(stale)} are not as wanted: "
                "look at kernel-install inspect, and whether it makes unified kernel images, which "
                "have their parameters inside"
            )

    def make(self) -> None:
        """Make the entries that differ from the file anew. Raises BootError."""
        for version in self._differing():
            self._install(version)

    def out_of_date(self) -> bool:
        """Does an entry differ from what the file says, whoever changed it?"""
        return bool(self._differing())

    def entries(self) -> int:
        """How many kernels can be started."""
        return len(self._entries())

    def _install(self, version: str) -> None:
        places = (f"/lib/modules/{version}/vmlinuz", f"/boot/vmlinuz-{version}")
        image = [one for one in places if os.path.exists(_below(self.machine.root, one))]
        if not image:
            raise BootError(f"no image of kernel {version} is at {' or '.join(places)}")
        argv = ["kernel-install", "add", version, image[0]]
        initrd = f"/boot/initrd.img-{version}"
        if os.path.exists(_below(self.machine.root, initrd)):
            argv.append(initrd)
        try:
            done = self.machine.run(argv, deadline_s=_DEADLINE_S)
        except CommandMissingError as error:
            raise BootError(str(error)) from error
        if not done.ok:
            raise BootError(f"{' '.join(argv)} failed:\n{done.said}")

    def _line(self) -> list[str]:
        return words.split(read_text(_below(self.machine.root, CMDLINE)) or "")

    def _wanted(self, parameters: Sequence[str], gone: Sequence[str]) -> list[str]:
        line = self._line()
        unwanted = [word for word in gone if word not in parameters]
        kept = words.without(line, unwanted)
        return kept + words.without(parameters, kept)

    def _differing(self) -> list[str]:
        expected = set(self._line())
        return sorted(
            version
            for version, line in self._entries().items()
            if {word for word in line if not word.startswith(_GENERATED)} != expected
        )

    def _stale(self, parameters: Sequence[str], gone: Sequence[str]) -> list[str]:
        unwanted = {word for word in gone if word not in parameters}
        return sorted(
            version
            for version, line in self._entries().items()
            if not set(parameters) <= set(line) or unwanted & set(line)
        )

    def _entries(self) -> dict[str, list[str]]:
        found = {}
        for directory in ENTRIES:
            for path in sorted(glob.glob(os.path.join(_below(self.machine.root, directory), "*"))):
                text = read_text(path) if path.endswith(".conf") else None
                version = _VERSION.search(text or "")
                if text and version:
                    line = " ".join(_OPTIONS.findall(text))
                    found[version.group(1)] = words.split(line)
        return found


def _below(root: str, path: str) -> str:
    return os.path.join(root, path.lstrip("/"))
