# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The files of ours for the driver, and what is remembered of it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from ..atomic import read_text
from ..settings import record as records
from ..settings.apply import Keeper
from ..settings.files import header
from ..settings.model import MODULE_ABSENT, Target
from . import daemon, transaction
from .host import Host, Outcome, below
from .model import INSTALL, View, Wish
from .proof import BLACKLIST, OWNER, WISH, WISH_KEYS
from .transaction import PIN, Transaction

MODPROBE = "/etc/modprobe.d/steadygpu-driver.conf"
MODULES_LOAD = "/etc/modules-load.d/steadygpu-driver.conf"
_BOOT_ID = "proc/sys/kernel/random/boot_id"


def texts_now(root: str) -> dict[str, str]:
    """The files of ours that are here."""
    old = records.load(OWNER, root)
    return {path: read_text(below(root, path)) or "" for path in (old.files if old else ())}


def texts_of(
    wish: Wish, view: View, made: Transaction | None, former: Mapping[str, str]
) -> dict[str, str | None]:
    """The files of ours by path, as they are to be."""
    coming = made is not None and made.brings_module
    texts: dict[str, str | None] = {}
    lines = []
    has_module = view.on_disk is not None or coming
    had = BLACKLIST in former.get(MODPROBE, "")
    needed = view.modules.get("nouveau") or wish.mode == INSTALL or had
    if wish.nouveau_off and has_module and needed:
        lines += [BLACKLIST, "options nouveau modeset=0"]
    uvm = wish.uvm and (view.has_uvm or coming)
    if uvm:
        # For a driver that is loaded late, after systemd-modules-load.service.
        lines.append("softdep nvidia post: nvidia-uvm")
        texts[MODULES_LOAD] = header("driver") + "nvidia-uvm\n"
    if lines:
        texts[MODPROBE] = header("driver") + "".join(f"{line}\n" for line in lines)
    release = made.release if made else view.release
    pinned = wish.hold and (made is not None or PIN in former)
    if pinned and release is not None and view.installed.manager == "dpkg":
        texts[PIN] = transaction.pin_text(release)
    return texts


def remember(
    texts: Mapping[str, str | None],
    said: Mapping[str, Any],
    done: Outcome,
    host: Host,
    check_mode: bool,
) -> None:
    """Write the files and remember; where nothing is ours there is no record."""
    keeper = Keeper(OWNER, check_mode, host.root)
    if not texts and not said:
        outcome = keeper.absent()
    else:
        outcome = keeper.keep(_targets(texts), texts, said)
    done.actions += outcome.actions
    done.diff += outcome.diff
    done.warnings += outcome.warnings


def extra_of(
    wish: Wish,
    holds: Sequence[str],
    former: daemon.State | None,
    reasons: Sequence[str],
    before: Mapping[str, Any],
    texts: Mapping[str, str | None],
    root: str,
) -> dict[str, Any]:
    """What is noted beside files; the wish only where something of ours is on the host."""
    said: dict[str, Any] = {}
    if holds:
        said["holds"] = list(holds)
    if former is not None:
        said[daemon.NOTED] = {"running": former.running, "enabled": former.enabled}
    if before.get("brought"):
        said["brought"] = before["brought"]
    if reasons:
        boot = (read_text(os.path.join(root, _BOOT_ID)) or "").strip()
        said["reboot"] = [{"reason": reason, "boot_id": boot} for reason in reasons]
    if said or texts:
        said[WISH] = {key: getattr(wish, key) for key in WISH_KEYS}
    return said


def _targets(texts: Mapping[str, str | None]) -> list[Target]:
    """What may wait for a reboot; all the rest is read back by :mod:`.proof`."""
    if BLACKLIST not in (texts.get(MODPROBE) or ""):
        return []
    return [Target("nouveau", MODULE_ABSENT, "nouveau", "absent")]
