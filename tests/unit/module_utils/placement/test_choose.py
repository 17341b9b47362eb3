# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which devices are chosen, and the words for it."""

from __future__ import annotations

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.claims import grammar
from ansible_collections.steadygpu.host.plugins.module_utils.placement import (
    choose,
    explain,
    request,
)
from ansible_collections.steadygpu.host.plugins.module_utils.placement.model import (
    ALL,
    Decision,
    Host,
    PlacementError,
    Request,
    Tenant,
    Weights,
)
from ansible_collections.steadygpu.host.tests.unit.module_utils.placement import hosts
from ansible_collections.steadygpu.host.tests.unit.module_utils.topology.recorded import by_name

LOST = hosts.lost_links()
PAIRS = hosts.bridged([(0, 2), (1, 3), (4, 5), (6, 7)])


def _place(host: Host, claim: str, policy: str = "pack") -> Decision:
    return choose.place(host, request.of_claim(grammar.parse(claim), policy))


def _taken(host: Host, claim: str, policy: str = "pack") -> list[int]:
    return hosts.names(_place(host, claim, policy).chosen)


@pytest.mark.parametrize("count", range(2, 8))
def test_a_gpu_without_its_nvlinks_is_in_no_set_that_can_do_without_it(count: int) -> None:
    assert 2 not in _taken(LOST, f"count={count}")


def test_a_set_of_all_takes_it_and_says_so() -> None:
    found = _place(LOST, "count=8")
    assert 2 in hosts.names(found.chosen)
    assert any("cannot be done without GPU2" in note for note in found.notes)


def test_singles_fill_the_gpu_that_lost_its_links_first() -> None:
    assert _taken(LOST, "count=1") == [2]


def test_singles_fill_broken_pairs_first() -> None:
    assert _taken(hosts.busy(PAIRS, [4]), "count=1") == [5]
    assert _taken(hosts.busy(PAIRS, [0, 4, 5]), "count=1") == [2]


def test_a_pair_gets_a_bridge() -> None:
    assert _taken(PAIRS, "count=2") == [0, 2]
    assert _taken(hosts.busy(PAIRS, [0, 3]), "count=2") in ([4, 5], [6, 7])


def test_on_a_uniform_fabric_numa_decides() -> None:
    host = hosts.of_recorded(by_name("NIC order reversed"))
    taken = _taken(hosts.busy(host, [0]), "count=4")
    assert {host.gpus[i].device.numa_node for i in taken} == {1}
    assert _taken(hosts.busy(host, [0]), "count=3") == [1, 2, 3]


def test_policy_spread_leaves_free_gpus_on_both_nodes() -> None:
    host = hosts.of_recorded(by_name("NIC order reversed"))
    now = hosts.busy(host, [0])
    assert host.gpus[_taken(now, "count=1")[0]].device.numa_node == 0
    assert host.gpus[_taken(now, "count=1", "spread")[0]].device.numa_node == 1


def test_policy_numa_asks_for_nodes_before_links() -> None:
    across = hosts.bridged([(0, 4), (1, 5), (2, 6), (3, 7)])
    assert _taken(across, "count=2") == [0, 4]
    assert _taken(across, "count=2", "numa") == [0, 1]


def test_a_tier_is_a_wish_without_strict_and_a_must_with_it() -> None:
    wish = _place(PAIRS, "count=4+link=nvlink")
    assert len(wish.chosen) == 4
    assert any("link=nvlink is not to be had now" in note for note in wish.notes)
    must = _place(PAIRS, "count=4+link=nvlink+policy=strict")
    assert not must.chosen
    assert "no 4 free GPUs are so near" in must.reason
    assert "write policy=shared" in must.reason
    assert _taken(PAIRS, "count=4+link=node+policy=strict") == [0, 1, 2, 3]


def test_a_strict_tier_takes_a_doubtful_device_rather_than_none() -> None:
    host = hosts.with_devices(PAIRS, {i: {"doubts": ("a row waits",)} for i in (1, 2, 5, 7)})
    found = _place(host, "count=2+link=nvlink+policy=strict")
    assert hosts.names(found.chosen) == [0, 2]
    assert _taken(host, "count=2") == [0, 3]


def test_numa_single_is_refused_where_no_node_has_so_many() -> None:
    found = _place(LOST, "count=5+numa=single")
    assert "no NUMA node has 5" in found.reason
    assert _taken(LOST, "count=3+numa=single") == [0, 1, 3]
    assert _taken(LOST, "count=2+numa=1") == [4, 5]


def test_all_is_every_device_that_will_do() -> None:
    assert _taken(hosts.busy(LOST, [3]), "count=all") == [0, 1, 2, 4, 5, 6, 7]
    assert "no GPU will do" in choose.place(hosts.busy(LOST, range(8)), Request(count=ALL)).reason


def test_named_devices_are_these_and_no_others() -> None:
    assert _taken(LOST, "device=2,5") == [2, 5]
    assert _taken(LOST, "device=GPU-00000007") == [7]
    assert "GPU5: held by python" in _place(hosts.busy(LOST, [5]), "device=2,5").reason
    assert "device=9 is not on this host" in _place(LOST, "device=9").reason


def test_unhealthy_ones_are_never_taken() -> None:
    host = hosts.with_devices(LOST, {i: {"faults": ("GPU is lost",)} for i in range(7)})
    assert _taken(host, "count=1") == [7]
    assert "GPU0, GPU1, GPU2, GPU3, GPU4, GPU5, GPU6: GPU is lost" in _place(host, "count=2").reason


def test_what_the_driver_keeps_cannot_be_asked_for() -> None:
    host = hosts.with_devices(LOST, {i: {"reserved_mib": 640} for i in range(8)})
    assert "81280 MiB for containers (640 are the driver's)" in _place(host, "memory=80g").reason
    assert _taken(host, "memory=79g")


@pytest.mark.parametrize(
    ("changes", "claim", "said"),
    [
        ({"used_mib": 70000}, "share=time+memory=1g", "70000 of 81920 MiB are taken (85 %)"),
        ({"answer_s": 0.25}, "share=time+memory=1g", "answers in 250 ms, the objective is 200 ms"),
        ({"answer_s": 0.25}, "share=time+memory=1g+p99=100ms", "the objective is 100 ms"),
        (
            {"used_mib": 60000},
            "share=time+memory=10g+p99=1s",
            "has 9632 MiB left beside 12288 kept for an inference server",
        ),
        ({"tenants": (Tenant("job 7"),)}, "share=time", "is promised to job 7 alone"),
        ({"tenants": (Tenant("a", 1, 9, "mps"),)}, "share=time", "a shares it by mps"),
        ({"tenants": (Tenant("a", 1, 70, "mps"),)}, "share=mps+compute=40%", "70 % of it are"),
        ({"tenants": (Tenant("a", 1, 9, "mps"),)}, "count=1", "the claim wants it alone"),
    ],
)
def test_what_keeps_a_claim_off_a_shared_device(
    changes: dict[str, object], claim: str, said: str
) -> None:
    host = hosts.with_devices(LOST, dict.fromkeys(range(8), changes))
    assert said in _place(host, claim).reason


def test_the_filters_of_shared_devices_do_not_bind_an_exclusive_claim() -> None:
    host = hosts.with_devices(LOST, {i: {"used_mib": 400, "answer_s": 9.0} for i in range(8)})
    assert _taken(host, "memory=79g")


def test_shared_memory_is_packed_and_spread() -> None:
    on_three = {3: {"tenants": (Tenant("a", 40000, 0.0, "time"),)}}
    host = hosts.with_devices(LOST, on_three)
    assert _taken(host, "share=time+memory=8g") == [3]
    assert _taken(host, "share=time+memory=8g", "spread") != [3]


def test_weights_that_do_not_sum_to_one_are_refused() -> None:
    with pytest.raises(PlacementError, match=r"weights are 0\.5, 0\.25, 0\.1;"):
        Weights(memory=0.5)


@pytest.mark.parametrize("count", [0, -2])
def test_no_devices_is_no_request(count: int) -> None:
    with pytest.raises(PlacementError, match=f"count is {count}"):
        Request(count=count)


def test_explain_reads_like_an_answer() -> None:
    told = explain.explain(hosts.busy(LOST, [5]), Request(count=4))
    said = explain.text(told)
    assert said.startswith("Take GPU0 (GPU-00000000), GPU")
    assert "left out: GPU2 has no NVLink where the others have 18" in said
    assert "GPU5: held by python (pid 1)" in said
    assert "Best of 35 sets" in said
    assert "GPU2 has no NVLink where the others have 18" in said.split("why not")[1]
    assert told.as_dict()["candidates"][0]["lost"] == ""


def test_explain_of_sixteen_gpus_says_how_many_it_did_not_judge() -> None:
    matrix = [["X" if i == j else "NV6" for j in range(16)] for i in range(16)]
    told = explain.explain(hosts.made(matrix, [i // 8 for i in range(16)]), Request(count=8))
    assert hosts.names(told.decision.chosen) == list(range(8))
    assert len(told.candidates) + told.unseen == 12870
