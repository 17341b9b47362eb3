# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Cases from the field: the facts tell each apart. Rules that judge them build on this."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.hardware import (
    guarded,
    inventory,
    nodes,
    nvml,
    nvml_reader,
)
from ansible_collections.steadygpu.host.plugins.module_utils.hardware.model import as_facts
from ansible_collections.steadygpu.host.tests.unit.module_utils.hardware.fake_nvml import (
    NO_PERMISSION,
    NOT_SUPPORTED,
    FakeNvml,
    a100,
)
from ansible_collections.steadygpu.host.tests.unit.module_utils.hardware.test_kernel_log import (
    FALLEN,
    LEGACY,
    NO_GSP,
    record,
)

FIRST = ["0000:00:01.0", "0000:01:00.0"]
SECOND = ["0000:00:02.0", "0000:03:00.0"]


def facts_of(host, library=None):
    """The facts of a recorded host; ``library`` answers for NVML."""
    report = nvml.read_all(library) if library is not None else None
    answer = nvml_reader.Answer(report=report, reason=None if report else "no pynvml")
    return as_facts(inventory.collect(host.root, ask_nvml=lambda _deadline_s: answer))


@pytest.fixture
def two_cards(host):
    """Two GPUs, each below a root port of its own, with a driver that knows both."""
    host.driver()
    for minor, chain in enumerate((FIRST, SECOND)):
        host.pci(chain, kernel_driver="nvidia")
        host.proc_gpu(chain[-1], minor, f"GPU-{minor}")
    return host


def cards(**answers):
    return FakeNvml(
        [a100(f"0000{chain[-1]}", minor, **answers) for minor, chain in enumerate((FIRST, SECOND))]
    )


def test_dr_001_uvm_is_not_loaded(two_cards):
    two_cards.write("proc/modules", "nvidia 1 0 - Live 0x0\n")
    two_cards.write("proc/devices", "Character devices:\n195 nvidia-frontend\n")
    facts = facts_of(two_cards)
    assert facts["modules"]["nvidia"]
    assert not facts["modules"]["nvidia_uvm"]
    uvm = next(node for node in facts["nodes"] if node["path"] == "/dev/nvidia-uvm")
    assert (uvm["exists"], uvm["major"]) == (False, None)


@pytest.mark.parametrize(
    ("switches", "at_fault"),
    [pytest.param(4, True, id="DR-007"), pytest.param(0, False, id="DR-008")],
)
def test_a_fabric_manager_that_does_not_run(two_cards, switches, at_fault):
    devices = Path(two_cards.root, "proc/driver/nvidia-nvswitch/devices")
    devices.mkdir(parents=True)
    for number in range(switches):
        (devices / f"0000:c{number}:00.0").mkdir()
    two_cards.write("usr/lib/systemd/system/nvidia-fabricmanager.service", "[Service]\n")
    facts = facts_of(two_cards, cards())
    assert facts["nvswitches"] == switches
    assert facts["fabric_manager"]["status"] == "stopped"
    assert (facts["fabric_manager"]["reason"] is not None) == at_fault


def test_nvswitches_the_driver_does_not_count_are_unknown(two_cards):
    assert facts_of(two_cards, cards())["nvswitches"] is None


def test_dr_010_modules_for_nvlink_5_are_missing(two_cards):
    two_cards.write("proc/modules", "nvidia 1 0 - Live 0x0\nib_umad 1 0 - Live 0x0\n")
    modules = facts_of(two_cards)["modules"]
    assert (modules["ib_umad"], modules["mlx5_ib"]) == (True, False)


@pytest.mark.parametrize(
    ("text", "said"),
    [pytest.param(NO_GSP, "GSP", id="DR-012"), pytest.param(LEGACY, "580.xx", id="DR-013")],
)
def test_a_card_the_loaded_driver_refuses(host, text, said):
    host.driver()
    host.pci(FIRST)
    host.pci(SECOND)
    host.write("dev/kmsg", record(text.replace("0000:01:00.0", SECOND[-1])).decode())
    facts = facts_of(host, FakeNvml([]))
    assert [bool(one["reason"]) for one in facts["pci"]] == [False, True]
    assert said in facts["pci"][1]["reason"]
    assert SECOND[-1] in facts["driver"]["reason"]


def test_dr_015_nouveau_drives_the_card(host):
    host.pci(FIRST, kernel_driver="nouveau")
    host.write("proc/modules", "nouveau 1 0 - Live 0x0\n")
    facts = facts_of(host)
    assert facts["pci"][0]["driver"] == "nouveau"
    assert facts["modules"]["nouveau"]
    assert "nouveau" in facts["driver"]["reason"]


def test_dr_017_a_gpu_off_the_bus_carries_its_xid(two_cards):
    two_cards.write("dev/kmsg", record(FALLEN).decode())
    first, second = facts_of(two_cards, cards())["devices"]
    assert [xid["xid"] for xid in first["xids"]] == [79]
    assert second["xids"] == []


def test_a_kernel_log_that_may_not_be_read_is_not_a_clean_one(two_cards):
    first = facts_of(two_cards, cards())["devices"][0]
    assert first["xids"] is None
    assert "kmsg" in first["errors"]["xids"]


def test_dr_018_a_job_scheduler_hides_the_gpus(two_cards, monkeypatch):
    for minor in (0, 1):
        two_cards.write(f"dev/nvidia{minor}", "")
    # The answer of access(2) in a device cgroup that names no GPU.
    monkeypatch.setattr(nodes.os, "access", lambda _path, _mode: False)
    facts = facts_of(two_cards, FakeNvml([], init=NO_PERMISSION))
    assert facts["driver"]["status"] == "loaded"
    assert facts["driver"]["hidden"] == ["/dev/nvidia0", "/dev/nvidia1"]
    assert "no fault of the driver" in facts["driver"]["reason"]
    assert len(facts["devices"]) == 2


def test_a_node_this_user_may_not_open_is_closed():
    with tempfile.TemporaryDirectory(dir="/tmp") as root:
        node = Path(root, "dev/nvidia3")
        node.parent.mkdir()
        node.touch(mode=0o600)
        for directory in (root, node.parent):
            os.chmod(directory, 0o755)

        def as_another_user():
            if os.geteuid() == 0:
                os.setuid(65534)
            else:
                node.chmod(0)
            return nodes.closed([3, 4], root)

        assert nodes.closed([3, 4], root) == []
        assert guarded.call(as_another_user, 10).value == ["/dev/nvidia3"]


def test_io_003_no_gpudirect_storage(two_cards):
    two_cards.write("proc/modules", "nvidia 1 0 - Live 0x0\nnvidia_uvm 1 0 - Live 0x0\n")
    facts = facts_of(two_cards)
    assert not facts["modules"]["nvidia_fs"]
    assert not any(node["path"].startswith("/dev/nvidia-fs") for node in facts["nodes"])


@pytest.mark.parametrize(
    ("mode", "current", "pending"),
    [pytest.param([1, 1], True, True, id="MG-001"), pytest.param([0, 1], False, True, id="MG-002")],
)
def test_mig_mode_and_devices_are_told_apart(two_cards, mode, current, pending):
    mig = facts_of(two_cards, cards(MigMode=mode, MaxMigDeviceCount=0))["devices"][0]["mig"]
    assert mig == {"supported": True, "current": current, "pending": pending, "devices": []}


def test_tp_003_a_pair_that_cannot_talk_directly(two_cards):
    library = cards(P2PStatus=lambda _other, _capability: 1)
    assert facts_of(two_cards, library)["p2p"] == [["X", "CNS"], ["CNS", "X"]]


def test_tp_004_a_virtual_machine_hides_the_tree(host):
    host.driver()
    for minor in range(4):
        host.pci([f"0000:00:0{minor + 5}.0"])
        host.proc_gpu(f"0000:00:0{minor + 5}.0", minor, f"GPU-{minor}")
    topology = facts_of(host)["topology"]
    assert {word for row in topology["sysfs"] for word in row} == {"X", "PHB"}
    assert len(topology["remarks"]) == 1
    assert "PHB" in topology["remarks"][0]


def test_a_machine_with_a_tree_has_no_such_remark(host):
    host.dgx_a100()
    assert facts_of(host)["topology"]["remarks"] == []


def test_tp_009_sysfs_names_the_node_and_nvml_does_not(host):
    host.driver()
    host.pci(FIRST, numa_node=1, cpus="28-55")
    library = FakeNvml([a100("0000:01:00.0", 0, NumaNodeId=NOT_SUPPORTED)])
    (device,) = facts_of(host, library)["devices"]
    assert (device["numa_node"], device["cpus"], device["memory_node"]) == (1, "28-55", None)


def test_two_sources_that_disagree_are_both_named(two_cards):
    topology = facts_of(two_cards, cards(TopologyCommonAncestor=lambda _other: 50))["topology"]
    assert (topology["sysfs"][0][1], topology["nvml"][0][1]) == ("PHB", "SYS")
    (sentence,) = topology["disagreements"]
    assert all(word in sentence for word in ("GPU0", "GPU1", "PHB", "SYS", "sysfs", "NVML"))


def test_two_gpus_on_one_board_are_no_disagreement(host):
    host.driver()
    for port in (0, 1):
        host.pci(["0000:00:01.0", "0000:01:00.0", f"0000:02:0{port}.0", f"0000:0{port + 3}:00.0"])
    library = FakeNvml(
        [
            a100(f"0000:0{minor + 3}:00.0", minor, TopologyCommonAncestor=lambda _other: 0)
            for minor in (0, 1)
        ]
    )
    topology = facts_of(host, library)["topology"]
    assert (topology["sysfs"][0][1], topology["nvml"][0][1]) == ("PIX", "INTERNAL")
    assert topology["disagreements"] == []


@pytest.mark.parametrize("library", [None, cards()], ids=["without NVML", "NVML says nothing"])
def test_the_link_is_told_by_sysfs_where_nvml_does_not(two_cards, library):
    directory = two_cards.function(FIRST[-1])
    two_cards.write(directory + "/current_link_speed", "8.0 GT/s PCIe\n")
    first = facts_of(two_cards, library)["devices"][0]
    assert first["pcie"]["generation"] == 3
    assert first["pcie"]["width"] is None


def test_without_nvml_there_is_one_source(two_cards):
    facts = facts_of(two_cards)
    assert facts["topology"]["nvml"] is None
    assert facts["p2p"] is None
    assert facts["topology"]["affinity"][0][0] == 1.0
    assert facts["topology"]["affinity_basis"] == "derived"


def test_a_holder_carries_the_memory_nvml_counts(two_cards):

    two_cards.write("proc/4242/comm", "python3\n")
    two_cards.write("proc/4242/cgroup", f"0::/system.slice/docker-{'4a' * 32}.scope\n")
    used = [SimpleNamespace(pid=4242, usedGpuMemory=1 << 30)]
    first = facts_of(two_cards, cards(ComputeRunningProcesses_v3=used))["devices"][0]
    assert first["holders"] == [
        {
            "pid": 4242,
            "name": "python3",
            "kind": "container",
            "container": "4a" * 32,
            "used_mib": 1024,
        }
    ]
