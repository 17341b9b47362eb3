# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Disks of a scratch tree: what lies on which, and settings that come, stay and go."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.io_control import manage, reader
from ansible_collections.steadygpu.host.plugins.module_utils.io_control.model import (
    IoError,
    parse_devices,
)
from ansible_collections.steadygpu.host.plugins.module_utils.settings import record
from ansible_collections.steadygpu.host.plugins.module_utils.settings.model import SettingsError

LIST = "none [mq-deadline]\n"
QOS = "sys/fs/cgroup/io.cost.qos"


class Tree:
    """``sda`` with a partition under ``dm-0``, ``nvme0n1``, and a loop device on a file."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.write("proc/sys/kernel/osrelease", "6.12.0\n")
        self.write("lib/modules/6.12.0/modules.dep", "kernel/block/bfq.ko.xz:\n")
        self.write("sys/fs/cgroup/cgroup.controllers", "cpu io memory\n")
        self.write(QOS, "")
        self.disk("sda", "8:0", LIST)
        self.disk("nvme0n1", "259:0", "[none] mq-deadline\n")
        self.write("sys/devices/nvme0n1/wwid", "eui.0025\n")
        self.write("sys/devices/sda/sda2/partition", "2\n")
        self.write("sys/devices/sda/sda2/dev", "8:2\n")
        self.link("sys/class/block/sda2", "sys/devices/sda/sda2")
        self.write("sys/devices/dm-0/dev", "253:0\n")
        self.link("sys/class/block/dm-0", "sys/devices/dm-0")
        self.link("sys/devices/dm-0/slaves/sda2", "sys/devices/sda/sda2")
        self.link("sys/block/dm-0", "sys/devices/dm-0")

    def disk(self, name: str, number: str, scheduler: str) -> None:
        self.write(f"sys/devices/{name}/dev", number + "\n")
        self.write(f"sys/devices/{name}/size", "1000\n")
        self.write(f"sys/devices/{name}/queue/scheduler", scheduler)
        self.write(f"sys/devices/{name}/device/model", "x\n")
        self.link(f"sys/class/block/{name}", f"sys/devices/{name}")
        self.link(f"sys/block/{name}", f"sys/devices/{name}")

    def write(self, path: str, text: str) -> None:
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text)

    def link(self, path: str, target: str) -> None:
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).symlink_to(self.root / target)

    def text(self, path: str) -> str:
        return (self.root / path).read_text()

    def keep(self, devices: dict[str, Any], check_mode: bool = False) -> manage.Outcome:
        return manage.keep(parse_devices(devices), check_mode, str(self.root))


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


def test_disks_with_a_device_behind_them_are_disks(tree: Tree) -> None:
    tree.disk("sr0", "11:0", LIST)
    tree.disk("sdz", "8:99", LIST)
    tree.write("sys/devices/sdz/size", "0\n")
    assert [disk.name for disk in reader.all_disks(str(tree.root))] == ["nvme0n1", "sda"]


def test_what_lies_on_what(tree: Tree) -> None:
    (disk,) = reader.resolve("dm-0", str(tree.root))
    assert (disk.name, disk.through) == ("sda", ("dm-0", "sda2"))
    (disk,) = reader.resolve("sda", str(tree.root))
    assert disk.through == ()
    tree.link("sys/devices/dm-0/slaves/nvme0n1", "sys/devices/nvme0n1")
    assert [disk.name for disk in reader.resolve("dm-0", str(tree.root))] == ["nvme0n1", "sda"]
    with pytest.raises(IoError, match="wanted one of nvme0n1, sda"):
        reader.resolve("sdq", str(tree.root))
    with pytest.raises(IoError, match="No such file"):
        reader.resolve("/dev/nothing", str(tree.root))
    tree.write("srv/file", "")
    with pytest.raises(IoError, match="without a block device"):
        reader.resolve("/srv/file", str(tree.root))
    with pytest.raises(IoError, match=r"/srv/not/yet lies on a file system"):
        reader.resolve("/srv/not/yet", str(tree.root))


def test_a_scheduler_whose_module_is_not_loaded_yet_is_there(tree: Tree) -> None:
    assert "bfq" in reader.read_disk("sda", str(tree.root)).schedulers
    tree.write("lib/modules/6.12.0/modules.dep", "")
    assert "bfq" not in reader.read_disk("sda", str(tree.root)).schedulers


def test_an_identity_that_udev_could_misread_is_none(tree: Tree) -> None:
    assert reader.read_disk("nvme0n1", str(tree.root)).identity == ("wwid", "eui.0025")
    for bad in ("*", "   ", "0000"):
        tree.write("sys/devices/nvme0n1/wwid", bad + "\n")
        assert reader.read_disk("nvme0n1", str(tree.root)).identity is None


def test_iocost_comes_stays_and_goes(tree: Tree) -> None:
    wanted = {"sda": {"iocost": True}}
    foreseen = tree.keep(wanted, check_mode=True)
    assert tree.text(QOS) == ""
    outcome = tree.keep(wanted)
    assert outcome.actions == foreseen.actions
    assert tree.text(QOS) == "8:0 enable=1 ctrl=auto\n"
    assert [one.verdict for one in outcome.settings] == ["effective"]
    assert outcome.weights["sda"] == "io.weight acts by iocost"
    unit = tree.root / "etc/systemd/system/steadygpu-io.service"
    assert "ExecStart=/usr/local/bin/steadygpu io apply" in unit.read_text()
    assert tree.keep(wanted).actions == []
    manage.absent(False, str(tree.root))
    assert tree.text(QOS) == "8:0 enable=0 ctrl=auto\n"
    assert not unit.exists()
    assert record.owners(str(tree.root)) == []
    assert manage.absent(False, str(tree.root)).actions == []


def test_a_scheduler_comes_back_as_it_was_and_the_rule_goes(tree: Tree) -> None:
    path = "sys/block/sda/queue/scheduler"
    rules = tree.root / "etc/udev/rules.d/90-steadygpu-io.rules"
    outcome = tree.keep({"dm-0": {"scheduler": "none"}})
    assert "set sda scheduler to none (was mq-deadline)" in outcome.actions
    assert any("dm-0 lies on sda" in one for one in outcome.warnings)
    assert rules.exists()
    # The kernel would bracket its choice; a file holds what was written.
    tree.write(path, "[none] mq-deadline\n")
    assert tree.keep({"dm-0": {"scheduler": "none"}}).actions == []
    manage.absent(False, str(tree.root))
    assert tree.text(path).strip() == "mq-deadline"
    assert not rules.exists()


def test_a_disk_that_is_not_named_any_more_is_put_back(tree: Tree) -> None:
    tree.keep({"sda": {"iocost": True}, "nvme0n1": {"iocost": True}})
    tree.keep({"sda": {"iocost": True}})
    assert sorted(tree.text(QOS).splitlines()) == [
        "259:0 enable=0 ctrl=auto",
        "8:0 enable=1 ctrl=auto",
    ]


def test_at_boot_a_disk_may_have_another_number(tree: Tree) -> None:
    assert manage.apply_kept(str(tree.root)) is None
    tree.keep({"sda": {"iocost": True}})
    tree.write(QOS, "")
    tree.write("sys/devices/sda/dev", "8:32\n")
    outcome = manage.apply_kept(str(tree.root))
    assert outcome is not None
    assert tree.text(QOS) == "8:32 enable=1 ctrl=auto\n"
    kept = record.load("io", str(tree.root))
    assert kept is not None
    assert [former.target.wanted for former in kept.formers] == ["8:32 enable=1 ctrl=auto"]


def test_at_boot_a_disk_that_is_gone_stays_wanted(tree: Tree) -> None:
    tree.keep({"sda": {"iocost": True}, "nvme0n1": {"iocost": True}})
    tree.write(QOS, "")
    (tree.root / "sys/class/block/nvme0n1").unlink()
    outcome = manage.apply_kept(str(tree.root))
    assert outcome is not None
    assert tree.text(QOS) == "8:0 enable=1 ctrl=auto\n"
    assert any(one.startswith("nvme0n1: ") for one in outcome.warnings)
    kept = record.load("io", str(tree.root))
    assert kept is not None
    assert set(kept.extra["devices"]) == {"sda", "nvme0n1"}


def test_a_kernel_without_bfq_and_without_iocost_says_so(tree: Tree) -> None:
    tree.write("lib/modules/6.12.0/modules.dep", "")
    (tree.root / QOS).unlink()
    outcome = tree.keep({"sda": {"scheduler": "bfq"}, "nvme0n1": {"iocost": True}})
    assert {one.verdict for one in outcome.settings} == {"unsupported"}
    assert not (tree.root / "etc/udev/rules.d").exists()
    assert tree.text("sys/block/sda/queue/scheduler") == LIST


@pytest.mark.parametrize(
    ("controllers", "said"), [(None, "cgroup v2"), ("cpu memory\n", "io controller is missing")]
)
def test_a_host_without_the_io_controller(tree: Tree, controllers: str | None, said: str) -> None:
    path = tree.root / "sys/fs/cgroup/cgroup.controllers"
    path.unlink()
    if controllers:
        path.write_text(controllers)
    outcome = tree.keep({"sda": {"iocost": True}})
    assert [one.verdict for one in outcome.settings] == ["unsupported"]
    assert said in outcome.settings[0].reason
    assert said in outcome.weights["sda"]


def test_at_boot_a_kernel_that_lacks_something_takes_nothing_away(tree: Tree) -> None:
    tree.keep({"sda": {"scheduler": "bfq"}, "nvme0n1": {"iocost": True}})
    before = record.load("io", str(tree.root))
    tree.write("sys/block/sda/queue/scheduler", LIST)
    tree.write("lib/modules/6.12.0/modules.dep", "")
    (tree.root / QOS).unlink()
    outcome = manage.apply_kept(str(tree.root))
    assert outcome is not None
    assert {one.verdict for one in outcome.settings} == {"unsupported"}
    assert (tree.root / "etc/udev/rules.d/90-steadygpu-io.rules").exists()
    assert (tree.root / "etc/systemd/system/steadygpu-io.service").exists()
    assert record.load("io", str(tree.root)) == before


def test_at_boot_what_one_disk_refuses_keeps_no_other_from_its_own(tree: Tree) -> None:
    tree.keep({"*": {"iocost": True}})
    tree.write(QOS, "")
    tree.write("sys/block/nvme0n1/queue/scheduler", "[bfq] none\n")
    outcome = manage.apply_kept(str(tree.root))
    assert outcome is not None
    assert tree.text(QOS) == "8:0 enable=1 ctrl=auto\n"
    assert any("nvme0n1 is scheduled by bfq now" in one for one in outcome.warnings)


def test_a_disk_with_another_name_after_a_boot_is_put_back_as_it_was(tree: Tree) -> None:
    tree.keep({"nvme0n1": {"scheduler": "bfq"}})
    # The rule of udev gave it bfq under its new name; another disk has the old one.
    tree.disk("nvme1n1", "259:1", "[bfq] none mq-deadline\n")
    tree.write("sys/devices/nvme1n1/wwid", "eui.0025\n")
    tree.write("sys/devices/nvme0n1/wwid", "eui.0026\n")
    tree.write("sys/block/nvme0n1/queue/scheduler", "none [bfq] mq-deadline\n")
    tree.keep({"nvme1n1": {"scheduler": "bfq"}})
    manage.absent(False, str(tree.root))
    assert tree.text("sys/block/nvme1n1/queue/scheduler").strip() == "none"
    assert tree.text("sys/block/nvme0n1/queue/scheduler") == "none [bfq] mq-deadline\n"


def test_a_qos_that_is_not_named_any_more_is_taken_back(tree: Tree) -> None:
    tree.keep({"sda": {"iocost": True, "qos": {"rpct": 95, "rlat": 5000}}})
    tree.write(QOS, "8:0 enable=1 ctrl=user rpct=95.00 rlat=5000 wpct=0.00 wlat=9 min=1.00\n")
    outcome = tree.keep({"sda": {"iocost": True}})
    assert any("set sda iocost to 8:0 enable=1 ctrl=auto" in one for one in outcome.actions)
    assert tree.text(QOS) == "8:0 enable=1 ctrl=auto\n"


@pytest.mark.parametrize("fails", [False, True])
def test_a_word_of_a_qos_that_goes_on_is_taken_back(
    tree: Tree, monkeypatch: pytest.MonkeyPatch, fails: bool
) -> None:
    full = "8:0 enable=1 ctrl=user rpct=95.00 rlat=5000 min=1.00\n"
    tree.keep({"sda": {"iocost": True, "qos": {"rpct": 95, "rlat": 5000}}})
    tree.write(QOS, full)
    wanted = {"sda": {"iocost": True, "qos": {"rpct": 95}}}
    foreseen = tree.keep(wanted, check_mode=True)
    assert tree.text(QOS) == full
    writes: list[str] = []
    write = manage.write_live

    def watch(target: Any, value: str, root: str) -> None:
        writes.append(value)
        write(target, value, root)

    def refuse(*_arguments: Any) -> None:
        raise SettingsError("refused")

    monkeypatch.setattr(manage, "write_live", watch)
    if fails:
        monkeypatch.setattr(manage.Keeper, "keep", refuse)
        with pytest.raises(SettingsError, match="refused"):
            tree.keep(wanted)
        assert tree.text(QOS) == full
        return
    outcome = tree.keep(wanted)
    assert writes == ["8:0 ctrl=auto", "8:0 enable=1 ctrl=user rpct=95.00"]
    remember = "remember the settings of io"
    assert outcome.actions == ["take rlat=5000 of sda iocost back", remember]
    assert outcome.actions == foreseen.actions
    assert tree.keep(wanted).actions == []


def test_the_unit_goes_before_the_record(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    tree.keep({"sda": {"iocost": True}})
    unit = tree.root / "etc/systemd/system/steadygpu-io.service"
    assert "ConditionPathExists=/usr/local/bin/steadygpu\n" in unit.read_text()
    seen = []

    def fail(_keeper: Any) -> None:
        seen.append(unit.exists())
        raise SettingsError("refused")

    monkeypatch.setattr(manage.Keeper, "absent", fail)
    with pytest.raises(SettingsError, match="refused"):
        manage.absent(False, str(tree.root))
    assert seen == [False]
    assert unit.exists()
    assert record.owners(str(tree.root)) == ["io"]
