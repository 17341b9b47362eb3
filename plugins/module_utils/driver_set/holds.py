# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The driver's packages held, and holds of ours released."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..package_sets.model import PackageError
from ..process import CommandMissingError
from . import names
from .host import Host, Outcome
from .model import View, Wish
from .transaction import Transaction


def holding(
    wish: Wish, view: View, made: Transaction | None, extra: Mapping[str, Any]
) -> dict[str, bool]:
    """What is to be held now, or of ours released."""
    there = view.installed.packages
    wanted = _wanted(wish, view, made)
    found = {one: True for one in wanted if one not in there or not there[one].held}
    for one in extra.get("holds", []):
        if one not in wanted and one in there and there[one].held:
            found[one] = False
    return found


def ours(
    wish: Wish,
    view: View,
    made: Transaction | None,
    extra: Mapping[str, Any],
    holding_now: Mapping[str, bool],
) -> list[str]:
    """The holds that are ours afterwards."""
    wanted = _wanted(wish, view, made)
    kept = (one for one in extra.get("holds", []) if one in wanted)
    return sorted({*kept, *(one for one in holding_now if holding_now[one])})


def hold(
    host: Host,
    wish: Wish,
    view: View,
    named: Sequence[str],
    held: bool,
    done: Outcome,
    check_mode: bool,
) -> bool:
    """Hold or release these. False where dnf could not; where dpkg could not, PackageError."""
    if not named:
        return True
    if not check_mode:
        manager = host.manager(Wish(), view)
        manager.wait_until_free(wish.lock_timeout_s)
        try:
            manager.hold(dict.fromkeys(named, held))
        except (PackageError, CommandMissingError) as error:
            if view.installed.manager == "dpkg":
                raise
            # A driver that works is no reason to stop for a lock.
            verb = "held" if held else "released"
            done.warnings.append(f"the driver's packages are not {verb}: {error}")
            return False
    done.actions.append(f"{'hold' if held else 'no longer hold'} {', '.join(named)}")
    kernel = [one for one in named if not names.is_driver(one)]
    if kernel and held:
        done.warnings.append(
            f"{', '.join(kernel)}: held with the driver, whose modules come ready for one kernel "
            "after the other. A newer kernel without them would boot without GPUs. Release both "
            "together (hold: false) to upgrade them together"
        )
    return True


def _wanted(wish: Wish, view: View, made: Transaction | None) -> list[str]:
    if not wish.hold or view.is_vendor_image or not view.can_hold:
        return []
    return names.to_hold([*view.installed.packages, *(made.after if made else ())])
