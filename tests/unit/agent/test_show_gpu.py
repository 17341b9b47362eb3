# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the page of ``steadygpu facts`` says of GPUs beyond the tables of devices and levels."""

from __future__ import annotations

import copy

import pytest

from steadygpu_agent import show

DRIVER = {
    "status": "loaded",
    "version": "550.163.01",
    "flavour": "open",
    "library_version": "550.163.01",
    "cuda_version": "12.4",
    "reason": None,
    "hidden": [],
}


def gpu(index, **changes):
    return {
        "index": index,
        "uuid": f"GPU-{index}",
        "name": "NVIDIA A100-SXM4-40GB",
        "pci_address": f"0000:2{index}:00.0",
        "numa_node": 0,
        "cpus": "0-3",
        "memory_mib": {"total": 40960, "used": 5, "free": 40300, "reserved": 655},
        "mig": {"supported": True, "current": False, "pending": False, "devices": []},
        "nvlink": None,
        "fabric": None,
        "xids": [],
        "holders": [],
        "error": None,
        "errors": {},
        **changes,
    }


@pytest.fixture
def facts():
    return copy.deepcopy(
        {
            "driver": DRIVER,
            "devices": [gpu(0), gpu(1)],
            "links": [["X", "PHB"], ["PHB", "X"]],
            "topology": {"disagreements": [], "remarks": []},
            "pci": [],
            "nics": [],
            "nodes": [],
            "numa_nodes": [],
            "nvswitches": 0,
            "fabric_manager": {"status": "stopped", "version": None, "reason": None},
            "persistence_daemon": {"status": "running"},
            "iommu": {"enabled": True, "groups": {}},
            "secure_boot": "disabled",
        }
    )


def lines(facts):
    return show.text({"gpu": facts}).splitlines()


def test_a_healthy_host_says_no_more_than_its_tables(facts):
    assert lines(facts) == [
        "driver      loaded, 550.163.01, open kernel modules, CUDA 12.4",
        "host        persistence daemon running, IOMMU on, Secure Boot disabled",
        "",
        "GPU  MODEL                  USED/TOTAL MiB  PCI           NUMA  CPUS  MIG  NVLINK  UUID",
        "0    NVIDIA A100-SXM4-40GB  5/40960         0000:20:00.0  0     0-3   off  -       GPU-0",
        "1    NVIDIA A100-SXM4-40GB  5/40960         0000:21:00.0  0     0-3   off  -       GPU-1",
        "",
        "      GPU0  GPU1",
        "GPU0  X     PHB",
        "GPU1  PHB   X",
    ]


def test_a_mig_device_stands_below_its_gpu(facts):
    facts["devices"][0]["mig"] = {
        "supported": True,
        "current": True,
        "pending": True,
        "devices": [
            {
                "index": 0,
                "uuid": "MIG-a",
                "profile": "3g.20gb",
                "gpu_instance": 1,
                "compute_instance": 0,
                "start": 0,
                "size": 4,
                "memory_mib": 19968,
            }
        ],
    }
    rows = [line.split() for line in lines(facts)[4:7]]
    assert rows[0][0] == "0"
    assert rows[1] == ["0:0", "MIG", "3g.20gb", "19968", "GI", "1", "CI", "0", "MIG-a"]
    assert rows[2][0] == "1"


def test_one_process_on_two_gpus_is_one_row(facts):
    for device in facts["devices"]:
        device["holders"] = [
            {
                "pid": 42,
                "name": "python3",
                "kind": "container",
                "container": "4a" * 32,
                "used_mib": 1000,
            }
        ]
    found = lines(facts)
    rows = found[found.index("") :]
    assert "HOLDER   PID  KIND       CONTAINER     USED MiB  GPUS" in rows
    assert "python3  42   container  4a4a4a4a4a4a  2000      0,1" in rows


def test_network_cards_are_rows_of_the_matrix(facts):
    facts["nics"] = [{"name": "mlx5_0", "levels": ["PIX", "SYS"]}]
    assert "mlx5_0  PIX   SYS" in lines(facts)


def test_a_level_that_nothing_tells_is_a_dash(facts):
    facts["links"] = [["X", None], [None, "X"]]
    assert "GPU1  -     X" in lines(facts)


def test_what_must_not_be_missed(facts):
    facts["nvswitches"] = 6
    facts["fabric_manager"] = {"status": "stopped", "version": "550.1", "reason": "start it"}
    facts["devices"][1]["xids"] = [
        {"xid": 31, "seconds": 3.0, "text": ""},
        {"xid": 79, "seconds": 12.5, "text": "GPU has fallen off the bus."},
    ]
    facts["devices"][1]["fabric"] = {"state": "in_progress"}
    facts["topology"] = {"remarks": ["the tree is hidden"], "disagreements": ["PHB or SYS"]}
    facts["pci"] = [{"address": "0000:03:00.0", "reason": "no GSP"}]
    text = "\n".join(lines(facts))
    assert "6 NVSwitches, fabric manager stopped 550.1, persistence daemon running" in text
    assert text.endswith(
        "refused     0000:03:00.0: no GSP\n"
        "fabric      start it\n"
        "fabric      registration in progress on GPU 1\n"
        "xid         GPU 1: 79: GPU has fallen off the bus. (12.5 s after boot, the last of 2)\n"
        "note        the tree is hidden\n"
        "disagree    PHB or SYS"
    )


def test_what_could_not_be_read_is_one_line_a_reason(facts):
    for device in facts["devices"]:
        device["errors"] = {"xids": "the kernel log is for root"}
    facts["devices"][1]["errors"]["ecc"] = "Insufficient Permissions"
    assert lines(facts)[-2:] == [
        "unknown     xids of every GPU: the kernel log is for root",
        "unknown     ecc of GPU 1: Insufficient Permissions",
    ]


def test_a_refusal_the_driver_line_tells_is_not_told_twice(facts):
    facts["driver"]["reason"] = "0000:03:00.0: no GSP"
    facts["pci"] = [{"address": "0000:03:00.0", "reason": "no GSP"}]
    assert not any(line.startswith("refused") for line in lines(facts))
