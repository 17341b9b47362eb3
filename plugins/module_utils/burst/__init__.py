# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""CPU burst of slices: ``cpu.max.burst``, which systemd has no property for.

The kernel refuses a quota below the burst. So the burst is what follows: it is lowered before a
quota is, and brought back up to what the new quota allows.
"""

from __future__ import annotations
