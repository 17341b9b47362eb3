# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What an owner remembers may change without anything being done to the host."""

from __future__ import annotations

from pathlib import Path

from ansible_collections.steadygpu.host.plugins.module_utils.settings import record
from ansible_collections.steadygpu.host.plugins.module_utils.settings.apply import Keeper
from ansible_collections.steadygpu.host.plugins.module_utils.settings.model import (
    BOOT_PARAMETER,
    BOOT_PARAMETER_ABSENT,
    Target,
)

KEPT = Target("iommu", BOOT_PARAMETER, "", "iommu=pt")
LEAVING = Target("no boot parameter quiet", BOOT_PARAMETER_ABSENT, "", "quiet")


def test_a_parameter_that_went_with_the_boot_is_forgotten_without_a_change(
    tmp_path: Path,
) -> None:
    root = str(tmp_path)
    assert Keeper("kernel", root=root).keep([KEPT, LEAVING]).changed
    assert not Keeper("kernel", root=root).keep([KEPT], extra={"leaving": []}).changed
    kept = record.load("kernel", root)
    assert kept is not None
    assert [one.target for one in kept.formers] == [KEPT]
    assert Keeper("kernel", root=root).keep([LEAVING]).changed
