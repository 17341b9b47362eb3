# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""MIG devices: which of those there are, and where new ones are made."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.claims import grammar
from ansible_collections.steadygpu.host.plugins.module_utils.mig import tables
from ansible_collections.steadygpu.host.plugins.module_utils.mig.model import Placement
from ansible_collections.steadygpu.host.plugins.module_utils.placement import (
    choose,
    explain,
    inventory,
    request,
)
from ansible_collections.steadygpu.host.plugins.module_utils.placement.model import (
    Decision,
    Host,
    Tenant,
)
from ansible_collections.steadygpu.host.plugins.module_utils.placement.slots import Room

A100 = "NVIDIA A100-SXM4-40GB"
GEOMETRY = tables.geometry_for(A100, "")


def _facts(*gpus: list[tuple[str, int, int]] | None, **changes: Any) -> dict[str, Any]:
    """A host of A100: None is one without MIG, else the profiles with their starts and sizes."""
    devices = []
    for index, parts in enumerate(gpus):
        devices.append(
            {
                "index": index,
                "uuid": f"GPU-{index}",
                "name": A100,
                "numa_node": index // 2,
                "memory_mib": {"total": 40960, "used": 0, "free": 40960, "reserved": 0},
                "holders": [],
                "mig": {
                    "supported": True,
                    "current": parts is not None,
                    "pending": parts is not None,
                    "devices": [
                        {
                            "index": number,
                            "uuid": f"MIG-{index}-{number}",
                            "profile": profile,
                            "gpu_instance": number + 1,
                            "compute_instance": 0,
                            "start": start,
                            "size": size,
                            "memory_mib": None,
                        }
                        for number, (profile, start, size) in enumerate(parts or [])
                    ],
                },
                **changes.get(f"gpu{index}", {}),
            }
        )
    size = len(gpus)
    links = [["X" if i == j else "NV12" for j in range(size)] for i in range(size)]
    return {"devices": devices, "links": links}


def _place(host: Host, claim: str, policy: str = "pack") -> Decision:
    return choose.place(host, request.of_claim(grammar.parse(claim), policy))


def _names(found: Decision) -> list[str]:
    return [device.name for device in found.chosen]


CUT = [("3g.20gb", 0, 4), ("1g.5gb", 4, 1), ("1g.5gb", 5, 1)]


def test_a_profile_is_taken_where_the_gpu_is_fullest() -> None:
    leases = {"MIG-1-1": [Tenant("a")]}
    host = inventory.host(_facts(CUT, CUT), leases)
    assert _names(_place(host, "mig=1g.5gb")) == ["1:2"]
    assert _names(_place(host, "mig=1g.5gb", "spread")) == ["0:1"]
    assert _names(_place(host, "mig=1g.5gb+count=3")) == ["0:1", "0:2", "1:2"]


def test_whole_gpus_come_before_mig_devices_and_mig_devices_before_nothing() -> None:
    host = inventory.host(_facts(CUT, None))
    assert _names(_place(host, "count=1")) == ["GPU1"]
    host = inventory.host(_facts(CUT, None, gpu1={"error": "GPU is lost"}))
    assert _names(_place(host, "memory=10g")) == ["0:0"]
    assert "is cut into MIG devices" in _place(host, "mig=off").reason


def test_mig_devices_are_named_by_their_place_their_uuid_or_their_gpu() -> None:
    host = inventory.host(_facts(CUT, None))
    assert _names(_place(host, "device=0:1")) == ["0:1"]
    assert _names(_place(host, "device=MIG-0-2")) == ["0:2"]
    assert _names(_place(host, "device=0+mig=3g.20gb")) == ["0:0"]


def test_a_held_gpu_keeps_all_its_mig_devices_as_nobody_knows_which_is_held() -> None:
    holders = [{"pid": 7, "name": "python", "kind": "process", "container": None}]
    host = inventory.host(_facts(CUT, gpu0={"holders": holders}))
    assert "held by python (pid 7), without a lease" in _place(host, "mig=1g.5gb").reason


def test_what_does_not_exist_is_made_on_an_idle_gpu_beside_what_there_is() -> None:
    host = inventory.host(_facts(CUT, []), {"MIG-0-0": [Tenant("a")]})
    found = _place(host, "mig=2g.10gb")
    (made,) = found.reshapes
    assert made.gpu.index == 1
    # Not at 0, where the largest profiles lie.
    assert "GPU 1: create GPU instance 2g.10gb at 4:2" in [step.text for step in made.plan.steps]
    assert "are made on GPU1, which is idle" in found.notes[0]
    assert "Take a new 2g.10gb" in explain.text(
        explain.explain(host, request.of_claim(grammar.parse("mig=2g.10gb")))
    )


def test_free_devices_go_for_it_and_no_more_of_them_than_needed() -> None:
    host = inventory.host(_facts([("1g.5gb", place, 1) for place in range(7)]))
    (made,) = _place(host, "mig=3g.20gb").reshapes
    gone = [step.text for step in made.plan.steps if step.verb == "destroy_gpu"]
    assert len(gone) == 3


def test_a_gpu_with_somebody_on_it_is_not_reshaped() -> None:
    host = inventory.host(_facts(CUT, None), {"MIG-0-1": [Tenant("a")]})
    said = _place(host, "mig=7g.40gb").reason
    assert "GPU0: is not idle: 0:1 in use" in said
    assert "GPU1: has MIG off" in said


def test_links_between_mig_devices_are_not_to_be_had() -> None:
    host = inventory.host(_facts(CUT))
    assert (
        "cannot reach each other"
        in _place(host, "mig=1g.5gb+count=2+link=nvlink+policy=strict").reason
    )


@pytest.mark.parametrize(
    ("layout", "profile", "start"),
    [
        ((), "1g.5gb", 6),
        ((), "3g.20gb", 4),
        ((("3g.20gb", Placement(4, 4)),), "1g.5gb", 3),
        ((("1g.5gb", Placement(6, 1)),), "1g.5gb", 5),
    ],
)
def test_the_start_that_leaves_the_most(
    layout: tuple[tuple[str, Placement], ...], profile: str, start: int
) -> None:
    assert GEOMETRY is not None
    wanted = GEOMETRY.profile(profile)
    assert wanted is not None
    found = Room(GEOMETRY).best(layout, wanted)
    assert found is not None
    assert found[1].start == start


def test_an_empty_gpu_is_opened_last() -> None:
    assert GEOMETRY is not None
    wanted = GEOMETRY.profile("1g.5gb")
    assert wanted is not None
    room = Room(GEOMETRY)
    used = (("4g.20gb", Placement(0, 4)),)
    found = room.choose([(), used], wanted)
    assert found is not None
    assert found[0] == 1
    assert room.choose([(("7g.40gb", Placement(0, 8)),)], wanted) is None
