# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A slice as it is wanted, and what came of it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field

from ..settings.model import Setting as Verdict
from .properties import Setting


class SliceError(Exception):
    """The slice cannot be what was asked; the host is as it was before."""


@dataclass(frozen=True)
class Wish:
    """A slice as the user wants it. ``unit_directory`` is where its file belongs.

    Three things are only done when asked for: ``takeover`` replaces a unit file of somebody
    else, ``daemon_reload_anyway`` reloads although a container may lose its GPU by it, and
    ``below_current_use`` lowers a limit although tasks inside may be killed by it. With
    ``drop_ins_win`` a drop-in of somebody else that says otherwise is no error: its value stays.
    """

    name: str
    description: str
    settings: Mapping[str, Setting]
    unit_directory: str = "/etc/systemd/system"
    takeover: bool = False
    daemon_reload_anyway: bool = False
    below_current_use: bool = False
    drop_ins_win: bool = False

    @property
    def unit_path(self) -> str:
        """Where the unit file belongs."""
        return os.path.join(self.unit_directory, self.name)


@dataclass
class Outcome:
    """What was, or in check mode would be, done, and what the kernel holds now.

    ``outvoted`` has the properties that a drop-in of somebody else sets, with its words.
    """

    actions: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    diff: list[dict[str, str]] = field(default_factory=list)
    control_group: str | None = None
    effective: dict[str, str] = field(default_factory=dict)
    outvoted: dict[str, str] = field(default_factory=dict)
    verdicts: list[Verdict] = field(default_factory=list)

    @property
    def changed(self) -> bool:
        """Was, or would, anything be done?"""
        return bool(self.actions)
