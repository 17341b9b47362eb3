# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Random valid layouts on the simulated driver: reached, nothing in the way touched, no overlap."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ansible_collections.steadygpu.host.plugins.module_utils.mig.model import GpuInstance
from ansible_collections.steadygpu.host.plugins.module_utils.mig.names import (
    compute_sizes,
    device_name,
)
from ansible_collections.steadygpu.host.tests.unit.module_utils.mig.machine import (
    cannot_hold,
    table,
)
from ansible_collections.steadygpu.host.tests.unit.module_utils.mig.simulated import (
    Host,
    run_jobs,
)


@st.composite
def layouts(draw: st.DrawFn, model: str) -> dict[str, int]:
    """Counts of MIG devices that fit together: instances drawn one by one onto free slices."""
    geometry = table(model)
    places = [
        GpuInstance(profile.name, placement)
        for profile in geometry.profiles
        for placement in profile.placements
    ]
    chosen: list[GpuInstance] = []
    counts: Counter[str] = Counter()
    for one in draw(st.lists(st.sampled_from(places), max_size=9)):
        if cannot_hold(geometry, [*chosen, one]):
            continue
        chosen.append(one)
        profile = geometry.profile(one.profile)
        assert profile is not None
        size = draw(st.sampled_from([profile.slices, *compute_sizes(profile.slices)]))
        # As many as fill the instance: fewer could be packed by the planner into fewer instances.
        if profile.slices % size == 0:
            counts[device_name(one.profile, profile.slices, size)] += profile.slices // size
        else:
            counts[one.profile] += 1
    return dict(counts)


def devices(view: dict[str, Any]) -> dict[str, int]:
    """MIG devices of the first GPU by profile."""
    instances = view["gpus"][0]["instances"]
    return dict(Counter(one["profile"] for inst in instances for one in inst["devices"]))


def places(view: dict[str, Any]) -> dict[tuple[str, int, tuple[str, ...]], int]:
    """Profile, first slice and devices of each instance of the first GPU -> its number."""
    return {
        (one["profile"], one["start"], tuple(sorted(d["profile"] for d in one["devices"]))): one[
            "id"
        ]
        for one in view["gpus"][0]["instances"]
    }


@pytest.mark.parametrize(("profile", "model"), [("dgx-a100", "A100"), ("hgx-h100", "H100")])
def test_any_valid_layout_is_reached_from_any_other(
    built: Callable[[str], Path], profile: str, model: str
) -> None:
    @settings(max_examples=10, suppress_health_check=[HealthCheck.too_slow])
    @given(layouts(model), layouts(model))
    def reached(first: dict[str, int], second: dict[str, int]) -> None:
        with TemporaryDirectory() as directory:
            host = Host(built(profile), Path(directory))
            jobs = [
                step
                for layout in (first, second, second)
                for step in (host.job("apply", {"0": layout}), host.job("view"))
            ]
            answers = run_jobs(host.built, jobs)
        one, before, two, after, three, _same = (answer or {} for answer in answers)
        for run in (one, two, three):
            assert "error" not in run, run["error"]
        assert devices(before) == first
        assert devices(after) == second
        assert not three["changed"]
        slices = [
            number
            for inst in after["gpus"][0]["instances"]
            for number in range(inst["start"], inst["start"] + inst["size"])
        ]
        assert len(slices) == len(set(slices)), "instances overlap"
        for key in places(before).keys() & places(after).keys():
            number = places(before)[key]
            assert not any(
                f"destroy GPU instance {number} (" in action for action in two["actions"]
            ), f"{key} was destroyed and made again"

    reached()
