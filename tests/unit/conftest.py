# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How hypothesis runs here: the same examples every time, on a machine of any speed."""

from __future__ import annotations

from hypothesis import settings

# No deadline: a busy machine is no fault of the code. Derandomised: a lane that failed fails again.
# `pytest --hypothesis-profile search` looks for examples that were never tried.
settings.register_profile("lane", deadline=None, derandomize=True)
settings.register_profile("search", deadline=None, max_examples=2000)
settings.load_profile("lane")
