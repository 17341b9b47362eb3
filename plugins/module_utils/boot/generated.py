# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is generated of files that somebody put back: boot entries and the initramfs."""

from __future__ import annotations

from ..process import CommandMissingError
from ..settings.record import Record
from . import initramfs, loaders, modprobe
from .grubby import Grubby
from .model import AUTO, BootError, Machine


def refresh(root: str = "/", machine: Machine | None = None) -> list[str]:
    """Make what the next boot reads fit the files again.

    Returns what was done, or what failed, in words. Never raises.
    """
    machine = machine or Machine(root)
    said = []
    try:
        loader, _why = loaders.find(machine)
        if loader is not None and not isinstance(loader, Grubby) and loader.out_of_date():
            loader.make()
            said.append(f"{loader.name}'s entries were made anew, so that they fit its files")
    except (BootError, OSError, CommandMissingError) as error:
        said.append(f"what the boot loader reads does not fit its files: {error}")
    try:
        modules = modprobe.spoken_of(machine.root)
        judged = initramfs.judge(modprobe.OPTIONS, modules, AUTO, "", machine)
        said += [judged.warning] if judged.warning else []
        if judged.action:
            initramfs.make(machine)
            said.append(f"{judged.action} was run, so that the initramfs has what the files say")
    except (BootError, OSError, CommandMissingError) as error:
        said.append(f"the initramfs may hold what was put back: {error}")
    return said


def go_back(
    now: Record | None, then: Record | None, machine: Machine
) -> tuple[list[str], list[str]]:
    """Bring the entries that grubby keeps from the words of one record to those of another.

    They are in no file of a checkpoint. Returns what was done, and what could not be; never raises.
    """
    ours, wanted = _words(now), _words(then)
    gone = [word for word in ours if word not in wanted]
    if set(ours) == set(wanted) or not machine.find("grubby") or machine.find("update-grub"):
        return [], []
    try:
        loader, _why = loaders.find(machine)
        if loader is not None and not isinstance(loader, Grubby):
            return [], []
        # Started in another way this time, as by kexec: the entries have the words all the same.
        due = Grubby(machine).due(wanted, gone)
        if due:
            Grubby(machine).apply(wanted, gone)
    except (BootError, OSError, CommandMissingError) as error:
        return [], [f"the boot loader's entries still have {' '.join(ours) or 'nothing'}: {error}"]
    return due, []


def _words(record: Record | None) -> list[str]:
    return [str(word) for word in record.extra.get("words", ())] if record else []
