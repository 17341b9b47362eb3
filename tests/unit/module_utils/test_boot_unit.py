# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Units that run at boot: written, enabled, removed, and never somebody else's."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils import boot_unit

UNIT = boot_unit.BootUnit("steadygpu-x.service", "# Written by x.\n[Service]\nType=oneshot\n")
PATH = "etc/systemd/system/steadygpu-x.service"
LINK = "etc/systemd/system/multi-user.target.wants/steadygpu-x.service"


def test_it_is_written_and_enabled_once_and_removed_once(tmp_path: Path) -> None:
    root = str(tmp_path)
    told = boot_unit.install(UNIT, check_mode=True, root=root)
    assert told == [f"write /{PATH}", "enable steadygpu-x.service"]
    assert list(tmp_path.iterdir()) == []
    assert boot_unit.install(UNIT, check_mode=False, root=root) == told
    assert (tmp_path / PATH).read_text() == UNIT.text
    assert os.readlink(tmp_path / LINK) == f"/{PATH}"
    assert boot_unit.install(UNIT, check_mode=False, root=root) == []
    told = boot_unit.remove(UNIT, check_mode=True, root=root)
    assert told == ["disable steadygpu-x.service", f"remove /{PATH}"]
    assert boot_unit.remove(UNIT, check_mode=False, root=root) == told
    assert not (tmp_path / PATH).exists()
    assert not os.path.lexists(tmp_path / LINK)
    assert boot_unit.remove(UNIT, check_mode=False, root=root) == []


def test_an_older_text_of_ours_is_replaced(tmp_path: Path) -> None:
    old = boot_unit.BootUnit(UNIT.name, "# Written by x.\n[Service]\nType=simple\n")
    boot_unit.install(old, check_mode=False, root=str(tmp_path))
    assert boot_unit.install(UNIT, check_mode=False, root=str(tmp_path)) == [f"write /{PATH}"]


@pytest.mark.parametrize("kind", ["written", "empty", "masked"])
def test_somebody_elses_is_neither_written_nor_removed(tmp_path: Path, kind: str) -> None:
    path = tmp_path / PATH
    path.parent.mkdir(parents=True)
    if kind == "masked":
        path.symlink_to("/dev/null")
    else:
        path.write_text("[Service]\nExecStart=/bin/true\n" if kind == "written" else "")
    before = path.lstat()
    with pytest.raises(boot_unit.ForeignUnitError, match=r"steadygpu-x\.service is not of"):
        boot_unit.install(UNIT, check_mode=False, root=str(tmp_path))
    assert boot_unit.remove(UNIT, check_mode=False, root=str(tmp_path)) == []
    assert path.lstat() == before


def test_a_kill_between_text_and_link_is_made_good(tmp_path: Path) -> None:
    boot_unit.install(UNIT, check_mode=False, root=str(tmp_path))
    (tmp_path / LINK).unlink()
    again = boot_unit.install(UNIT, check_mode=False, root=str(tmp_path))
    assert again == ["enable steadygpu-x.service"]
    assert (tmp_path / LINK).is_symlink()
