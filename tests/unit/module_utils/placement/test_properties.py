# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What must hold for any machine, any users on it and any request."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.steadygpu.host.plugins.module_utils.placement import (
    choose,
    explain,
    fabric,
)
from ansible_collections.steadygpu.host.plugins.module_utils.placement.model import (
    Host,
    Request,
    Tenant,
)
from ansible_collections.steadygpu.host.tests.unit.module_utils.placement import hosts

WORDS = ("NV1", "NV2", "NV12", "PIX", "PXB", "PHB", "NODE", "SYS", None)


@st.composite
def machines(draw: st.DrawFn, most: int = 6) -> Host:
    """Machines of up to six GPUs with somebody on some and something wrong with others."""
    size = draw(st.integers(1, most))
    matrix: list[list[str | None]] = [["X"] * size for _row in range(size)]
    for i in range(size):
        for j in range(i):
            matrix[i][j] = matrix[j][i] = draw(st.sampled_from(WORDS))
    nodes = [draw(st.sampled_from((0, 1, None))) for _gpu in range(size)]
    host = hosts.made(matrix, nodes)
    changes: dict[int, dict[str, object]] = {}
    for i in range(size):
        changes[i] = {
            "used_mib": draw(st.sampled_from((0, 0, 4000, 60000))),
            "reserved_mib": draw(st.sampled_from((0, 600))),
            "foreign": draw(st.sampled_from((None, None, None, "held by python (pid 1)"))),
            "faults": draw(st.sampled_from(((), (), (), ("GPU is lost",)))),
            "doubts": draw(st.sampled_from(((), (), (), ("a row waits",)))),
            "weak": draw(st.sampled_from((None, None, None, f"GPU{i} lost links"))),
            "tenants": draw(
                st.sampled_from(((), (), (Tenant("a", 8000, 30.0, "time"),), (Tenant("b"),)))
            ),
        }
    return hosts.with_devices(host, changes)


REQUESTS = st.builds(
    Request,
    count=st.integers(1, 5),
    memory_mib=st.sampled_from((None, 8192, 70000)),
    share=st.sampled_from((None, None, "time", "mps")),
    tier=st.sampled_from((None, "nvlink", "phb", "sys")),
    strict=st.booleans(),
    numa=st.sampled_from((None, None, "single", "0")),
    policy=st.sampled_from(("pack", "spread", "numa")),
)


@given(machines(), REQUESTS)
def test_nobody_gets_an_unhealthy_or_busy_device(host: Host, request: Request) -> None:
    found = choose.place(host, request)
    assert len(found.chosen) == (request.count if found.chosen else 0)
    assert bool(found.chosen) != bool(found.reason)
    assert len({device.uuid for device in found.chosen}) == len(found.chosen)
    for device in found.chosen:
        assert not device.faults
        assert device.foreign is None
        for tenant in device.tenants:
            assert request.shared
            assert tenant.share is not None


@given(machines(), REQUESTS)
def test_a_strict_tier_and_a_single_node_are_kept(host: Host, request: Request) -> None:
    found = choose.place(host, request)
    places = hosts.names(found.chosen)
    if request.numa == "single":
        assert len({device.numa_node for device in found.chosen} - {None}) <= 1
    if request.numa == "0":
        assert all(device.numa_node in (0, None) for device in found.chosen)
    if request.strict and request.tier == "nvlink":
        for i in places:
            for j in places:
                assert i == j or str(host.levels[i][j]).startswith("NV")


@given(machines(), REQUESTS, st.data())
def test_a_further_free_device_never_makes_it_worse(
    host: Host, request: Request, data: st.DataObject
) -> None:
    place = data.draw(st.integers(0, len(host.gpus) - 1))
    taken = hosts.with_devices(host, {place: {"foreign": "held"}})
    freed = hosts.with_devices(host, {place: {"foreign": None}})
    before, after = choose.place(taken, request), choose.place(freed, request)
    if before.chosen:
        assert after.chosen
        assert _quality(freed, request) >= _quality(taken, request)


@given(machines(), REQUESTS, st.randoms(use_true_random=False))
def test_other_numbers_for_the_gpus_change_no_quality(
    host: Host, request: Request, drawn: object
) -> None:
    order = list(range(len(host.gpus)))
    drawn.shuffle(order)  # type: ignore[attr-defined]
    other = hosts.relabelled(host, order)
    assert _quality(host, request) == _quality(other, request)


@given(machines(), REQUESTS)
def test_explain_says_what_was_chosen_and_nothing_in_it_is_better(
    host: Host, request: Request
) -> None:
    found = choose.place(host, request)
    told = explain.explain(host, request)
    assert told.decision == found
    assert explain.text(told)
    assert told.as_dict()
    if not found.chosen:
        assert not told.candidates
        return
    winner, *others = told.candidates
    assert winner.devices == tuple(device.name for device in found.chosen)
    assert not winner.lost
    for one in others:
        assert one.lost
        assert one.verdict.order() <= winner.verdict.order()
    excluded = {device.name for device, _why in found.excluded}
    seen = {name for one in told.candidates for name in one.devices}
    assert not excluded & seen


@given(machines(), REQUESTS)
def test_counted_and_listed_machines_are_answered_alike(host: Host, request: Request) -> None:
    listed, counted = fabric.of_host(host), fabric.of_host(host)
    listed.counted, counted.counted = False, True
    assert choose.place(host, request, listed) == choose.place(host, request, counted)


def _quality(host: Host, request: Request) -> tuple[object, ...]:
    """What a user would call better or worse: all but what is left, and the numbers."""
    question = choose.ask(host, request)
    chosen, _proven = choose.best(question)
    if not chosen:
        return ()
    return replace(question.verdict(chosen), left=()).order()
