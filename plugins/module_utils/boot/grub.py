# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""GRUB as Debian and Ubuntu set it up: a drop-in of ours, and update-grub.

Their grub-mkconfig reads /etc/default/grub and then /etc/default/grub.d/*.cfg in the order of their
names, and makes /boot/grub/grub.cfg of it. Ours comes last, and not into the recovery entries, so
that a host which does not boot with it boots with those.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ..atomic import read_text
from ..process import CommandMissingError
from ..settings.files import header
from . import words
from .model import BootError, Machine

DROP_IN = "/etc/default/grub.d/zz-steadygpu.cfg"
CONFIG = "/boot/grub/grub.cfg"
_DEFAULTS = "/etc/default/grub"
_DIRECTORY = "/etc/default/grub.d"
# Kernels and their files may be many, and disks slow.
_DEADLINE_S = 300.0

_ALL = "GRUB_CMDLINE_LINUX"
_VARIABLE = "GRUB_CMDLINE_LINUX_DEFAULT"
_ASSIGNMENT = re.compile(r"\s*(?:export\s+)?(GRUB_CMDLINE_LINUX(?:_DEFAULT)?)(\+?)=(.*)")
_REFERENCE = re.compile(r"\$\{?(GRUB_CMDLINE_LINUX(?:_DEFAULT)?)\}?")
_SECTION = re.compile(r"### BEGIN \S*/10_linux ###(.*?)### END \S*/10_linux ###", re.DOTALL)
_KERNEL_LINE = re.compile(r"^\s*linux(?:efi|16)?\s+\S+\s*(.*)$", re.MULTILINE)
_RECOVERY = frozenset({"single", "recovery"})
# What grub-mkconfig adds by itself.
_GENERATED = re.compile(r"root=.*|rootflags=.*|ro|rw|\$.*|--.*")


def drop_in(parameters: Sequence[str]) -> str | None:
    """The text of our file; None without parameters."""
    if not parameters:
        return None
    return f'{header("kernel")}{_VARIABLE}="${{{_VARIABLE}}} {" ".join(parameters)}"\n'


@dataclass(frozen=True)
class Grub:
    """The boot loader of this kind."""

    machine: Machine
    name: str = "grub"

    def others(self, ours: Sequence[str]) -> list[tuple[str, str]]:
        """Each word that somebody else configured, with the file that has it."""
        return self._configured(path for path in self._files() if path != DROP_IN)

    def given(self, ours: Sequence[str]) -> set[str]:
        """What entries have without ours."""
        return {word for word, _path in self.others(ours)}

    def files(self, parameters: Sequence[str]) -> dict[str, str | None]:
        """What has to be in files before :meth:`apply`."""
        return {DROP_IN: drop_in(parameters)}

    def due(self, parameters: Sequence[str], gone: Sequence[str]) -> list[str]:
        """What is still to be done so that the next boot is as wanted."""
        return ["run update-grub"] if self._stale(parameters, gone) else []

    def apply(self, parameters: Sequence[str], gone: Sequence[str]) -> None:
        """Make grub.cfg anew and look into it. Raises BootError."""
        self.make()
        if self._stale(parameters, gone):
            raise BootError(
                f"update-grub ran, and the kernel lines of {CONFIG} still do not have "
                f"{' '.join(parameters) or 'what was there before'}: look at what else sets "
                f"{_VARIABLE} in {_DEFAULTS} and {_DIRECTORY}, and at /etc/grub.d/10_linux"
            )

    def make(self) -> None:
        """Make grub.cfg anew. Raises BootError."""
        try:
            done = self.machine.run(["update-grub"], deadline_s=_DEADLINE_S)
        except CommandMissingError as error:
            raise BootError(str(error)) from error
        if not done.ok:
            raise BootError(f"update-grub failed:\n{done.said}")

    def out_of_date(self) -> bool:
        """Does grub.cfg differ from what the files say, whoever changed them?"""
        expected = [word for word, _path in self._configured(self._files())]
        for line in self._lines():
            if [word for word in line if word not in expected and not _GENERATED.fullmatch(word)]:
                return True
        return self._stale(expected, ())

    def entries(self) -> int:
        """How many kernels grub.cfg can start."""
        return len(self._lines())

    def _configured(self, paths: Iterable[str]) -> list[tuple[str, str]]:
        """The words that these files amount to, read in this order as a shell does."""
        values: dict[str, list[tuple[str, str]]] = {}
        for path in paths:
            text = read_text(_below(self.machine.root, path)) or ""
            for name, adds, parts in _assigned(text):
                value = list(values.get(name, [])) if adds else []
                for part in parts:
                    variable = _REFERENCE.fullmatch(part)
                    more = values.get(variable.group(1), []) if variable else [(part, path)]
                    value += more
                values[name] = value
        # In this order grub-mkconfig puts them into an entry.
        return [*values.get(_ALL, []), *values.get(_VARIABLE, [])]

    def _stale(self, parameters: Sequence[str], gone: Sequence[str]) -> bool:
        kept = {word for word, _path in self.others(())}
        unwanted = {word for word in gone if word not in kept and word not in parameters}
        return any(
            not set(parameters) <= set(line) or unwanted & set(line) for line in self._lines()
        )

    def _lines(self) -> list[list[str]]:
        return kernel_lines(read_text(_below(self.machine.root, CONFIG)) or "")

    def _files(self) -> list[str]:
        try:
            names = sorted(os.listdir(_below(self.machine.root, _DIRECTORY)))
        except (FileNotFoundError, NotADirectoryError):
            names = []
        below = [f"{_DIRECTORY}/{name}" for name in names if name.endswith(".cfg")]
        return [_DEFAULTS, *below]


def kernel_lines(config: str) -> list[list[str]]:
    """The parameters of each entry of grub.cfg that this system's kernels have, but recovery's."""
    sections = _SECTION.findall(config) or [config]
    lines = [words.split(line) for text in sections for line in _KERNEL_LINE.findall(text)]
    return [line for line in lines if not _RECOVERY & set(line)]


def _assigned(text: str) -> Iterator[tuple[str, bool, list[str]]]:
    """The assignments of a file: the variable, whether they add to it, and words or references."""
    for line in text.splitlines():
        match = _ASSIGNMENT.match(line)
        if match is None:
            continue
        try:
            value = "".join(shlex.split(match.group(3), comments=True)[:1])
        except ValueError:
            continue
        parts = words.split(_REFERENCE.sub(r" ${\1} ", value))
        yield match.group(1), bool(match.group(2)), parts


def _below(root: str, path: str) -> str:
    return os.path.join(root, path.lstrip("/"))
