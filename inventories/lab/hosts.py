#!/usr/bin/env python
# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Ansible inventory of the lab hosts that run in this checkout.

``STEADYGPU_LAB_HOSTS=name,name`` keeps only those. The work is done by tests/lab.
"""

from __future__ import annotations

import os
import sys

LAB = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tests", "lab")

if "--host" in sys.argv[1:]:
    # Every variable is in the answer to --list, under _meta.
    print("{}")
else:
    os.execv(sys.executable, [sys.executable, LAB, "inventory"])
