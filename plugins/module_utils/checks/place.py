# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where a finding about a host stands: in the text that named a version, else the host. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from .host import HostView
from .model import Position

# The key of a view's evidence under which ``mentions.view`` keeps places, by component.
MENTIONS = "mentions"


def place(host: HostView, component: str = "") -> Position:
    """Where a text named ``component``, or anything; the host itself where no text did."""
    named = host.evidence.get(MENTIONS)
    places = named if isinstance(named, Mapping) else {}
    at = places.get(component)
    if isinstance(at, Position):
        return at
    known = [place for place in places.values() if isinstance(place, Position)]
    return min(known, default=Position(host.name or "host"))
