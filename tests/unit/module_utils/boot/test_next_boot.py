# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The next boot as wished: on each boot loader, repeated, killed, failed, and taken back."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.boot import generated, grub, manage
from ansible_collections.steadygpu.host.plugins.module_utils.boot.model import (
    BootError,
    Outcome,
    Wish,
)
from ansible_collections.steadygpu.host.plugins.module_utils.settings import record
from ansible_collections.steadygpu.host.tests.unit.module_utils.boot.boot_tree import (
    RELEASE,
    Tree,
    grub_config,
    snapshot,
)

PT = Wish(parameters=("iommu=pt",))
DROP_IN = "etc/default/grub.d/zz-steadygpu.cfg"
OPTIONS = "etc/modprobe.d/steadygpu.conf"


def verdicts(outcome: Outcome) -> dict[str, str]:
    return {setting.name: setting.verdict for setting in outcome.settings}


def ensure(tree: Tree, wish: Wish, check_mode: bool = False) -> Outcome:
    return manage.ensure(wish, check_mode, tree.machine)


def test_grub_a_parameter_is_pending_until_the_boot_and_gone_again(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    before = snapshot(tree)
    would = ensure(tree, PT, check_mode=True)
    assert snapshot(tree) == before
    assert tree.ran == []
    done = ensure(tree, PT)
    assert would.actions == done.actions == [f"write /{DROP_IN}", "run update-grub"]
    assert "iommu=pt" in done.diff[0]["after"]
    assert verdicts(done) == {"boot parameter iommu=pt": "pending"}
    assert ensure(tree, PT).actions == []
    tree.boots()
    after = ensure(tree, PT)
    assert (after.actions, verdicts(after)) == ([], {"boot parameter iommu=pt": "effective"})

    back = ensure(tree, Wish())
    assert back.actions == [f"remove /{DROP_IN}", "run update-grub"]
    assert verdicts(back) == {"no boot parameter iommu=pt": "pending"}
    assert record.owners(str(tmp_path)) == ["kernel"]
    assert ensure(tree, Wish()).actions == []
    tree.boots()
    # Nothing is left to do, and nothing to remember: no change that a second run would make.
    assert ensure(tree, Wish()).actions == []
    assert record.owners(str(tmp_path)) == []
    left = {k: v for k, v in snapshot(tree).items() if k != "proc/cmdline"}
    assert left == {k: v for k, v in before.items() if k != "proc/cmdline"}


def test_grub_recovery_entries_boot_without_ours(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    ensure(tree, PT)
    lines = [line for line in tree.read("boot/grub/grub.cfg").splitlines() if "linux\t" in line]
    assert ["iommu=pt" in line for line in lines] == [True, False]


def test_what_others_gave_already_is_theirs_and_stays(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    tree.write("etc/default/grub.d/50-cloud.cfg", 'GRUB_CMDLINE_LINUX="iommu=pt console=ttyS0"\n')
    tree.write("boot/grub/grub.cfg", grub_config(["iommu=pt", "console=ttyS0", "quiet"]))
    done = ensure(tree, PT)
    assert not (tmp_path / DROP_IN).exists()
    assert verdicts(done) == {"boot parameter iommu=pt": "pending"}
    ensure(tree, Wish())
    assert "iommu=pt" in tree.read("boot/grub/grub.cfg")


def test_two_values_of_one_parameter_name_the_file(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    tree.write("etc/default/grub.d/50-x.cfg", 'GRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX iommu=off"')
    with pytest.raises(BootError, match=r"/etc/default/grub.d/50-x.cfg has iommu=off"):
        ensure(tree, PT)
    assert tree.ran == []


def test_rows_12_and_14_nothing_is_written(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    before = snapshot(tree)
    with pytest.raises(BootError, match=r"pci=nomsi is refused.*\n.*cgroup_disable=memory is"):
        ensure(tree, Wish(parameters=("pci=nomsi", "cgroup_disable=memory", "iommu=pt")))
    assert snapshot(tree) == before
    assert record.owners(str(tmp_path)) == []


def test_a_host_that_no_boot_loader_started_is_unsupported_in_words(tmp_path: Path) -> None:
    tree = Tree(tmp_path, cmdline="root=/dev/vda rw console=ttyS0")
    before = snapshot(tree)
    done = ensure(tree, PT)
    assert done.loader == "none"
    assert verdicts(done) == {"boot parameter iommu=pt": "unsupported"}
    assert "hypervisor" in done.settings[0].reason
    assert "cannot be set on this host" in "".join(done.warnings)
    assert snapshot(tree) == before
    assert ensure(tree, PT).actions == []
    assert ensure(tree, Wish()).actions == []
    assert record.owners(str(tmp_path)) == []


def test_a_parameter_that_the_hypervisor_gave_is_effective(tmp_path: Path) -> None:
    tree = Tree(tmp_path, cmdline="root=/dev/vda iommu=pt")
    assert verdicts(ensure(tree, PT)) == {"boot parameter iommu=pt": "effective"}


def test_grub_is_there_and_its_configuration_is_elsewhere(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    tree.write("boot/grub/grub.cfg", "configfile /other/grub.cfg\n")
    done = ensure(tree, PT)
    assert "kept elsewhere" in done.settings[0].reason


def test_a_line_that_a_later_file_overrides_gives_nothing(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    tree.write("etc/default/grub", 'GRUB_CMDLINE_LINUX_DEFAULT="quiet iommu=pt mitigations=off"\n')
    tree.write("etc/default/grub.d/50-cloud.cfg", 'GRUB_CMDLINE_LINUX_DEFAULT="console=ttyS0"\n')
    tree.write("boot/grub/grub.cfg", grub_config(["console=ttyS0"]))
    assert not grub.Grub(tree.machine).out_of_date()
    ensure(tree, Wish(parameters=("iommu=pt", "mitigations=auto")))
    assert "console=ttyS0 iommu=pt mitigations=auto" in tree.read("boot/grub/grub.cfg")


def test_files_are_read_in_order_as_a_shell_does(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    tree.write("etc/default/grub", 'GRUB_CMDLINE_LINUX="a=1"\nGRUB_CMDLINE_LINUX+=" b=2"\n')
    text = 'GRUB_CMDLINE_LINUX_DEFAULT="c=3 $GRUB_CMDLINE_LINUX"  # site\n'
    tree.write("etc/default/grub.d/10-x.cfg", text)
    found = [word for word, _path in grub.Grub(tree.machine).others(())]
    assert found == ["a=1", "b=2", "c=3", "a=1", "b=2"]


def test_a_boot_without_the_boot_loader_forgets_nothing(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    ensure(tree, PT)
    tree.boots()
    tree.write("proc/cmdline", "root=UUID=0a ro quiet kexec_by=hand\n")
    done = ensure(tree, Wish(parameters=("iommu=pt", "mitigations=auto")))
    assert done.actions == []
    assert verdicts(done) == {
        "boot parameter iommu=pt": "pending",
        "boot parameter mitigations=auto": "unsupported",
    }
    assert "iommu=pt" in tree.read(DROP_IN)
    back = ensure(tree, Wish())
    assert back.actions == []
    assert "iommu=pt: still configured" in back.warnings[0]
    tree.boots()
    assert ensure(tree, Wish()).actions == [f"remove /{DROP_IN}", "run update-grub"]
    assert "iommu=pt" not in tree.read("boot/grub/grub.cfg")


def test_a_word_of_one_entry_only_is_written_to_all(tmp_path: Path) -> None:
    tree = Tree(tmp_path, programs=["grubby"])
    tree.programs.discard("update-grub")
    tree.entries[1].append("iommu=pt")
    ensure(tree, PT)
    assert all("iommu=pt" in entry for entry in tree.entries)


def test_a_failing_update_grub_puts_everything_back(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    before = snapshot(tree)
    tree.broken.add("update-grub")
    with pytest.raises(BootError, match=r"it is broken\n.*as it was before"):
        ensure(tree, PT)
    assert snapshot(tree) == before
    assert record.owners(str(tmp_path)) == []


def test_a_grub_that_does_not_take_the_drop_in_is_an_error(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    tree.write("etc/default/grub.d/zzz.cfg", 'GRUB_CMDLINE_LINUX_DEFAULT="quiet"\n')
    with pytest.raises(BootError, match="still do not have iommu=pt"):
        ensure(tree, PT)
    assert not (tmp_path / DROP_IN).exists()


def test_a_run_that_was_killed_before_update_grub_is_completed(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    tree.write(DROP_IN, grub.drop_in(["iommu=pt"]) or "")
    assert ensure(tree, PT).actions[-1] == "run update-grub"
    # The same of a removal.
    tree.write("boot/grub/grub.cfg", grub_config(["quiet", "iommu=pt"]))
    (tmp_path / DROP_IN).unlink()
    assert "run update-grub" in ensure(tree, Wish()).actions
    assert "iommu=pt" not in tree.read("boot/grub/grub.cfg")


def test_a_foreign_file_of_our_name_is_left_alone(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    tree.write(OPTIONS, "blacklist floppy\n")
    with pytest.raises(Exception, match="and was left alone"):
        ensure(tree, Wish(blacklist=("nouveau",)))
    assert tree.read(OPTIONS) == "blacklist floppy\n"


def test_grubby_adds_to_all_entries_and_takes_out_only_ours(tmp_path: Path) -> None:
    tree = Tree(tmp_path, programs=["grubby"])
    tree.programs.discard("update-grub")
    done = ensure(tree, PT)
    assert (done.loader, done.actions) == (
        "grubby",
        ["run grubby --update-kernel=ALL --args=iommu=pt"],
    )
    assert tree.entries == [["ro", "crashkernel=1G", "iommu=pt"]] * 2
    assert ensure(tree, PT).actions == []
    changed = ensure(tree, Wish(parameters=("numa_balancing=disable",)))
    assert "--remove-args=iommu=pt --args=numa_balancing=disable" in changed.actions[-1]
    ensure(tree, Wish())
    assert tree.entries == [["ro", "crashkernel=1G"]] * 2
    with pytest.raises(BootError, match="crashkernel=1G: take it out there"):
        ensure(tree, Wish(parameters=("crashkernel=512M",)))


def systemd_boot(tmp_path: Path) -> Tree:
    tree = Tree(tmp_path, cmdline="root=LABEL=x ro", programs=["kernel-install"])
    info = "sys/firmware/efi/efivars/LoaderInfo-4a67b082-0a4c-41cf-b6c7-440b29bb8c4f"
    path = tree.write(info, "")
    path.write_bytes(b"\x06\0\0\0" + "systemd-boot 257".encode("utf-16-le"))
    tree.entry(RELEASE, "root=LABEL=x ro")
    tree.write(f"boot/vmlinuz-{RELEASE}", "")
    return tree


def test_systemd_boot_the_shared_file_keeps_what_others_wrote(tmp_path: Path) -> None:
    tree = systemd_boot(tmp_path)
    tree.write("etc/kernel/cmdline", "root=LABEL=x ro\n")
    before = snapshot(tree)
    done = ensure(tree, PT)
    assert (done.loader, tree.read("etc/kernel/cmdline")) == (
        "systemd-boot",
        "root=LABEL=x ro iommu=pt\n",
    )
    assert done.actions == [
        "/etc/kernel/cmdline: add iommu=pt",
        f"run kernel-install add {RELEASE}",
    ]
    assert "iommu=pt" in tree.read(f"efi/loader/entries/{RELEASE}.conf")
    assert ensure(tree, PT).actions == []
    ensure(tree, Wish())
    assert snapshot(tree) == before


def test_entries_of_systemd_boot_fit_the_file_that_was_put_back(tmp_path: Path) -> None:
    tree = systemd_boot(tmp_path)
    tree.write("etc/kernel/cmdline", "root=LABEL=x ro\n")
    ensure(tree, PT)
    assert generated.refresh(str(tmp_path), tree.machine) == []
    tree.write("etc/kernel/cmdline", "root=LABEL=x ro\n")
    assert len(generated.refresh(str(tmp_path), tree.machine)) == 1
    assert "iommu=pt" not in tree.read(f"efi/loader/entries/{RELEASE}.conf")
    assert generated.refresh(str(tmp_path), tree.machine) == []


def test_systemd_boot_without_a_command_line_of_its_own_says_what_to_do(tmp_path: Path) -> None:
    done = ensure(systemd_boot(tmp_path), PT)
    assert "Write that file first" in done.settings[0].reason


@pytest.mark.parametrize(
    ("wish", "said"),
    [
        (Wish(blacklist=("nvidia-uvm",)), "driver of the GPUs"),
        (Wish(blacklist=("nvme",)), "drives 0000:01:00.0, a disk controller"),
        (Wish(blacklist=("xfs",)), "file system of /data"),
        (Wish(parameters=("module_blacklist=floppy,nvme",)), "nvme drives 0000:01:00.0"),
        (Wish(parameters=("modprobe.blacklist=nvidia-uvm",)), "driver of the GPUs"),
        (Wish(parameters=("rd.driver.blacklist=xfs",)), "file system of /data"),
        (Wish(modules=("nosuch",)), f"the running kernel {RELEASE} has no module nosuch"),
        (Wish(modules=("dummy",)), "/etc/modprobe.d/site.conf has blacklist dummy"),
        (Wish(options={"nvme_core": (("io_timeout", "9"),)}), "gives nvme_core io_timeout=30"),
        (Wish(options={"nouveau": (("modset", "0"),)}), "nouveau has no option modset=0"),
        (Wish(modules=("a b",)), "no name of a module"),
        (Wish(options={"x": (("y", "1 install z /bin/sh"),)}), "without blanks"),
        (Wish(modules=("dm_mod",), blacklist=("dm-mod",)), "to be loaded and to be kept away"),
    ],
)
def test_what_would_not_boot_or_not_act_is_refused(tmp_path: Path, wish: Wish, said: str) -> None:
    tree = Tree(tmp_path)
    tree.missing_modules.add("nosuch")
    tree.write("sys/module/nvme/drivers/pci:nvme/0000:01:00.0/class", "0x010802\n")
    tree.write("proc/mounts", "/dev/nvme0n1p1 /data xfs rw 0 0\n")
    tree.write("etc/modprobe.d/site.conf", "blacklist dummy\noptions nvme_core io_timeout=30\n")
    before = snapshot(tree)
    with pytest.raises(BootError, match=re.escape(said)):
        ensure(tree, wish)
    assert snapshot(tree) == before
    assert record.owners(str(tmp_path)) == []


def test_files_that_a_way_back_has_changed_reach_the_next_boot(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    tree.initramfs_of("nouveau")
    ensure(tree, Wish(parameters=("iommu=pt",), blacklist=("nouveau",)))
    assert generated.refresh(str(tmp_path), tree.machine) == []
    for path in (DROP_IN, OPTIONS):
        os.unlink(tmp_path / path)
    said = generated.refresh(str(tmp_path), tree.machine)
    assert len(said) == 2
    assert "iommu=pt" not in tree.read("boot/grub/grub.cfg")
    assert OPTIONS not in tree.initramfs
    assert generated.refresh(str(tmp_path), tree.machine) == []
    tree.write(DROP_IN, grub.drop_in(["iommu=pt"]) or "")
    tree.broken.add("update-grub")
    assert (
        "update-grub failed:\nupdate-grub: it is broken"
        in generated.refresh(str(tmp_path), tree.machine)[0]
    )
