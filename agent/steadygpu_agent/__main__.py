# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""``python -m steadygpu_agent``."""

from __future__ import annotations

import sys

from steadygpu_agent.cli import main

sys.exit(main())
