# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Versions as hosts spell them: ``26.1.5+dfsg1``, ``1.19.1-1``, ``550.163.01``."""

from __future__ import annotations

import re

_LEADING_NUMBERS = re.compile(r"(?:\d+:)?v?(\d+(?:\.\d+)*)")


def parse(text: str | None) -> tuple[int, ...]:
    """The leading dotted numbers of ``text`` as a tuple; () when there are none.

    An epoch (``5:28.5.2``) and everything after the numbers (Debian revision, ``+dfsg``,
    ``-rc.1``) are ignored: good enough to ask "at least", not to sort packages.
    """
    match = _LEADING_NUMBERS.match((text or "").strip())
    return tuple(int(part) for part in match.group(1).split(".")) if match else ()


def at_least(text: str | None, wanted: str) -> bool:
    """Is ``text`` a version that is ``wanted`` or newer? An unknown version is not."""
    have, want = parse(text), parse(wanted)
    width = max(len(have), len(want))
    return bool(have) and have + (0,) * (width - len(have)) >= want + (0,) * (width - len(want))
