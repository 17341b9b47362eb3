# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import threading
import time

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils import file_lock
from ansible_collections.steadygpu.host.plugins.module_utils.burst import apply as bursts
from ansible_collections.steadygpu.host.plugins.module_utils.burst import manage, model
from ansible_collections.steadygpu.host.plugins.module_utils.settings import record as records

NAME = "ai-workload.slice"


@pytest.fixture
def unit_at_work(host, monkeypatch):
    """The unit, stopped between the record it has read and the burst it sets."""
    manage.ensure_present({NAME: "50%"}, False, host.root)
    host.burst("0")
    has_read, go_on = threading.Event(), threading.Event()
    real = bursts.wishes_of

    def slow(record):
        found = real(record)
        has_read.set()
        go_on.wait(10)
        return found

    monkeypatch.setattr(bursts, "wishes_of", slow)
    unit = threading.Thread(target=bursts.apply, args=(host.root,))
    unit.start()
    has_read.wait(10)
    yield unit, go_on
    go_on.set()
    unit.join(10)


def _meanwhile(unit_at_work, act):
    unit, go_on = unit_at_work
    module = threading.Thread(target=act)
    module.start()
    time.sleep(0.2)
    go_on.set()
    module.join(10)
    unit.join(10)


def test_a_unit_at_work_brings_nothing_back_that_absent_took_away(host, unit_at_work):
    _meanwhile(unit_at_work, lambda: manage.ensure_absent(False, host.root))
    assert records.owners(host.root) == []
    assert host.has("cpu.max.burst") == "0"


def test_a_unit_at_work_does_not_write_over_what_the_module_remembers(host, unit_at_work):
    _meanwhile(unit_at_work, lambda: manage.ensure_present({NAME: "100%"}, False, host.root))
    assert records.load("cpu_burst", host.root).extra == {"slices": {NAME: "100%"}}
    assert host.has("cpu.max.burst") == "300000"


def test_who_waits_in_vain_is_told_for_whom(host, monkeypatch):
    monkeypatch.setattr(bursts, "_WAIT_S", 0)
    with bursts.alone(host.root), pytest.raises(model.BurstError, match="has been at the bursts"):
        bursts.apply(host.root)
    assert bursts.apply(host.root).faults == []


def test_check_mode_neither_waits_nor_leaves_a_lock(host, monkeypatch):
    def refused(*_args):
        raise file_lock.HeldError("1")

    monkeypatch.setattr(file_lock, "acquire", refused)
    assert manage.ensure_present({NAME: "100%"}, True, host.root).actions
    assert manage.ensure_absent(True, host.root).actions == []


def test_a_burst_that_waits_to_be_put_back_is_not_forgotten_by_the_unit(host):
    manage.ensure_present({NAME: "50%"}, False, host.root)
    record = records.load("cpu_burst", host.root)
    waiting = records.Record(record.owner, record.formers, (), record.extra, record.formers)
    records.save(waiting, host.root)
    bursts.apply(host.root)
    assert records.load("cpu_burst", host.root).returning == record.formers
