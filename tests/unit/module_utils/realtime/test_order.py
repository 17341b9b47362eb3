# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.realtime import manage
from ansible_collections.steadygpu.host.plugins.module_utils.realtime.model import Partition, Wish
from ansible_collections.steadygpu.host.plugins.module_utils.realtime.order import for_way_back
from ansible_collections.steadygpu.host.plugins.module_utils.settings import apply as keeper
from ansible_collections.steadygpu.host.plugins.module_utils.settings import between
from ansible_collections.steadygpu.host.plugins.module_utils.settings import record as records
from ansible_collections.steadygpu.host.plugins.module_utils.settings.readback import live_path

RUNTIME = "proc/sys/kernel/sched_rt_runtime_us"
PERIOD = "proc/sys/kernel/sched_rt_period_us"
SERVERS = "sys/kernel/debug/sched/fair_server"


@pytest.fixture
def strict(host, monkeypatch):
    """A kernel that takes no runtime above its period, and no fair server above the sysctls."""
    real = keeper.write_live

    def kernel(target, value, root):
        path = live_path(target)
        if path.endswith(".partition"):
            real(target, value, root)
            return
        other = path.replace("runtime", "period") if "runtime" in path else ""
        other = other or path.replace("period", "runtime")
        beside = int(host.has(other.lstrip("/")))
        runtime, period = (int(value), beside) if "runtime" in path else (beside, int(value))
        if runtime > period:
            raise OSError(22, "Invalid argument")
        if "fair_server" in path:
            if runtime / period > int(host.has(RUNTIME)) / int(host.has(PERIOD)):
                raise OSError(16, "Device or resource busy")
        elif host.there(f"{SERVERS}/cpu0/runtime"):
            server = int(host.has(f"{SERVERS}/cpu0/runtime"))
            if server / int(host.has(f"{SERVERS}/cpu0/period")) > runtime / period:
                raise OSError(16, "Device or resource busy")
        real(target, value, root)

    monkeypatch.setattr(keeper, "write_live", kernel)
    monkeypatch.setattr(between, "write_live", kernel)
    return host


def _old_kernel(host):
    host.kernel("5.14.0-503.el9")
    (host.path / "sys/kernel/debug/sched").rename(host.path / "sys/kernel/debug/other")


@pytest.mark.parametrize("runs", [1, 2, 3])
def test_a_long_period_is_put_back_after_any_number_of_runs(strict, runs):
    _old_kernel(strict)
    for _run in range(runs):
        manage.ensure_present(Wish(runtime_us=1_900_000, period_us=2_000_000), False, strict.root)
    done = manage.ensure_absent(False, strict.root).outcome
    assert (done.warnings, strict.has(RUNTIME), strict.has(PERIOD)) == ([], "950000", "1000000")
    assert records.owners(strict.root) == []


def test_a_window_that_is_undone_after_a_second_run_puts_a_long_period_back(strict):
    _old_kernel(strict)
    for _run in range(2):
        manage.ensure_present(Wish(runtime_us=1_900_000, period_us=2_000_000), False, strict.root)
    found = between.moves(records.load("realtime", strict.root), None, strict.root)
    assert between.carry_out(found, strict.root) == []
    assert (strict.has(RUNTIME), strict.has(PERIOD)) == ("950000", "1000000")


@pytest.mark.parametrize(
    "between_them", [(100_000, 200_000), (3_000_000, 4_000_000), (1_900_000, 2_000_000)]
)
def test_a_pair_that_was_changed_twice_is_put_back_to_the_first_values(strict, between_them):
    _old_kernel(strict)
    strict.write(RUNTIME, "1500000")
    strict.write(PERIOD, "2000000")
    for runtime, period in (between_them, (900_000, 1_000_000)):
        manage.ensure_present(Wish(runtime_us=runtime, period_us=period), False, strict.root)
    done = manage.ensure_absent(False, strict.root).outcome
    assert (done.warnings, strict.has(RUNTIME), strict.has(PERIOD)) == ([], "1500000", "2000000")


def test_sysctls_and_servers_are_the_same_record_after_each_run(strict):
    wish = Wish(
        runtime_us=100_000,
        bound_deadline=True,
        fair_runtime_us=90_000,
        partition=Partition((3,)),
    )
    manage.ensure_present(wish, False, strict.root)
    record = strict.path / records.path_of("realtime").lstrip("/")
    first = record.stat()
    assert manage.ensure_present(wish, True, strict.root).outcome.actions == []
    assert manage.ensure_present(wish, False, strict.root).outcome.actions == []
    assert record.stat().st_mtime_ns == first.st_mtime_ns, "written again"
    done = manage.ensure_absent(False, strict.root).outcome
    assert (done.warnings, strict.has(RUNTIME)) == ([], "950000")
    assert strict.has(f"{SERVERS}/cpu3/runtime") == "50000000"


def test_servers_go_back_before_sysctls_that_allow_less(strict):
    strict.write(RUNTIME, "60000")
    wish = Wish(runtime_us=700_000, bound_deadline=True, fair_runtime_us=300_000)
    for _run in range(2):
        manage.ensure_present(wish, False, strict.root)
    done = manage.ensure_absent(False, strict.root).outcome
    assert (done.warnings, strict.has(RUNTIME)) == ([], "60000")
    assert strict.has(f"{SERVERS}/cpu0/runtime") == "50000000"


def test_the_order_for_the_way_back_is_its_own_order(strict):
    wish = Wish(runtime_us=700_000, bound_deadline=True, fair_runtime_us=300_000)
    manage.ensure_present(wish, False, strict.root)
    formers = records.load("realtime", strict.root).formers
    assert len(formers) == 10
    assert for_way_back(formers) == formers
    assert sorted(map(str, for_way_back(formers[::-1]))) == sorted(map(str, formers))
