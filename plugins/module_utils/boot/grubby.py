# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Boot loader entries that grubby keeps, as on RHEL and its kin.

``--args=KEY=VALUE`` gives KEY another value where an entry has it, also of a parameter that may be
there several times. What others gave would be gone, ``rd.lvm.lv`` of the root file system as well.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from ..process import CommandMissingError
from . import words
from .model import BootError, Machine

_DEADLINE_S = 120.0
_ARGS = re.compile(r"^args=(.*)$", re.MULTILINE)


@dataclass(frozen=True)
class Grubby:
    """The boot loader of this kind. What grubby does for ALL, new kernels get as well."""

    machine: Machine
    name: str = "grubby"

    def others(self, ours: Sequence[str]) -> list[tuple[str, str]]:
        """Each word of an entry that is not ours."""
        found: dict[str, str] = {}
        for line in self._lines():
            for word in words.without(line, ours):
                found.setdefault(word, "the boot loader's entries (grubby --info=ALL)")
        return list(found.items())

    def given(self, ours: Sequence[str]) -> set[str]:
        """What every entry has without ours."""
        lines = [set(words.without(line, ours)) for line in self._lines()]
        return set.intersection(*lines) if lines else set()

    def files(self, parameters: Sequence[str]) -> dict[str, str | None]:
        """It has no file of ours."""
        return {}

    def due(self, parameters: Sequence[str], gone: Sequence[str]) -> list[str]:
        """What is still to be done so that the next boot is as wanted."""
        missing, unwanted = self._difference(parameters, gone)
        self._refuse(missing, unwanted)
        return [f"run {' '.join(_argv(missing, unwanted))}"] if missing or unwanted else []

    def apply(self, parameters: Sequence[str], gone: Sequence[str]) -> None:
        """Change all entries and look at them again. Raises BootError."""
        missing, unwanted = self._difference(parameters, gone)
        if not missing and not unwanted:
            return
        self._refuse(missing, unwanted)
        before = self._lines()
        self._run(_argv(missing, unwanted))
        for old, new in zip(before, self._lines()):
            lost = [word for word in old if word not in new and word not in unwanted]
            if lost:
                raise BootError(
                    f"grubby took {' '.join(lost)} away, which is not ours. Put it back before the "
                    f"next boot, in /boot/loader/entries; this entry had: {' '.join(old)}"
                )
        missing, unwanted = self._difference(parameters, gone)
        if missing or unwanted:
            raise BootError(
                f"grubby ran, and its entries still lack {' '.join(missing) or 'nothing'} and have "
                f"{' '.join(unwanted) or 'nothing'} too much: look at grubby --info=ALL"
            )

    def entries(self) -> int:
        """How many kernels can be started."""
        return len(self._lines())

    def replaced(self, parameters: Sequence[str], gone: Sequence[str] = ()) -> list[str]:
        """Why grubby cannot add these to the entries: it would take others' words for them.

        ``gone`` are words of ours that are taken out first.
        """
        missing, unwanted = self._difference(parameters, gone)
        there = dict.fromkeys(word for line in self._lines() for word in line)
        both = [*there, *(word for word in missing if word not in there)]
        return [
            f"{word} is wanted, and the boot loader's entries have, or would have, {other}: grubby "
            f"keeps one {word.partition('=')[0]} in an entry and would put ours in its place. "
            "Leave it out here, and write both into the entries by hand"
            for word in missing
            for other in both
            if other not in (word, *unwanted) and words.key(other) == words.key(word)
        ]

    def _refuse(self, missing: Sequence[str], unwanted: Sequence[str]) -> None:
        found = self.replaced(missing, unwanted)
        if found:
            raise BootError("\n".join(found))

    def _difference(
        self, parameters: Sequence[str], gone: Sequence[str]
    ) -> tuple[list[str], list[str]]:
        lines = self._lines()
        missing = [word for word in parameters if any(word not in line for line in lines)]
        unwanted = [
            word for word in gone if word not in parameters and any(word in line for line in lines)
        ]
        return missing, unwanted

    def _lines(self) -> list[list[str]]:
        return entries(self._run(["grubby", "--info=ALL"]))

    def _run(self, argv: Sequence[str]) -> str:
        try:
            done = self.machine.run(argv, deadline_s=_DEADLINE_S)
        except CommandMissingError as error:
            raise BootError(str(error)) from error
        if not done.ok:
            raise BootError(f"{' '.join(argv)} failed:\n{done.said}")
        return done.stdout


def entries(info: str) -> list[list[str]]:
    """The parameters of each entry in the output of ``grubby --info=ALL``."""
    found = []
    for value in _ARGS.findall(info):
        try:
            found.append(words.split("".join(shlex.split(value))))
        except ValueError:
            found.append(words.split(value.strip('"')))
    return found


def _argv(missing: Sequence[str], unwanted: Sequence[str]) -> list[str]:
    argv = ["grubby", "--update-kernel=ALL"]
    if unwanted:
        argv.append("--remove-args=" + " ".join(unwanted))
    if missing:
        argv.append("--args=" + " ".join(missing))
    return argv
