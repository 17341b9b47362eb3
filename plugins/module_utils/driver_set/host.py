# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The host whose driver is kept, and what became of it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field

from ..boot.model import Machine
from ..engine.docker_api import DEFAULT_SOCKET
from ..package_sets import archives, dnf
from ..package_sets.apt import Apt
from ..package_sets.managers import Manager
from ..process import CommandMissingError, run
from ..settings.model import Setting
from ..slices import reader, reload
from . import look
from .model import INSTALL, DriverRefusedError, View, Wish

# Debian's systemctl would also ask the tools of init scripts, which reload systemd.
_NO_SYSV = {"SYSTEMCTL_SKIP_SYSV": "1"}


@dataclass
class Outcome:
    """What was, or in check mode would be, done, and the driver as it is now."""

    view: View
    release: str | None = None
    flavour: str = ""
    actions: list[str] = field(default_factory=list)
    diff: list[dict[str, str]] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    settings: list[Setting] = field(default_factory=list)
    reboot_reasons: list[str] = field(default_factory=list)


class Host:
    """The host below ``root`` and the engine behind ``socket``."""

    def __init__(self, root: str = "/", socket: str = DEFAULT_SOCKET) -> None:
        self.root = root
        self._socket = socket

    def view(self) -> View:
        """The driver as it is."""
        return look.view(self.root)

    def manager(self, wish: Wish, view: View, options: Sequence[str] = ()) -> Manager:
        """The package manager, with the options of the wish and these. Raises RefusedError."""
        found = archives.read(wish.files, view.installed.manager)
        every = (*wish.options, *options)
        if view.installed.manager == "dpkg":
            waits = {"lock_timeout_s": wish.lock_timeout_s, "deadline_s": wish.deadline_s}
            return Apt(self.root, every, found, wish.offline, **waits)
        if view.installed.manager == "rpm":
            if wish.mode == INSTALL:
                raise DriverRefusedError(
                    "installing a driver is not built for dnf yet: install it by the way of the "
                    "driver's own guide, and use mode adopt, which holds it"
                )
            return dnf.Dnf(every, found, wish.offline, wish.deadline_s)
        raise DriverRefusedError(
            "neither dpkg nor rpm could tell what is installed on this host, so no driver is "
            "installed on it"
        )

    def endangered(self) -> list[str]:
        """Who may lose a GPU by the daemon-reload of a package's script."""
        return reload.endangered(self._socket) if reader.has_systemd(self.root) else []

    def boot_machine(self) -> Machine:
        """The host as :mod:`..boot` takes it."""
        return Machine(self.root)

    def persistence_mode(self, wish: Wish, view: View) -> bool | None:
        """Do all GPUs have persistence mode on? None: nobody asks, or it cannot be read."""
        if wish.persistence is None or view.loaded is None:
            return None
        return look.persistence_mode(self.root)

    def run(self, argv: Sequence[str], deadline_s: float = 300.0) -> str | None:
        """Run a program; None, or what it said when it failed."""
        try:
            done = run(argv, deadline_s, env=_NO_SYSV)
        except CommandMissingError as error:
            return str(error)
        return None if done.ok else done.said


def below(root: str, path: str) -> str:
    """``path`` in the tree of ``root``."""
    return os.path.join(root, path.lstrip("/"))
