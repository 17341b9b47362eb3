# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Parameters and modules kept: written, made part of the next boot, read back; or taken away.

The order survives a kill at any point: the record, which names every word that may be ours, then
files, then what is generated of them. What is still to be generated is seen in what was generated,
so the next run completes.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from typing import Any

from .. import vouched
from ..atomic import read_text
from ..process import CommandMissingError
from ..settings import record as records
from ..settings.apply import Keeper
from ..settings.model import (
    BOOT_PARAMETER,
    BOOT_PARAMETER_ABSENT,
    INERT,
    MODULE_ABSENT,
    MODULE_LOADED,
    MODULE_PARAMETER,
    UNSUPPORTED,
    SettingsError,
    Target,
)
from ..settings.readback import read_back
from ..settings.record import Former, Record
from . import initramfs, loaders, modprobe, needed, parameters, refused, words
from .grubby import Grubby
from .model import BootError, Machine, Outcome, Wish

OWNER = "kernel"


def ensure(wish: Wish, check_mode: bool = False, machine: Machine | None = None) -> Outcome:
    """Have the next boot as wished; an empty wish takes away all that is ours.

    Raises BootError and SettingsError: then the host is as it was before.
    """
    try:
        return _Change(wish, check_mode, machine or Machine()).run()
    except (OSError, CommandMissingError) as error:
        raise BootError(str(error)) from error


class _Change:
    """One run."""

    def __init__(self, wish: Wish, check_mode: bool, machine: Machine) -> None:
        self._wish = wish
        self._check_mode = check_mode
        self._machine = machine
        self._root = machine.root
        self._record = records.load(OWNER, self._root)
        extra: dict[str, Any] = self._record.extra if self._record else {}
        self._had = [str(word) for word in extra.get("words", [])]
        self._token = str(extra.get("initramfs", ""))
        self._loader, self._why = loaders.find(machine)
        others = self._loader.others(self._had) if self._loader else []
        self._refuse(others)
        given = self._loader.given(self._had) if self._loader else set()
        if self._loader:
            self._ours = [word for word in wish.parameters if word not in given]
        else:
            # Not started by its boot loader this time, as by kexec: what is configured there stays.
            self._ours = list(self._had)
        self._gone = [word for word in self._had if word not in self._ours]
        running = words.split(_read(self._root, "proc/cmdline"))
        before = dict.fromkeys([*self._gone, *map(str, extra.get("leaving", []))])
        self._leaving = [
            word
            for word in before
            if word in running and word not in given and word not in wish.parameters
        ]

    def run(self) -> Outcome:
        """Do it, or say what would be done."""
        outcome = Outcome(self._loader.name if self._loader else "none")
        if self._wish.is_empty and self._record is None:
            return outcome
        texts: dict[str, str | None] = {
            modprobe.OPTIONS: modprobe.options_text(self._wish),
            modprobe.LOAD: modprobe.load_text(self._wish),
        }
        if self._loader:
            texts.update(self._loader.files(self._ours))
        elif self._had and self._record:
            theirs = [path for path in self._record.files if path not in texts]
            texts.update({path: read_text(_below(self._root, path)) for path in theirs})
        paths = {*texts, *(self._record.files if self._record else ()), records.path_of(OWNER)}
        former = {path: read_text(_below(self._root, path)) for path in sorted(paths)}
        keeper = Keeper(OWNER, self._check_mode, self._root)
        every = [*self._ours, *self._gone]
        kept = keeper.keep(self._targets(), texts, self._extra(every, self._token))
        outcome.actions += [one for one in kept.actions if not one.startswith("remember ")]
        outcome.diff += kept.diff
        outcome.warnings += kept.warnings
        first = self._record is None
        remembered = [one for one in kept.actions if first and one.startswith("remember ")]
        try:
            token = self._generate(outcome, former, texts)
        except (BootError, OSError, CommandMissingError) as error:
            raise BootError(f"{error}\n{self._undo(former)}") from error
        self._remember(outcome, token, remembered)
        outcome.settings = [read_back(target, self._root) for target in self._targets()]
        outcome.warnings += self._warnings()
        return outcome

    def _refuse(self, others: Sequence[tuple[str, str]]) -> None:
        """Raises BootError with every reason at once."""
        wanted = self._wish.parameters
        found = [fault for fault in map(words.fault, wanted) if fault] or refused.faults(wanted)
        found += [
            f"{one} and {other} are both wanted, and the kernel takes only the last"
            for one, other in words.conflicts(wanted, wanted)
        ]
        where = dict(others)
        found += [
            f"{one} is wanted, and {where[other]} has {other}: take it out there, or want the same"
            for one, other in words.conflicts(wanted, where)
        ]
        found += modprobe.faults(self._wish, self._machine)
        found += [
            f"{word}: {fault}"
            for name, word in needed.kept_away(wanted)
            for fault in needed.why(name, self._root)
        ]
        if isinstance(self._loader, Grubby):
            found += self._loader.replaced(wanted, [one for one in self._had if one not in wanted])
        if found:
            raise BootError("Nothing was changed:\n" + "\n".join(f"- {one}" for one in found))

    def _targets(self) -> list[Target]:
        found = [self._parameter(word) for word in dict.fromkeys(self._wish.parameters)]
        found += [
            Target(f"no boot parameter {word}", BOOT_PARAMETER_ABSENT, "", word)
            for word in self._leaving
        ]
        found += [
            Target(f"module {name}", MODULE_LOADED, name, "loaded") for name in self._wish.modules
        ]
        found += [
            Target(f"no module {name}", MODULE_ABSENT, name, "absent")
            for name in self._wish.blacklist
        ]
        return found + [
            self._option(module, name, value)
            for module, pairs in sorted(self._wish.options.items())
            for name, value in pairs
        ]

    def _option(self, module: str, name: str, value: str) -> Target:
        shown, wanted = f"{module} option {name}", value or "1"
        if not parameters.is_there(module, self._root):
            note = f"{module} is not loaded: it takes the option when it is"
            return Target(shown, INERT, "", wanted, note)
        note = ""
        if parameters.loaded_value(module, name, self._root) is None:
            note = "the loaded module shows no value of this option, so it cannot be read back"
        return Target(shown, MODULE_PARAMETER, f"{module}/{name}", wanted, note)

    def _parameter(self, word: str) -> Target:
        name = f"boot parameter {word}"
        running = words.split(_read(self._root, "proc/cmdline"))
        if self._loader is None and word not in running and word not in self._had:
            return Target(name, UNSUPPORTED, "", word, self._why)
        return Target(name, BOOT_PARAMETER, "", word)

    def _extra(self, ours: Sequence[str], token: str) -> dict[str, Any]:
        return {
            "words": sorted(set(ours)),
            "leaving": sorted(self._leaving),
            "initramfs": token,
        }

    def _generate(
        self,
        outcome: Outcome,
        former: dict[str, str | None],
        texts: dict[str, str | None],
    ) -> str:
        """What follows from the files. Returns what is known of the initramfs afterwards."""
        new = [n for n in self._wish.modules if not parameters.is_there(n, self._root)]
        outcome.actions += [f"load the module {name}" for name in new]
        if not self._check_mode:
            for name in new:
                modprobe.load(name, self._machine)
            if texts[modprobe.OPTIONS] != former[modprobe.OPTIONS]:
                modprobe.prove(self._wish, self._machine)
        if self._loader:
            due = self._loader.due(self._ours, self._gone)
            outcome.actions += due
            if due and not self._check_mode:
                self._loader.apply(self._ours, self._gone)
        return self._initramfs(outcome, former, texts)

    def _initramfs(
        self, outcome: Outcome, former: dict[str, str | None], texts: dict[str, str | None]
    ) -> str:
        modules = modprobe.concerned(self._wish)
        mode = self._wish.initramfs
        text = texts[modprobe.OPTIONS]
        if self._check_mode:
            if text != former[modprobe.OPTIONS]:
                about = None if text is None else modules
                action = initramfs.would_be(modprobe.OPTIONS, about, mode, self._machine)
                outcome.actions += [f"run {action}"] if action else []
            return self._token
        if text is None and former[modprobe.OPTIONS] is None and not self._token:
            return ""
        judged = initramfs.judge(modprobe.OPTIONS, modules, mode, self._token, self._machine)
        if judged.action:
            outcome.actions.append(f"run {judged.action}")
            initramfs.make(self._machine)
            judged = initramfs.judge(modprobe.OPTIONS, modules, mode, "", self._machine)
        outcome.warnings += [judged.warning] if judged.warning else []
        return judged.token if text is not None else ""

    def _remember(self, outcome: Outcome, token: str, remembered: list[str]) -> None:
        extra = self._extra(self._ours, token)
        formers = tuple(Former(target, None) for target in self._targets())
        if not formers and not self._ours:
            if not self._check_mode:
                records.forget(OWNER, self._root)
            return
        if remembered and not outcome.actions:
            outcome.actions += remembered
        if self._check_mode:
            return
        kept = records.load(OWNER, self._root)
        records.save(Record(OWNER, formers, kept.files if kept else (), extra), self._root)

    def _warnings(self) -> list[str]:
        found = []
        if self._loader is None and set(self._wish.parameters) - set(self._had):
            found.append(f"boot parameters cannot be set on this host: {self._why}")
        left = [word for word in self._had if word not in self._wish.parameters]
        if self._loader is None and left:
            found.append(
                f"{' '.join(left)}: still configured, because {self._why}. Run again after a boot "
                "by the boot loader"
            )
        had = [former.target for former in self._record.formers] if self._record else []
        left = [
            one.path
            for one in had
            if one.kind == MODULE_LOADED
            and one.path not in self._wish.modules
            and parameters.is_loaded(one.path, self._root)
        ]
        if left:
            found.append(
                f"{', '.join(left)}: loaded until the next boot, because it cannot be seen who "
                "relies on it by now"
            )
        return found

    def _undo(self, former: dict[str, str | None]) -> str:
        """Put files and what was made of them back, and say how it went."""
        if self._check_mode:
            return "Nothing was changed."
        faults = []
        for path, text in former.items():
            try:
                place = _below(self._root, path)
                if text is None:
                    vouched.remove(place, self._root)
                elif read_text(place) != text:
                    vouched.write(place, text, root=self._root)
            except OSError as error:
                faults.append(f"{path} could not be put back: {error}")
        if self._loader:
            back = [word for word in self._ours if word not in self._had]
            try:
                if self._loader.due(self._had, back):
                    self._loader.apply(self._had, back)
            except (BootError, OSError) as error:
                faults.append(f"the boot loader could not be put back: {error}")
        return "\n".join(faults) or "The next boot is as it was before."


def _below(root: str, path: str) -> str:
    return os.path.join(root, path.lstrip("/"))


def _read(root: str, path: str) -> str:
    with contextlib.suppress(OSError):
        return read_text(_below(root, path)) or ""
    return ""


__all__ = ["OWNER", "SettingsError", "ensure"]
