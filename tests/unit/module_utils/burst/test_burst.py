# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.burst import apply as bursts
from ansible_collections.steadygpu.host.plugins.module_utils.burst import guard, manage, model
from ansible_collections.steadygpu.host.plugins.module_utils.settings import record as records

GROUP = "/ai.slice/ai-workload.slice"
NAME = "ai-workload.slice"


@pytest.mark.parametrize(
    ("per_second", "period", "expected"),
    [
        ("3s", "infinity", (300_000, 100_000)),
        ("1.5s", "infinity", (150_000, 100_000)),
        ("500ms", "25ms", (12_500, 25_000)),
        ("1min 4s", "infinity", (6_400_000, 100_000)),
        # A quota is at least 1 ms: for 0.5 % systemd takes a longer period.
        ("5ms", "infinity", (1_000, 200_000)),
        ("infinity", "infinity", (None, 100_000)),
        ("", "", (None, 100_000)),
    ],
)
def test_the_quota_is_what_systemd_writes(per_second, period, expected):
    assert model.asked_quota(per_second, period) == expected


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        ("120%", "no more than the quota"),
        ("fast", "wanted a percentage"),
        (True, "as text"),
        (50000, "as text"),
    ],
)
def test_a_burst_that_cannot_be_is_refused_with_what_is_wanted(raw, said):
    with pytest.raises(model.BurstError, match=said):
        model.parse(NAME, raw)


def test_row_170_a_burst_is_set_read_back_and_watched(host):
    done = manage.ensure_present({NAME: "100%"}, False, host.root)
    assert host.has("cpu.max.burst") == "300000"
    assert [(one.wanted, one.effective, one.verdict) for one in done.settings] == [
        ("300000", "300000", "effective")
    ]
    assert host.started == ["steadygpu-burst-ai-workload.path"]
    text = host.unit("steadygpu-burst-ai-workload.path").read_text()
    assert "PathModified=/sys/fs/cgroup/ai.slice/ai-workload.slice/cpu.max\n" in text
    assert "burst apply" in host.unit("steadygpu-burst.service").read_text()
    assert manage.ensure_present({NAME: "100%"}, False, host.root).actions == []


def test_check_mode_says_the_same_and_changes_nothing(host):
    seen = manage.ensure_present({NAME: "100%"}, True, host.root)
    assert seen.actions == manage.ensure_present({NAME: "100%"}, False, host.root).actions
    assert manage.ensure_absent(True, host.root).actions
    assert host.has("cpu.max.burst") == "300000"


def test_absent_gives_the_former_burst_back_and_leaves_nothing(host):
    host.burst("20000")
    manage.ensure_present({NAME: "50%"}, False, host.root)
    manage.ensure_present({NAME: "100%"}, False, host.root)
    manage.ensure_absent(False, host.root)
    assert host.has("cpu.max.burst") == "20000"
    assert host.started == []
    assert not list(host.unit(".").glob("**/steadygpu-*"))
    assert records.owners(host.root) == []
    assert manage.ensure_absent(False, host.root).actions == []


def test_a_slice_that_is_not_named_any_more_loses_its_watch_and_its_burst(host):
    other = host.group.parent / "ai-batch.slice"
    other.mkdir()
    (other / "cpu.max").write_text("50000 100000\n")
    (other / "cpu.max.burst").write_text("0\n")
    host.told["ai-batch.slice"] = {
        **host.told[NAME],
        "ControlGroup": "/ai.slice/ai-batch.slice",
        "CPUQuotaPerSecUSec": "500ms",
    }
    manage.ensure_present({NAME: "100%", "ai-batch.slice": "20ms"}, False, host.root)
    assert (other / "cpu.max.burst").read_text() == "20000\n"
    manage.ensure_present({NAME: "100%"}, False, host.root)
    assert (other / "cpu.max.burst").read_text() == "0\n"
    assert host.started == ["steadygpu-burst-ai-workload.path"]
    assert not host.unit("steadygpu-burst-ai-batch.path").exists()


def test_a_fixed_burst_above_the_quota_is_refused_before_anything_is_written(host):
    with pytest.raises(model.BurstError, match="takes no burst above the quota"):
        manage.ensure_present({NAME: "400ms"}, False, host.root)
    assert host.has("cpu.max.burst") == "0"
    assert not host.unit("steadygpu-burst.service").exists()


def test_a_burst_without_a_quota_is_inert_and_not_written(host):
    host.quota("max 100000")
    host.ask(CPUQuotaPerSecUSec="infinity")
    done = manage.ensure_present({NAME: "50ms"}, False, host.root)
    assert [(one.verdict, "no CPUQuota" in one.reason) for one in done.settings] == [
        ("inert", True)
    ]
    assert host.has("cpu.max.burst") == "0"


def test_a_kernel_without_burst_is_unsupported(host):
    (host.group / "cpu.max.burst").unlink()
    done = manage.ensure_present({NAME: "50ms"}, False, host.root)
    assert [one.verdict for one in done.settings] == ["unsupported"]
    assert "Linux 5.14" in done.settings[0].reason


def test_a_slice_that_does_not_run_gets_its_burst_when_it_starts(host):
    host.ask(ActiveState="inactive")
    done = manage.ensure_present({NAME: "100%"}, False, host.root)
    assert [one.verdict for one in done.settings] == ["pending"]
    assert host.has("cpu.max.burst") == "0"
    host.ask(ActiveState="active")
    assert bursts.apply(host.root).actions == [
        "set the burst of ai-workload.slice to 300ms (it was 0us)"
    ]
    manage.ensure_absent(False, host.root)
    assert host.has("cpu.max.burst") == "0"


def test_a_slice_that_nobody_made_is_refused_but_foreseen_in_check_mode(host):
    with pytest.raises(model.BurstError, match=r"no ai-new\.slice"):
        manage.ensure_present({"ai-new.slice": "100%"}, False, host.root)
    done = manage.ensure_present({"ai-new.slice": "100%"}, True, host.root)
    assert [one.verdict for one in done.settings] == ["pending"]


def test_a_lower_quota_that_the_burst_kept_away_is_given_to_the_kernel(host):
    """As seen in the lab: set-property says nothing, the journal says Failed to set 'cpu.max'."""
    manage.ensure_present({NAME: "100%"}, False, host.root)
    host.ask(CPUQuotaPerSecUSec="1s")
    done = bursts.apply(host.root)
    assert host.has("cpu.max") == "100000 100000"
    assert host.has("cpu.max.burst") == "100000"
    assert done.actions[0].startswith("set the quota of ai-workload.slice to 100ms in 100ms")
    assert [(one.wanted, one.verdict) for one in done.settings] == [("100000", "effective")]
    former = records.load("cpu_burst", host.root).formers[0]
    assert (former.target.wanted, former.value) == ("100000", "0")


def test_a_percentage_follows_a_higher_quota_and_a_span_is_told_when_it_does_not_fit(host):
    manage.ensure_present({NAME: "50%"}, False, host.root)
    host.quota("400000 100000")
    host.ask(CPUQuotaPerSecUSec="4s")
    bursts.apply(host.root)
    assert host.has("cpu.max.burst") == "200000"
    manage.ensure_present({NAME: "250ms"}, False, host.root)
    host.ask(CPUQuotaPerSecUSec="1s")
    told = bursts.apply(host.root).settings[0]
    assert host.has("cpu.max.burst") == "100000"
    assert (told.wanted, told.effective, told.verdict) == ("250000", "100000", "differs")
    assert "quota is only 100ms" in told.reason


def test_a_burst_goes_when_the_quota_goes_since_it_would_refuse_the_next_one(host):
    manage.ensure_present({NAME: "100%"}, False, host.root)
    host.quota("max 100000")
    host.ask(CPUQuotaPerSecUSec="infinity")
    assert "take the burst" in bursts.apply(host.root).actions[0]
    assert host.has("cpu.max.burst") == "0"
    assert bursts.apply(host.root).actions == []


def test_a_quota_that_differs_for_another_reason_is_left_to_who_set_it(host):
    manage.ensure_present({NAME: "10%"}, False, host.root)
    host.quota("200000 100000")
    bursts.apply(host.root)
    assert host.has("cpu.max") == "200000 100000"
    assert host.has("cpu.max.burst") == "20000"


def test_the_guard_makes_way_for_a_lower_quota_and_can_be_undone(host):
    host.burst("300000")
    assert guard.clear_if_above(GROUP, 100_000, host.root) == 300_000
    assert host.has("cpu.max.burst") == "100000"
    guard.put_back(GROUP, 300_000, host.root)
    assert host.has("cpu.max.burst") == "300000"
    assert guard.clear_if_above(GROUP, 400_000, host.root) is None
    assert guard.clear_if_above("/nowhere.slice", 1, host.root) is None


def test_without_the_agent_the_result_says_what_does_not_last(host):
    Path(host.root, "usr/local/bin/steadygpu").unlink()
    done = manage.ensure_present({NAME: "100%"}, False, host.root)
    assert "not kept over a reboot" in done.warnings[0]


def test_a_foreign_unit_of_that_name_is_refused_before_anything_is_written(host):
    host.unit(".").mkdir(parents=True)
    host.unit("steadygpu-burst.service").write_text("[Unit]\n")
    with pytest.raises(model.BurstError, match="is not of steadygpu"):
        manage.ensure_present({NAME: "100%"}, False, host.root)
    assert host.has("cpu.max.burst") == "0"
