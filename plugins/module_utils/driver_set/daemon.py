# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""nvidia-persistenced: what it was before us, and the way to what it is to be."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..atomic import read_text

UNIT = "nvidia-persistenced.service"
# Its key in the record.
NOTED = "persistence"
_WANTED_BY = "etc/systemd/system/*.wants"
# The first one has the unit's file; systemd reads the drop-ins of all.
_UNITS = (
    "etc/systemd/system",
    "run/systemd/system",
    "usr/lib/systemd/system",
    "lib/systemd/system",
)
_SECTION = re.compile(r"^\[Install\]\s*$", re.MULTILINE)
_START = re.compile(r"^\s*ExecStart\s*=\s*(.*)$", re.MULTILINE)


@dataclass(frozen=True)
class State:
    """Does it run, and does it start at boot?"""

    running: bool
    enabled: bool


@dataclass(frozen=True)
class Unit:
    """``static``: it has no ``[Install]``, so nobody can enable it; on Ubuntu udev starts it.

    ``without_mode``: it is started with ``--no-persistence-mode``, and keeps no GPU open.
    """

    static: bool = False
    without_mode: bool = False


def read_unit(root: str = "/") -> Unit:
    """What the unit's file and its drop-ins say. Never fails."""
    texts = [text for text in (_text(root, f"{place}/{UNIT}") for place in _UNITS) if text]
    if not texts:
        return Unit()
    drop_ins = {}
    for place in reversed(_UNITS):
        for path in glob.glob(os.path.join(glob.escape(root), place, f"{UNIT}.d", "*.conf")):
            drop_ins[os.path.basename(path)] = _text("/", path) or ""
    every = "\n".join([texts[0], *(drop_ins[name] for name in sorted(drop_ins))])
    commands = [line.strip() for line in _START.findall(every) if line.strip()]
    last = commands[-1] if commands else ""
    # An [Install] in a drop-in counts for nothing (systemd.unit(5)).
    return Unit(_SECTION.search(texts[0]) is None, "--no-persistence-mode" in last.split())


def noted(extra: Mapping[str, Any]) -> State | None:
    """What the record says that it was before us."""
    said = extra.get(NOTED)
    return State(said["running"] is True, said["enabled"] is True) if said else None


def former(
    wanted: bool | None, status: str, unit: Unit, extra: Mapping[str, Any], root: str = "/"
) -> State | None:
    """What it was before us, None where it was and is left alone."""
    known = noted(extra)
    untouched = wanted is None or status == "absent" or (wanted and unit.without_mode)
    if known is not None or untouched:
        return known
    return State(status == "running", is_enabled(root))


def steps(wanted: State, status: str, unit: Unit, root: str = "/") -> list[list[str]]:
    """The commands that bring it there; never with a daemon-reload."""
    if status == "absent":
        return []
    found = []
    if wanted.enabled != is_enabled(root) and not unit.static:
        verb = "enable" if wanted.enabled else "disable"
        found.append(["systemctl", verb, "--no-reload", UNIT])
    if wanted.running and status != "running" and not unit.without_mode:
        found.append(["systemctl", "start", UNIT])
    if not wanted.running and status == "running":
        found.append(["systemctl", "stop", UNIT])
    return found


def is_enabled(root: str = "/") -> bool:
    """Does a target start it at boot?"""
    return any(
        os.path.islink(path)
        for path in glob.glob(os.path.join(glob.escape(root), _WANTED_BY, UNIT))
    )


def _text(root: str, path: str) -> str | None:
    try:
        return read_text(os.path.join(root, path))
    except OSError:
        return None
