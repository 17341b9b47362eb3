# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A picture out of the facts: of this release, of an earlier one, of a sick host."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.topology import facts
from ansible_collections.steadygpu.host.plugins.module_utils.topology.model import Gpu, Nic, Node


def mig(**values: Any) -> dict[str, Any]:
    return {"supported": True, "current": True, "pending": True, **values}


def test_everything_that_facts_say_is_in_the_picture() -> None:
    found = facts.machine(
        {
            "devices": [
                {
                    "index": 0,
                    "uuid": "GPU-1",
                    "name": "NVIDIA A100-SXM4-40GB",
                    "pci_address": "0000:07:00.0",
                    "pci_path": ["0000:00:01.0", "0000:07:00.0"],
                    "numa_node": 3,
                    "cpus": "48-63",
                    "memory_mib": {"total": 40960, "used": 1, "free": 2, "reserved": None},
                    "mig": mig(
                        devices=[
                            {"index": 1, "profile": "1g.5gb"},
                            {"index": 0, "profile": "3g.20gb"},
                        ]
                    ),
                },
                {"index": 1, "uuid": None, "numa_node": None},
            ],
            "links": [["X", "NV12"], ["NV12", "X"]],
            "numa_nodes": [
                {"node": 3, "cpus": "48-63", "memory_mib": 64000, "kind": "cpu"},
                {"node": 9, "cpus": "", "memory_mib": 40000, "kind": "memory"},
            ],
            "nics": [
                {
                    "name": "mlx5_0",
                    "rdma": ["mlx5_0"],
                    "pci_address": "0000:0c:00.0",
                    "pci_path": ["0000:00:01.0", "0000:0c:00.0"],
                    "numa_node": 3,
                    "levels": ["PXB", "SYS"],
                }
            ],
            "nvswitches": 6,
            "topology": {"disagreements": ["GPU0 and GPU1: NODE by sysfs, SYS by NVML"]},
        }
    )
    assert found.gpus == (
        Gpu(
            name="GPU0",
            model="NVIDIA A100-SXM4-40GB",
            uuid="GPU-1",
            pci_address="0000:07:00.0",
            pci_path=("0000:00:01.0", "0000:07:00.0"),
            numa_nodes=(3,),
            cpus="48-63",
            memory_mib=40960,
            mig=("3g.20gb", "1g.5gb"),
        ),
        Gpu(name="GPU1"),
    )
    assert found.levels == (("X", "NV12"), ("NV12", "X"))
    assert found.nics == (
        Nic("mlx5_0", "0000:0c:00.0", ("0000:00:01.0", "0000:0c:00.0"), (3,), ("mlx5_0",)),
    )
    assert found.nic_levels == (("PXB", "SYS"),)
    assert found.nodes == (Node(3, "48-63", 64000),)
    assert found.nvswitches == 6
    assert found.remarks == ("GPU0 and GPU1: NODE by sysfs, SYS by NVML",)


def test_facts_of_an_earlier_release_have_no_nics_and_no_topology() -> None:
    found = facts.machine(
        {
            "devices": [{"index": 0, "mig": {"supported": True, "current": True, "pending": True}}],
            "links": [["X"]],
            "numa_nodes": [],
        }
    )
    assert found.nics == ()
    assert found.levels == (("X",),)
    # The earlier facts did not list MIG devices, which is not the same as having none.
    assert found.remarks == ()


@pytest.mark.parametrize("gpu", [{}, {"devices": None, "links": None, "nics": None}])
def test_a_host_without_gpus_is_an_empty_picture(gpu: dict[str, Any]) -> None:
    found = facts.machine(gpu)
    assert (found.gpus, found.levels, found.remarks) == ((), (), ())


def test_levels_that_are_missing_or_foreign_are_unknown() -> None:
    devices = [{"index": i} for i in range(3)]
    found = facts.machine({"devices": devices, "links": [["X", "NV4"], ["NV4", "X", "WARP"]]})
    assert found.levels == (("X", "NV4", None), ("NV4", "X", None), (None, None, "X"))


def test_mg_001_mode_on_without_devices_is_told() -> None:
    """MG-001: MIG mode survives a reboot, the instances do not."""
    found = facts.machine({"devices": [{"index": 0, "mig": mig(devices=[])}], "links": [["X"]]})
    assert found.remarks == (
        "GPU0: MIG mode is on and there is no MIG device. The mode survives a reboot, the devices "
        "do not: create them again",
    )


def test_mg_002_a_pending_mode_is_told() -> None:
    """MG-002: the mode stays pending while a client holds the GPU."""
    pending = mig(current=False, devices=[])
    found = facts.machine({"devices": [{"index": 0, "mig": pending}], "links": [["X"]]})
    assert found.remarks == (
        "GPU0: MIG mode is off and will be on after the next reset of the GPU or reboot; it was in "
        "use when the change was asked for",
    )
