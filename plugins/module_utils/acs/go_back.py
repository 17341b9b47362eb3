# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The registers of bridges between two records: for a restore of a checkpoint.

A register is in no file. With the record its former value would be lost, and nobody could give it
back before the next boot.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..settings.record import Record
from . import decide, manage, registers
from .decide import AcsError
from .scene import Scene, look


def go_back(
    now: Record | None, then: Record | None, root: str = "/", scene: Scene | None = None
) -> tuple[list[str], list[str]]:
    """Have the bridges as under ``then``. Returns what was done, and what could not be, in words.

    A bridge that is another one since, or that somebody else changed, stays as it is. Raises
    SettingsError for a record that cannot be understood.
    """
    ours, theirs = manage.known(now), manage.known(then)
    if not ours and not theirs:
        return [], []
    scene = scene or look(root)
    gone = {one: entry for one, entry in ours.items() if one not in theirs}
    back = manage.former_values(gone, scene)
    again = {
        one: manage.OFF
        for one, entry in theirs.items()
        if one not in ours and manage.is_same(one, entry, scene)
    }
    moves = {
        one: to
        for one, to in sorted({**back, **again}.items())
        if scene.bridges[one].control not in (None, to)
    }
    return _carry_out(moves, scene, root)


def _carry_out(moves: Mapping[str, int], scene: Scene, root: str) -> tuple[list[str], list[str]]:
    done, left = [], []
    for address, to in moves.items():
        text = f"set the ACS control of {address} to {to:04x}"
        # Isolation that comes back is asked of nobody but those whose traffic it moves.
        asked = scene if to == manage.OFF else scene.only_work()
        try:
            decide.refuse([address], asked)
            registers.write_control(address, to, root)
        except AcsError as error:
            left.append(f"{text}: {error}")
        except OSError as error:
            left.append(f"{text}: {error.strerror}")
        else:
            done.append(text)
    return done, left
