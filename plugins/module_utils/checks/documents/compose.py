# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What Compose itself refuses or ignores in a file, found while it is read. Pure.

The reader finds these, since they are about how the file is written, and rules give them their
words, so that each has an id, a severity and examples like everything else.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..model import Position


@dataclass(frozen=True)
class ComposeFault:
    """One thing in a Compose file that Compose refuses or ignores.

    ``kind`` is the rule's id. ``seen`` is what is there in one sentence, ``fix`` what to write
    instead with the file's own values ("" where the rule's general fix says it).
    ``empty``: a value is not there at all, which may be meant in an example. ``mild``: it may be
    right together with another file.
    """

    at: Position
    kind: str
    seen: str
    fix: str = ""
    empty: bool = False
    mild: bool = False
