# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The initramfs of dracut where its image has Debian's name; hidden files of modprobe.d."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.boot import (
    generated,
    initramfs,
    manage,
)
from ansible_collections.steadygpu.host.plugins.module_utils.boot.model import BootError, Wish
from ansible_collections.steadygpu.host.plugins.module_utils.process import Completed

from .boot_tree import RELEASE, Tree

WISH = Wish(options={"nvme_core": (("multipath", "N"),)})
IMAGE = f"boot/initrd.img-{RELEASE}"


class Dracut(Tree):
    """A host with dracut, which writes where it is told to."""

    def run(self, argv: Sequence[str], **more: Any) -> Completed:
        done = super().run(argv, **more)
        if argv[0] == "dracut":
            self.write(argv[-2].lstrip("/"), "packed")
            self.initramfs.append("etc/modprobe.d/steadygpu.conf")
        return done


def test_dracut_on_debian_makes_the_image_that_is_booted(tmp_path: Path) -> None:
    tree = Dracut(tmp_path, programs=["dracut", "lsinitrd"])
    tree.initramfs = [f"usr/lib/modules/{RELEASE}/kernel/nvme-core.ko.xz"]
    for name in (RELEASE, "6.1.0-1-amd64", f"{RELEASE}.bak"):
        os.utime(tree.write(f"boot/initrd.img-{name}", "packed"), (1.0, 1.0))
    for name in (RELEASE, "6.1.0-1-amd64"):
        (tmp_path / "lib/modules" / name).mkdir(parents=True)
    wanted = [
        f"dracut --force /boot/initrd.img-{name} {name}" for name in ("6.1.0-1-amd64", RELEASE)
    ]
    would = manage.ensure(WISH, True, tree.machine)
    done = manage.ensure(WISH, False, tree.machine)
    assert f"run {' && '.join(wanted)}" in would.actions
    assert would.actions == done.actions
    assert [one for one in tree.ran if one.startswith("dracut")] == wanted
    assert manage.ensure(WISH, False, tree.machine).actions == []


def test_dracut_elsewhere_makes_them_all_as_ever(tmp_path: Path) -> None:
    tree = Dracut(tmp_path, programs=["dracut", "lsinitrd"])
    os.utime(tree.write(f"boot/initramfs-{RELEASE}.img", "packed"), (1.0, 1.0))
    (said,) = [initramfs.would_be("/etc/modprobe.d/steadygpu.conf", [], "always", tree.machine)]
    assert said == "dracut --force --regenerate-all"


def test_an_initramfs_that_is_not_found_is_told(tmp_path: Path) -> None:
    tree = Tree(tmp_path, programs=["dracut", "lsinitrd"])
    tree.write("etc/modprobe.d/steadygpu.conf", "options nvme_core multipath=N\n")
    judged = initramfs.judge("/etc/modprobe.d/steadygpu.conf", [], "always", "", tree.machine)
    assert RELEASE in judged.warning
    assert "make it anew with dracut" in judged.warning
    assert generated.refresh(str(tmp_path), tree.machine) == [judged.warning]
    never = initramfs.judge("/etc/modprobe.d/steadygpu.conf", [], "never", "", tree.machine)
    assert never.warning == ""


@pytest.mark.parametrize("package", ["usr/lib/modprobe.d", "usr/local/lib/modprobe.d"])
def test_a_copy_in_etc_hides_what_a_package_brought(tmp_path: Path, package: str) -> None:
    tree = Tree(tmp_path)
    tree.write(f"{package}/nvme.conf", "options nvme_core multipath=Y\n")
    with pytest.raises(BootError, match=r"put into /etc/modprobe\.d as nvme\.conf"):
        manage.ensure(WISH, False, tree.machine)
    tree.write("etc/modprobe.d/nvme.conf", "# without\n")
    manage.ensure(WISH, False, tree.machine)
