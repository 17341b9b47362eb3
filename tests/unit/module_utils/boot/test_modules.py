# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Modules loaded, kept away and given options, and the initramfs that has its own copy."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.boot import manage
from ansible_collections.steadygpu.host.plugins.module_utils.boot.model import (
    BootError,
    Outcome,
    Softdep,
    Wish,
)
from ansible_collections.steadygpu.host.tests.unit.module_utils.boot.boot_tree import (
    RELEASE,
    Tree,
)

OPTIONS = "etc/modprobe.d/steadygpu.conf"


def verdicts(outcome: Outcome) -> dict[str, str]:
    return {setting.name: setting.verdict for setting in outcome.settings}


def ensure(tree: Tree, wish: Wish, check_mode: bool = False) -> Outcome:
    return manage.ensure(wish, check_mode, tree.machine)


def test_a_module_that_is_built_in_needs_no_loading(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    tree.write(f"lib/modules/{RELEASE}/modules.builtin", "kernel/fs/configfs/configfs.ko\n")
    wish = Wish(modules=("configfs",))
    assert verdicts(ensure(tree, wish)) == {"module configfs": "effective"}
    assert tree.ran == []
    assert ensure(tree, wish).actions == []


def test_complaint_24_nouveau_is_kept_away_and_waits_for_a_boot(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    tree.loaded("nouveau", modeset="-1")
    tree.initramfs_of("nouveau")
    wish = Wish(blacklist=("nouveau",), options={"nouveau": (("modeset", "0"),)})
    again = "run update-initramfs -u -k all"
    assert ensure(tree, wish, check_mode=True).actions == [f"write /{OPTIONS}", again]
    done = ensure(tree, wish)
    assert done.actions == [f"write /{OPTIONS}", again]
    assert tree.read(OPTIONS).splitlines()[1:] == ["blacklist nouveau", "options nouveau modeset=0"]
    assert verdicts(done) == {"no module nouveau": "pending", "nouveau option modeset": "pending"}
    assert ensure(tree, wish).actions == []
    # Its own copy would still keep nouveau away.
    would = ensure(tree, Wish(), check_mode=True).actions
    assert ensure(tree, Wish()).actions == would == [f"remove /{OPTIONS}", again]
    assert OPTIONS not in tree.initramfs


def test_an_initramfs_without_the_module_is_left_alone(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    tree.initramfs_of("virtio_blk")
    wish = Wish(blacklist=("nouveau",))
    assert ensure(tree, wish).actions == [f"write /{OPTIONS}"]
    assert ensure(tree, wish).actions == []
    assert [one for one in tree.ran if "initramfs" in one] == []


def test_a_run_that_was_killed_before_the_initramfs_is_completed(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    tree.initramfs_of("nouveau")
    wish = Wish(blacklist=("nouveau",))
    tree.broken.add("update-initramfs")
    with pytest.raises(BootError):
        ensure(tree, wish)
    tree.broken.clear()
    tree.write(
        OPTIONS,
        "# Kept by steadygpu.host (role kernel); changes made by hand are lost at the "
        "next run.\nblacklist nouveau\n",
    )
    assert ensure(tree, wish).actions[-1] == "run update-initramfs -u -k all"


def test_a_module_is_loaded_now_and_at_boot_and_not_torn_out(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    softdep = Softdep(("i2c-core",), ("nvidia-uvm",))
    wish = Wish(modules=("br_netfilter",), softdeps={"nvidia": softdep})
    done = ensure(tree, wish)
    assert "load the module br_netfilter" in done.actions
    assert verdicts(done) == {"module br_netfilter": "effective"}
    assert "softdep nvidia pre: i2c-core post: nvidia-uvm\n" in tree.read(OPTIONS)
    assert ensure(tree, wish).actions == []
    gone = ensure(tree, Wish())
    assert "br_netfilter: loaded until the next boot" in gone.warnings[0]
    assert ensure(tree, Wish()).warnings == []


def test_a_value_that_the_module_has_already_is_effective(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    tree.loaded("nvme_core", multipath="Y")
    wish = Wish(options={"nvme_core": (("multipath", "1"),)})
    assert verdicts(ensure(tree, wish)) == {"nvme_core option multipath": "effective"}


def test_options_of_the_driver_are_read_where_it_shows_them(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    tree.loaded("nvidia")
    tree.write("proc/driver/nvidia/params", "ResmanDebugLevel: 4294967295\nEnableGpuFirmware: 18\n")
    firmware, other = ("NVreg_EnableGpuFirmware", "18"), ("NVreg_NoSuch", "1")
    found = verdicts(ensure(tree, Wish(options={"nvidia": (firmware, other)})))
    assert found == {
        "nvidia option NVreg_EnableGpuFirmware": "effective",
        "nvidia option NVreg_NoSuch": "unsupported",
    }


def test_an_option_of_a_package_is_told_once_and_how_to_change_it(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    tree.write("usr/lib/modprobe.d/systemd.conf", "options nvme_core multipath=0\n")
    (tmp_path / "lib").symlink_to("usr/lib")
    with pytest.raises(BootError) as refused:
        ensure(tree, Wish(options={"nvme_core": (("multipath", "Y"),)}))
    assert str(refused.value).count("systemd.conf gives nvme_core multipath=0") == 1
    assert "a copy that you put into /etc/modprobe.d as systemd.conf" in str(refused.value)


def test_an_option_of_a_module_that_is_not_loaded_waits_for_no_boot(tmp_path: Path) -> None:
    done = ensure(Tree(tmp_path), Wish(options={"nouveau": (("modeset", "0"),)}))
    assert verdicts(done) == {"nouveau option modeset": "inert"}
    assert "it takes the option when it is" in done.settings[0].reason
