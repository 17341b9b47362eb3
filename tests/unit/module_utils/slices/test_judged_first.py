# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is judged of a slice before it is touched: limits that squeeze, drop-ins, protections."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.slices import (
    manage,
    reader,
    squeeze,
)
from ansible_collections.steadygpu.host.plugins.module_utils.slices.manage import (
    ensure_present,
)
from ansible_collections.steadygpu.host.plugins.module_utils.slices.model import SliceError, Wish
from ansible_collections.steadygpu.host.plugins.module_utils.slices.properties import (
    PropertyError,
    parse_properties,
)
from ansible_collections.steadygpu.host.plugins.module_utils.slices.squeeze import (
    MemoryUse,
    TaskUse,
)

from .pretended import GROUP, MACHINE, NAME, Systemd, memory, wish


@pytest.mark.parametrize("check_mode", [True, False])
def test_a_memory_limit_below_the_current_use_kills_nobody(
    systemd: Systemd, check_mode: bool
) -> None:
    ensure_present(memory(systemd, MemoryMax="1G"), check_mode=False)
    before = systemd.file()
    systemd.use = MemoryUse(700 << 20, 5 << 20, 100 << 20, None, 1 << 30)
    with pytest.raises(SliceError, match="MemoryMax=512M is below what") as refused:
        ensure_present(memory(systemd, MemoryMax="512M"), check_mode)
    said = str(refused.value)
    assert "700M of memory (100M of it page cache" in said
    assert "5M of swap" in said
    assert "below_current_use: true" in said
    assert (systemd.file(), systemd.kernel["MemoryMax"]) == (before, "1G")


def test_a_percentage_is_a_limit_too_and_the_first_limit_lowers(systemd: Systemd) -> None:
    ensure_present(memory(systemd), check_mode=False)
    systemd.use = MemoryUse(700 << 20)
    with pytest.raises(SliceError, match="MemoryMax=25% is below"):
        ensure_present(memory(systemd, MemoryMax="25%"), check_mode=True)


def test_a_tight_memory_limit_can_be_asked_for(systemd: Systemd) -> None:
    ensure_present(memory(systemd, MemoryMax="1G"), check_mode=False)
    systemd.use = MemoryUse(700 << 20, maximum=1 << 30)
    tight = dataclasses.replace(memory(systemd, MemoryMax="512M"), below_current_use=True)
    assert ensure_present(tight, check_mode=False).effective == {"MemoryMax": "512M"}


@pytest.mark.parametrize(
    "use", [MemoryUse(400 << 20, maximum=1 << 30), MemoryUse(700 << 20, maximum=512 << 20), None]
)
def test_a_limit_that_squeezes_nobody_is_set(systemd: Systemd, use: MemoryUse | None) -> None:
    ensure_present(memory(systemd, MemoryMax="1G"), check_mode=False)
    systemd.use = use
    outcome = ensure_present(memory(systemd, MemoryMax="512M"), check_mode=False)
    assert outcome.effective == {"MemoryMax": "512M"}


def test_a_soft_limit_below_the_current_use_is_set_with_a_warning(systemd: Systemd) -> None:
    ensure_present(memory(systemd, MemoryHigh="1G"), check_mode=False)
    systemd.use = MemoryUse(700 << 20, high=1 << 30)
    outcome = ensure_present(memory(systemd, MemoryHigh="512M"), check_mode=False)
    assert outcome.effective == {"MemoryHigh": "512M"}
    assert "throttled" in outcome.warnings[0]


def test_a_limit_of_tasks_below_those_inside_is_refused(systemd: Systemd) -> None:
    ensure_present(wish(systemd), check_mode=False)
    systemd.tasks = TaskUse(tasks=300, tasks_max=512)
    with pytest.raises(SliceError, match="below the 300 tasks"):
        ensure_present(wish(systemd, tasks=200), check_mode=False)
    assert systemd.kernel["TasksMax"] == "512"
    allowed = wish(systemd, tasks=200, below_current_use=True)
    assert ensure_present(allowed, check_mode=False).effective == {"TasksMax": "200"}


def test_a_drop_in_that_may_win_stays_and_is_told(
    systemd: Systemd, monkeypatch: pytest.MonkeyPatch
) -> None:
    drop_in = "/etc/systemd/system/ai-workload.slice.d/mine.conf"
    monkeypatch.setattr(reader, "drop_ins", lambda _name: {drop_in: "[Slice]\nTasksMax=7\n"})
    systemd.stubborn = "7"
    outcome = ensure_present(wish(systemd, drop_ins_win=True), check_mode=False)
    assert not [action for action in outcome.actions if "set TasksMax" in action]
    assert outcome.effective == {"TasksMax": "7"}
    (verdict,) = outcome.verdicts
    assert verdict.verdict == "inert"
    assert "mine.conf sets TasksMax=7" in verdict.reason
    assert any("mine.conf" in warning for warning in outcome.warnings)
    assert not ensure_present(wish(systemd, drop_ins_win=True), check_mode=False).changed


def test_a_protection_that_the_slice_above_does_not_have_is_inert(systemd: Systemd) -> None:
    systemd.above = {"memory.low": ("ai.slice", 0)}
    settings = parse_properties({"MemoryLow": "1G"})
    asked = Wish(NAME, "x", settings, str(systemd.path.parent))
    systemd.more_files = {"memory.low": str(1 << 30)}
    (verdict,) = ensure_present(asked, check_mode=False).verdicts
    assert verdict.verdict == "inert"
    assert "ai.slice above it has MemoryLow=0" in verdict.reason


@pytest.mark.parametrize(
    ("asked", "use", "said"),
    [
        ({"CPUQuota": "200%"}, TaskUse(3, quota=3.0), "CPUQuota=200% (it was 300%)"),
        ({"CPUQuota": "200%"}, TaskUse(3), "it was no limit"),
        ({"AllowedCPUs": "0-1"}, TaskUse(3, cpus=(0, 1, 2, 3)), "CPU 2-3 less"),
        ({"CPUQuota": "200%"}, TaskUse(3, quota=2.0), None),
        ({"CPUQuota": "200%"}, TaskUse(0), None),
        ({"AllowedCPUs": "0-3"}, TaskUse(3, cpus=(0, 1)), None),
    ],
)
def test_less_cpu_slows_down_and_is_told(
    asked: dict[str, Any], use: TaskUse, said: str | None
) -> None:
    warning = squeeze.slowing_warning(NAME, parse_properties(asked), use)
    assert (said in (warning or "")) if said else warning is None


def test_a_memory_node_is_not_taken_from_tasks_inside() -> None:
    settings = parse_properties({"AllowedMemoryNodes": "0"})
    fault = squeeze.crowding_fault(NAME, settings, TaskUse(5, memory_nodes=(0, 1)), MACHINE)
    assert fault is not None
    assert "takes node 1 from the 5 tasks" in fault
    assert squeeze.crowding_fault(NAME, settings, TaskUse(0, memory_nodes=(0, 1)), MACHINE) is None
    assert squeeze.crowding_fault(NAME, settings, TaskUse(5, memory_nodes=(0,)), MACHINE) is None


def test_a_burst_makes_way_for_a_lower_quota(
    systemd: Systemd, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = Wish(NAME, "x", parse_properties({"CPUQuota": "200%"}), str(systemd.path.parent))
    seen: list[tuple[str, int]] = []

    def clear(group: str, quota_us: int) -> int:
        seen.append((group, quota_us))
        systemd.more_files = {"cpu.max": "200000 100000"}
        return 300000

    monkeypatch.setattr(manage.guard, "clear_if_above", clear)
    systemd.more_files = {"cpu.max": "300000 100000"}
    outcome = ensure_present(asked, check_mode=False)
    assert seen == [(GROUP, 200000)]
    assert any("cpu.max.burst" in action for action in outcome.actions)


def test_sy_002_a_slice_is_not_delegated() -> None:
    with pytest.raises(PropertyError, match="a property of services and scopes"):
        parse_properties({"Delegate": True})
