# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.io_control.model import (
    Disk,
    IoError,
    Kernel,
    as_plain,
    parse_devices,
)
from ansible_collections.steadygpu.host.plugins.module_utils.io_control.plan import (
    make_plan,
    weights,
)

SDA = Disk("sda", "8:0", "mq-deadline", ("mq-deadline", "none", "bfq"), ("device/wwid", "naa.5000"))
NVME = Disk("nvme0n1", "259:0", "none", ("none", "mq-deadline"))
BARE = Disk("pmem0", "259:1", None, ())
KERNEL = Kernel(io_cost=True)
MODEL = {
    "rbps": 2706339840,
    "rseqiops": 89698,
    "rrandiops": 110036,
    "wbps": 1063126016,
    "wseqiops": 135560,
    "wrandiops": 130734,
}


def plan(devices: dict[str, Any], *disks: Disk, kernel: Kernel = KERNEL) -> Any:
    wishes = parse_devices(devices)
    return make_plan(wishes, {wish.given: disks for wish in wishes}, kernel)


def test_a_scheduler_is_set_now_and_by_udev_at_boot() -> None:
    found = plan({"sda": {"scheduler": "bfq"}}, SDA)
    (target,) = found.targets
    assert (target.kind, target.path, target.wanted) == (
        "choice",
        "/sys/block/sda/queue/scheduler",
        "bfq",
    )
    assert 'ATTR{device/wwid}=="naa.5000", ATTR{queue/scheduler}="bfq"' in found.rules
    assert "KERNEL" not in found.rules
    assert not found.at_boot


def test_a_disk_that_says_nothing_of_itself_is_known_by_its_name() -> None:
    assert 'KERNEL=="nvme0n1"' in plan({"nvme0n1": {"scheduler": "none"}}, NVME).rules


def test_iocost_with_a_model_and_a_goal_in_the_words_of_the_kernel() -> None:
    wanted = {
        "scheduler": "none",
        "iocost": True,
        "model": MODEL,
        "qos": {"rpct": 95, "rlat": 5000, "min": 50},
    }
    found = plan({"nvme0n1": wanted}, NVME)
    scheduler, qos, model = found.targets
    assert scheduler.wanted == "none"
    assert qos.wanted == "259:0 enable=1 ctrl=user rpct=95.00 rlat=5000 min=50.00"
    assert qos.neutral == "259:0 enable=0 ctrl=auto"
    assert model.wanted.startswith("259:0 ctrl=user model=linear rbps=2706339840 rseqiops=89698")
    assert found.at_boot


def test_a_virtual_disk_that_says_it_rotates_is_warned_of() -> None:
    disk = Disk("vda", "254:0", "none", ("none",), rotates=True)
    assert "vda says that it rotates" in plan({"vda": {"iocost": True}}, disk).notes[0]
    assert plan({"vda": {"iocost": True, "model": MODEL}}, disk).notes == []
    assert plan({"nvme0n1": {"iocost": True}}, NVME).notes == []


def test_iocost_off_is_nothing_on_a_disk_that_never_had_it() -> None:
    assert plan({"sda": {"iocost": False}}, SDA).targets == []
    had = Kernel(True, None, {"8:0": "enable=1 ctrl=auto"})
    (target,) = plan({"sda": {"iocost": False}}, SDA, kernel=had).targets
    assert target.wanted == "8:0 enable=0"


@pytest.mark.parametrize(
    ("wanted", "disk", "kernel", "said"),
    [
        ({"scheduler": "bfq"}, NVME, KERNEL, "this kernel has no bfq for nvme0n1; it has none"),
        ({"scheduler": "none"}, BARE, KERNEL, "has no scheduler to choose"),
        ({"iocost": True}, NVME, Kernel(False), "CONFIG_BLK_CGROUP_IOCOST"),
        ({"iocost": True}, NVME, Kernel(False, "cgroup v1"), "cgroup v1"),
    ],
)
def test_what_kernel_or_disk_does_not_have_is_unsupported_and_never_written(
    wanted: dict[str, Any], disk: Disk, kernel: Kernel, said: str
) -> None:
    found = plan({"x": wanted}, disk, kernel=kernel)
    (target,) = found.targets
    assert target.kind == "unsupported"
    assert said in target.note
    assert found.rules is None
    assert not found.at_boot


def test_a_stack_names_the_disk_that_was_taken() -> None:
    disk = Disk("sda", "8:0", "none", ("none",), None, ("dm-0", "sda2"))
    found = plan({"/var/lib/docker": {"scheduler": "none"}}, disk)
    assert "/var/lib/docker lies on sda (dm-0 on sda2 on sda)" in found.notes[0]


def test_two_entries_for_one_disk_agree_or_are_refused() -> None:
    same = {"sda": {"scheduler": "bfq"}, "/data": {"scheduler": "bfq"}}
    assert len(plan(same, SDA).targets) == 1
    with pytest.raises(IoError, match="both on sda"):
        plan({"sda": {"scheduler": "bfq"}, "/data": {"scheduler": "none"}}, SDA)
    # What is named counts before all the others.
    every = plan({"*": {"scheduler": "none"}, "sda": {"scheduler": "bfq"}}, SDA)
    assert [target.wanted for target in every.targets] == ["bfq"]


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({"scheduler": "cfq"}, "wanted one of bfq"),
        ({"scheduler": "bfq", "iocost": True}, "one behind the other"),
        ({"iocost": "yes please"}, "true or false"),
        ({"weight": 5}, "no weight"),
        ({}, "nothing is asked"),
        ({"iocost": True, "model": {"rbps": 5}}, "a model has all of"),
        ({"qos": {"rlat": 5}}, "iocost: true"),
        ({"iocost": True, "qos": {"rlat": -1}}, "not negative"),
        ({"iocost": True, "qos": {"rlat": "fast"}}, "not negative"),
        ({"iocost": True, "qos": {"latency": 1}}, "no latency"),
    ],
)
def test_wrong_wishes_are_told_by_disk(said: dict[str, Any], why: str) -> None:
    with pytest.raises(IoError, match=f"sda: .*{why}"):
        parse_devices({"sda": said})


def test_iocost_over_a_bfq_that_somebody_chose_is_refused() -> None:
    with pytest.raises(IoError, match="scheduled by bfq now"):
        plan({"sda": {"iocost": True}}, Disk("sda", "8:0", "bfq", ("bfq", "none")))


def test_wishes_survive_the_record() -> None:
    devices = {
        "nvme0n1": {"scheduler": "none", "iocost": True, "model": MODEL, "qos": {"wpct": 9.5}},
        "sda": {"scheduler": "bfq"},
    }
    wishes = parse_devices(devices)
    assert parse_devices(as_plain(wishes)) == wishes


def test_which_weight_acts_and_why_not() -> None:
    costed = Kernel(True, None, {"8:0": "enable=1 ctrl=auto", "259:0": "enable=0"})
    bfq = Disk("sdb", "8:16", "bfq", ("bfq",))
    found = weights([SDA, NVME, bfq, BARE], costed)
    assert found["sda"] == "io.weight acts by iocost"
    assert found["sdb"] == "io.weight acts by bfq"
    assert found["nvme0n1"].startswith("inert: the scheduler is none and iocost is off")
    assert found["pmem0"].startswith("inert")
    assert weights([SDA], Kernel(False, "no io controller")) == {"sda": "inert: no io controller"}
