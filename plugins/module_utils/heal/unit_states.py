# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Units as they are: what systemd says of them, and whether their links say that they start."""

from __future__ import annotations

from collections.abc import Sequence

from ..engine.services import parse_show
from ..process import CommandMissingError, run
from ..units import file_states
from .model import UnitState

_PROPERTIES = "--property=Id,LoadState,ActiveState,UnitFileState,After"


def read(names: Sequence[str], deadline_s: float = 20.0) -> dict[str, UnitState]:
    """The named units; {} without systemd."""
    try:
        done = run(["systemctl", "show", _PROPERTIES, *names], deadline_s)
    except CommandMissingError:
        return {}
    # systemd answers in the order asked, also for an alias, which has another Id.
    told = dict(zip(names, parse_show(done.stdout)))
    loaded = [name for name in told if told[name].get("LoadState") == "loaded"]
    links = file_states(loaded, deadline_s)
    return {
        name: UnitState(
            one.get("LoadState", "not-found"),
            links.get(name, one.get("UnitFileState", "")),
            one.get("ActiveState", ""),
            frozenset(one.get("After", "").split()),
        )
        for name, one in told.items()
    }
