# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What placement reads out of the facts of a host."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.placement import inventory
from ansible_collections.steadygpu.host.plugins.module_utils.placement.model import (
    Device,
    PlacementError,
    Tenant,
)


def _facts(links: Any = (("X", "NV4"), ("NV4", "X")), **changes: Any) -> dict[str, Any]:
    device = {
        "name": "NVIDIA A40",
        "numa_node": 0,
        "memory_mib": {"total": 46068, "used": 3, "free": 45635, "reserved": 430},
        "holders": [],
        "mig": {"supported": False},
    }
    first = {**device, "index": 0, "uuid": "GPU-a", **changes}
    return {"devices": [first, {**device, "index": 1, "uuid": "GPU-b"}], "links": links}


def _first(**changes: Any) -> Device:
    return inventory.host(_facts(**changes)).gpus[0].device


def test_memory_of_the_driver_is_nobodys() -> None:
    assert _first().usable_mib == 46068 - 430


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"error": "GPU is lost"}, "GPU is lost"),
        ({"compute_mode": "prohibited"}, "compute mode is prohibited"),
        ({"fabric": {"state": "in_progress"}}, "fabric is in_progress"),
        ({"remapped_rows": {"failed": True}}, "has to be replaced"),
    ],
)
def test_faults_keep_a_gpu_out(changes: dict[str, Any], said: str) -> None:
    assert said in _first(**changes).faults[0]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"remapped_rows": {"pending": True}}, "waits for a reset"),
        ({"ecc": {"uncorrected": 2}}, "uncorrected memory errors"),
        ({"xids": [{"xid": 13}, {"xid": 48}]}, "XID 48"),
        ({"mig": {"supported": True, "current": False, "pending": True}}, "MIG mode changes"),
    ],
)
def test_doubts_let_it_be_the_last_choice(changes: dict[str, Any], said: str) -> None:
    one = _first(**changes)
    assert said in one.doubts[0]
    assert not one.faults


def test_an_xid_of_a_program_is_no_doubt() -> None:
    assert not _first(xids=[{"xid": 13}, {"xid": 31}]).doubts


@pytest.mark.parametrize("kind", ["persistence", "dcgm", "display"])
def test_daemons_take_a_gpu_from_nobody(kind: str) -> None:
    holders = [{"pid": 1, "name": "x", "kind": kind, "container": None}]
    assert _first(holders=holders).foreign is None


def test_programs_and_containers_without_a_lease_are_foreign() -> None:
    holders = [
        {"pid": 9, "name": "python", "kind": "process", "container": None},
        {"pid": 10, "name": "vllm", "kind": "granted", "container": "c0ffee" * 4},
    ]
    said = _first(holders=holders).foreign
    assert said == "held by python (pid 9), container c0ffeec0ffee, without a lease"
    host = inventory.host(
        _facts(holders=holders[1:]), {"GPU-a": [Tenant("job")]}, frozenset({"c0ffee" * 4})
    )
    assert host.gpus[0].device.foreign is None
    assert host.gpus[0].device.tenants == (Tenant("job"),)


def test_memory_in_use_by_whom_nobody_may_see_is_a_user() -> None:
    memory = {"total": 46068, "used": 9000, "free": 36000, "reserved": 430}
    assert "9000 MiB of it are in use" in str(_first(holders=None, memory_mib=memory).foreign)
    assert _first(holders=None).foreign is None


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        (_facts(links=[["X", "NV4"], ["NV2", "X"]]), "not symmetric"),
        (_facts(links=[["X", "FAST"], ["FAST", "X"]]), "'FAST'"),
        (_facts(links=[["X"]]), "wanted is 2 × 2"),
        (_facts(uuid="GPU-b"), "2 devices have the UUID GPU-b"),
        (_facts(index=1), "2 devices have the name GPU1"),
    ],
)
def test_facts_that_cannot_be_are_refused(facts: dict[str, Any], said: str) -> None:
    with pytest.raises(PlacementError, match=said):
        inventory.host(facts)


def test_without_links_nothing_is_known_and_nothing_is_refused() -> None:
    host = inventory.host(_facts(links=None))
    assert host.levels == (("X", None), (None, "X"))
