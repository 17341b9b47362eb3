# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What was measured on a host once: kept safely, and used in its facts while it holds."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.hardware import (
    bandwidth_file,
    inventory,
    nvml,
    nvml_reader,
)
from ansible_collections.steadygpu.host.plugins.module_utils.hardware.model import as_facts
from ansible_collections.steadygpu.host.plugins.module_utils.topology.remembered import Record
from ansible_collections.steadygpu.host.tests.unit.module_utils.hardware.fake_nvml import (
    FakeNvml,
    a100,
)

SWITCH = ["0000:20:00.0", "0000:21:00.0"]
FIRST = [*SWITCH, "0000:22:00.0", "0000:23:00.0"]
SECOND = [*SWITCH, "0000:22:01.0", "0000:24:00.0"]
FAR = ["0000:80:00.0", "0000:81:00.0"]

TOOL = "device_to_device_memcpy_read_ce"
LEVELS = [["X", "PIX", "SYS"], ["PIX", "X", "SYS"], ["SYS", "SYS", "X"]]
GB_S = [[None, 24.0, 6.0], [20.0, None, 10.0], [6.0, 10.0, None]]
KEPT = Record(TOOL, ["GPU-a", "GPU-b", "GPU-c"], LEVELS, GB_S)
OTHER = Record("another", ["GPU-z"], [["X"]], [[None]])


@pytest.fixture
def three_gpus(host):
    host.pci(FIRST)
    host.pci(SECOND)
    host.pci(FAR, numa_node=1)
    host.driver()
    for minor, slot in enumerate((FIRST, SECOND, FAR)):
        host.proc_gpu(slot[-1], minor, f"GPU-{minor}")
    return host


def topology(host, uuids=("GPU-a", "GPU-b", "GPU-c")):
    """``gpu.topology`` with these GPUs in the three slots."""
    slots = ("00000000:23:00.0", "00000000:24:00.0", "00000000:81:00.0")
    library = FakeNvml([a100(slot, i, UUID=uuids[i]) for i, slot in enumerate(slots)])
    answer = nvml_reader.Answer(report=nvml.read_all(library))
    found = inventory.collect(host.root, ask_nvml=lambda _deadline_s: answer)
    return as_facts(found)["topology"]


def test_without_a_measurement_the_affinity_is_derived(three_gpus):
    found = topology(three_gpus)
    assert (found["affinity_basis"], found["affinity_tool"]) == ("derived", None)
    assert found["affinity"][0] == [1.0, 0.65, 0.1]
    assert found["remarks"] == []


def test_what_was_measured_is_in_the_facts(three_gpus):
    bandwidth_file.write(KEPT, three_gpus.root)
    found = topology(three_gpus)
    assert (found["affinity_basis"], found["affinity_tool"]) == ("measured", TOOL)
    assert found["affinity"] == [[1.0, 1.0, 0.3], [1.0, 1.0, 0.5], [0.3, 0.5, 1.0]]
    assert found["remarks"] == []


def test_gpus_in_another_order_keep_their_pairs(three_gpus):
    """The two cards below one switch changed places: the links are what they were."""
    bandwidth_file.write(KEPT, three_gpus.root)
    found = topology(three_gpus, uuids=("GPU-b", "GPU-a", "GPU-c"))
    assert found["affinity_basis"] == "measured"
    assert found["affinity"] == [[1.0, 1.0, 0.5], [1.0, 1.0, 0.3], [0.5, 0.3, 1.0]]


@pytest.mark.parametrize(
    ("uuids", "said"),
    [
        (("GPU-a", "GPU-c", "GPU-b"), "other links (GPU0 and GPU1: SYS then, PIX now)"),
        (("GPU-a", "GPU-b", "GPU-d"), "other GPUs (gone GPU-c; new GPU-d)"),
    ],
    ids=["moved", "replaced"],
)
def test_of_other_gpus_or_links_it_is_not_used_and_a_remark_says_why(three_gpus, uuids, said):
    bandwidth_file.write(KEPT, three_gpus.root)
    found = topology(three_gpus, uuids)
    assert (found["affinity_basis"], found["affinity_tool"]) == ("derived", None)
    assert found["affinity"][0] == [1.0, 0.65, 0.1]
    (remark,) = found["remarks"]
    assert said in remark
    assert "run nvbandwidth again" in remark


def test_an_nvlink_lost_since_then_makes_it_stale(three_gpus):
    linked = [["X", "NV12", "SYS"], ["NV12", "X", "SYS"], ["SYS", "SYS", "X"]]
    bandwidth_file.write(Record(TOOL, KEPT.gpus, linked, GB_S), three_gpus.root)
    found = topology(three_gpus)
    assert found["affinity_basis"] == "derived"
    assert "GPU0 and GPU1: NV12 then, PIX now" in found["remarks"][0]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "no JSON"),
        ('{"format": 1', "no JSON"),
        ("x" * 600_000, "larger than 512 KiB"),
        (None, "Is a directory"),
    ],
    ids=["empty", "cut", "large", "directory"],
)
def test_a_garbled_file_is_a_remark(three_gpus, content, said):
    if content is None:
        Path(three_gpus.root, bandwidth_file.PATH).mkdir(parents=True)
    else:
        three_gpus.write(bandwidth_file.PATH, content)
    found = topology(three_gpus)
    assert found["affinity_basis"] == "derived"
    (remark,) = found["remarks"]
    assert remark.startswith(f"{bandwidth_file.where(three_gpus.root)} is not used: ")
    assert said in remark


def test_bytes_that_are_no_text_are_a_remark(three_gpus):
    three_gpus.write(bandwidth_file.PATH, "")
    Path(three_gpus.root, bandwidth_file.PATH).write_bytes(b"\xff\xfe{}\x00")
    assert "is not used" in topology(three_gpus)["remarks"][0]


def test_a_host_without_driver_has_no_stale_measurement(host):
    bandwidth_file.write(KEPT, host.root)
    never = nvml_reader.Answer(reason="not asked")
    found = as_facts(inventory.collect(host.root, ask_nvml=lambda _deadline_s: never))["topology"]
    assert found["affinity_basis"] == "derived"
    assert found["remarks"] == []


def test_any_user_may_read_what_is_kept(host):
    former = os.umask(0o077)
    try:
        bandwidth_file.write(KEPT, host.root)
    finally:
        os.umask(former)
    assert os.stat(bandwidth_file.where(host.root)).st_mode & 0o777 == 0o644
    assert bandwidth_file.read(host.root).record == KEPT


def test_what_is_forgotten_is_gone(host):
    bandwidth_file.write(KEPT, host.root)
    assert bandwidth_file.forget(host.root) is True
    assert bandwidth_file.read(host.root) == bandwidth_file.Memory()
    assert bandwidth_file.forget(host.root) is False


# The calls that a write is made of, and between which it can end.
STEPS = ("mkdir", "open", "fchmod", "fsync", "replace")


def write_killed_at(number: int, root: str) -> bool:
    """Write KEPT in a child that is killed before its call ``number``; False when it ended well."""
    child = os.fork()
    if child == 0:
        left = [number]

        def killing(call):
            def step(*arguments, **options):
                if left[0] == 0:
                    os.kill(os.getpid(), signal.SIGKILL)
                left[0] -= 1
                return call(*arguments, **options)

            return step

        for name in STEPS:
            setattr(os, name, killing(getattr(os, name)))
        try:
            bandwidth_file.write(KEPT, root)
        finally:
            os._exit(0)
    status = os.waitpid(child, 0)[1]
    return os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL


@pytest.mark.parametrize("former", [None, OTHER], ids=["first", "again"])
def test_a_write_killed_at_any_step_leaves_the_old_or_the_new(host, former):
    seen = []
    killed = True
    while killed:
        bandwidth_file.forget(host.root)
        if former is not None:
            bandwidth_file.write(former, host.root)
        killed = write_killed_at(len(seen), host.root)
        memory = bandwidth_file.read(host.root)
        assert memory.reason is None
        seen.append(memory.record)
    assert len(seen) > len(STEPS)
    assert (seen[0], seen[-1]) == (former, KEPT)
    # Once the new one is there, no later step takes it away.
    assert seen == [former] * seen.count(former) + [KEPT] * seen.count(KEPT)
