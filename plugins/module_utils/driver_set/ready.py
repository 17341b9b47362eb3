# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What runs: modules loaded, an initramfs without nouveau, the daemon, and sources put away."""

from __future__ import annotations

import os
import shutil

from .. import units
from ..boot import initramfs
from ..boot.model import ALWAYS, AUTO, BootError
from ..package_sets import source_files
from ..secrets import redact
from . import daemon
from .host import Host, Outcome, below
from .kept import MODPROBE
from .model import INSTALL, DriverError, View, Wish
from .transaction import Transaction

_NOUVEAU = ("nouveau",)


def load(
    wish: Wish,
    host: Host,
    view: View,
    made: Transaction | None,
    done: Outcome,
    check_mode: bool,
) -> None:
    """Load what is missing now, where nothing stands in its way."""
    wanted = []
    coming = check_mode and made is not None and made.brings_module
    if view.loaded is None:
        free = not view.modules.get("nouveau") and view.cards
        if wish.mode == INSTALL and (coming or view.on_disk is not None) and free:
            uvm = wish.uvm and (coming or view.has_uvm)
            wanted = ["nvidia", *(["nvidia-uvm"] if uvm else [])]
    elif wish.uvm and view.has_uvm and not view.modules.get("nvidia_uvm"):
        # Of another release than the loaded module it could not be loaded.
        wanted = ["nvidia-uvm"] if view.on_disk in (None, view.loaded) else []
    for name in wanted:
        done.actions.append(f"load {name}")
        said = None if check_mode else host.run(["modprobe", name], 60)
        if said:
            done.warnings.append(f"modprobe {name}: {said}")


def without_nouveau(
    host: Host, loaded: bool, fresh: bool, token: str, done: Outcome, check_mode: bool
) -> str:
    """Have no initramfs that loads nouveau before our file could be read.

    ``fresh``: the file is about to be written. ``token`` is what an earlier run returned: the state
    that was looked into. Raises DriverError.
    """
    machine = host.boot_machine()
    mode = ALWAYS if loaded else AUTO
    try:
        if check_mode and fresh:
            action = initramfs.would_be(MODPROBE, _NOUVEAU, mode, machine)
        else:
            judged = initramfs.judge(MODPROBE, _NOUVEAU, mode, token, machine)
            action, token = judged.action, judged.token
            if loaded and not token:
                done.warnings.append(
                    "no initramfs of the running kernel can be looked into here: if there "
                    "is one that holds nouveau, make it anew"
                )
        if not action:
            return token
        done.actions.append(f"make the initramfs of every kernel anew without nouveau ({action})")
        if check_mode:
            return token
        initramfs.make(machine)
        return initramfs.judge(MODPROBE, _NOUVEAU, mode, "", machine).token
    except BootError as error:
        raise DriverError(
            f"{error}\nUntil there is a new initramfs, nouveau may take the GPUs at the next boot: "
            "look at what it says (often /boot is full), mend that, and run again"
        ) from error


def bring_daemon(
    host: Host, wanted: daemon.State, view: View, done: Outcome, check_mode: bool
) -> bool:
    """Bring the persistence daemon there. False, with a warning, where it did not come."""
    good = True
    for argv in daemon.steps(wanted, view.persistence, view.unit, host.root):
        done.actions.append(" ".join(argv))
        said = None if check_mode else host.run(argv, 120)
        if said:
            good = False
            told = units.last_log_lines(daemon.UNIT)
            done.warnings.append(f"{' '.join(argv)}: {said}; {told}")
    return good


def put_sources_away(wish: Wish, host: Host, done: Outcome, check_mode: bool) -> None:
    """Where nothing is installed, the source and files that were brought for it go."""
    if wish.source:
        changes = source_files.plan(source_files.Source(wish.source, present=False), host.root)
        for change in changes:
            done.actions.append(change.told)
            before, after = redact.pair(change.path, change.before or "", change.after or "")
            names = {"before_header": change.path, "after_header": change.path}
            done.diff.append({**names, "before": before, "after": after})
        if not check_mode:
            source_files.carry_out(changes, host.root)
    if wish.uploads and os.path.isdir(below(host.root, wish.uploads)):
        done.actions.append(f"remove {wish.uploads}")
        if not check_mode:
            shutil.rmtree(below(host.root, wish.uploads))
