# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""An empty recorded host for each test."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.steadygpu.host.tests.unit.module_utils.hardware.recorded_host import Host


@pytest.fixture
def host(tmp_path: Path) -> Host:
    """An empty root."""
    return Host(tmp_path)
