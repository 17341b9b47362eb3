# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Former values belong to a disk, not to its name."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.io_control.model import Disk
from ansible_collections.steadygpu.host.plugins.module_utils.io_control.renamed import (
    DISKS,
    follow,
)
from ansible_collections.steadygpu.host.plugins.module_utils.settings.model import Target
from ansible_collections.steadygpu.host.plugins.module_utils.settings.record import (
    Former,
    Record,
)


def disk(name: str, number: str, wwid: str | None) -> Disk:
    return Disk(name, number, "none", ("none", "bfq"), ("wwid", wwid) if wwid else None)


def scheduler(name: str, value: str) -> Former:
    path = f"/sys/block/{name}/queue/scheduler"
    return Former(Target(f"{name} scheduler", "choice", path, "bfq"), value)


def cost(name: str, number: str) -> Former:
    wanted, neutral = f"{number} enable=1 ctrl=auto", f"{number} enable=0 ctrl=auto"
    target = Target(f"{name} iocost", "line", "/sys/fs/cgroup/io.cost.qos", wanted, "", neutral)
    return Former(target, f"{number} enable=0 ctrl=auto", f"{number} enable=0")


def record(*formers: Former, **told: str) -> Record:
    extra: dict[str, Any] = {DISKS: told} if told else {}
    return Record("io", formers, extra=extra)


def test_two_disks_that_change_names_keep_their_former_values() -> None:
    old = record(
        scheduler("sda", "mq-deadline"), scheduler("sdb", "none"), sda="wwid=A", sdb="wwid=B"
    )
    new, lost = follow(old, [disk("sda", "8:0", "B"), disk("sdb", "8:16", "A")])
    assert lost == []
    assert [(one.target.name, one.target.path, one.value) for one in new.formers] == [
        ("sdb scheduler", "/sys/block/sdb/queue/scheduler", "mq-deadline"),
        ("sda scheduler", "/sys/block/sda/queue/scheduler", "none"),
    ]
    assert new.extra[DISKS] == {"sdb": "wwid=A", "sda": "wwid=B"}


def test_iocost_follows_the_number_of_its_disk() -> None:
    new, _lost = follow(record(cost("sda", "8:0"), sda="wwid=A"), [disk("sdc", "8:32", "A")])
    (former,) = new.formers
    assert former == cost("sdc", "8:32")


def test_a_stranger_with_the_name_of_a_disk_that_is_gone_gets_nothing_back() -> None:
    old = record(scheduler("sda", "none"), sda="wwid=A")
    new, lost = follow(old, [disk("sda", "8:0", "C")])
    assert (new.formers, lost) == ((), ["sda"])


@pytest.mark.parametrize("told", [{}, {"sda": "wwid=A"}])
def test_what_did_not_move_and_what_is_away_stay(told: dict[str, str]) -> None:
    old = record(scheduler("sda", "none"), cost("sda", "8:0"), **told)
    assert follow(old, [disk("sda", "8:0", "A" if told else None)]) == (old, [])
    assert follow(old, []) == (old, [])
