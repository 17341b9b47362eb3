# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The made-up host of these tests."""

from ansible_collections.steadygpu.host.tests.unit.module_utils.driver_set.driver_host import (
    driven,
    host,
    machine,
)

__all__ = ["driven", "host", "machine"]
