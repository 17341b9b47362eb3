# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is wanted of the next boot, and what came of it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Callable

from ..process import Completed, find_program, run
from ..settings.model import Setting

AUTO, ALWAYS, NEVER = "auto", "always", "never"


class BootError(Exception):
    """The host cannot boot as asked. The message says what was seen and what to do."""


@dataclass(frozen=True)
class Softdep:
    """Modules that modprobe loads before and after another, where they exist."""

    pre: tuple[str, ...] = ()
    post: tuple[str, ...] = ()


@dataclass(frozen=True)
class Wish:
    """``options`` are (name, value) pairs by module; a value of "" is a word without ``=``.

    ``initramfs`` says when it is made anew after a change in modprobe.d: ``auto`` where one of the
    modules is inside, ``always`` or ``never``.
    """

    parameters: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    blacklist: tuple[str, ...] = ()
    options: Mapping[str, tuple[tuple[str, str], ...]] = field(default_factory=dict)
    softdeps: Mapping[str, Softdep] = field(default_factory=dict)
    initramfs: str = AUTO

    @property
    def is_empty(self) -> bool:
        """Is nothing wanted, so that all of ours goes?"""
        return not (
            self.parameters or self.modules or self.blacklist or self.options or self.softdeps
        )


@dataclass(frozen=True)
class Machine:
    """The host: a tree of files, and programs."""

    root: str = "/"
    run: Callable[..., Completed] = run
    find: Callable[[str], str | None] = find_program


@dataclass
class Outcome:
    """What was done or, in check mode, would be; ``loader`` is what starts the kernel."""

    loader: str = ""
    actions: list[str] = field(default_factory=list)
    diff: list[dict[str, str]] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    settings: list[Setting] = field(default_factory=list)
