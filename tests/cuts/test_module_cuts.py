# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""SIGKILL right before a call of a module that changes the disk: the next run ends as wanted.

A spread sample runs with the other tests, every call in ``make sweep``.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Sequence

import pytest

from ansible_collections.steadygpu.host.tests.cuts import tracing
from ansible_collections.steadygpu.host.tests.cuts.module_sweep import (
    OPERATIONS,
    ModuleOperation,
    ModuleSweep,
    Prepared,
)
from ansible_collections.steadygpu.host.tests.cuts.sweep import COUNTS

SAMPLE = 2
# Nobody needs /tmp after a power loss.
FORGIVEN = ("/tmp: ", "/tmp/")


def spread(calls: Sequence[tracing.Call], wanted: int) -> list[tracing.Call]:
    """So many of them, evenly, the last one among them."""
    count = min(wanted, len(calls))
    return [calls[(number + 1) * len(calls) // count - 1] for number in range(count)]


def cut_all(sweep: ModuleSweep, whole: Prepared, calls: Sequence[tracing.Call]) -> None:
    """Each of them in turn; all that go wrong are told, and how many there were is kept."""
    began = time.monotonic()
    failures = []
    for call in calls:
        try:
            sweep.cut(whole, call)
        except AssertionError as error:
            failures.append(str(error))
    COUNTS.mkdir(parents=True, exist_ok=True)
    row = {
        "operation": whole.operation.name,
        "cuts": len(calls),
        "calls": len(whole.record.calls),
        "by_name": Counter(call.name for call in whole.record.calls),
        "seconds": round(time.monotonic() - began, 1),
    }
    (COUNTS / f"{whole.operation.name}.json").write_text(json.dumps(row))
    assert not failures, f"{len(failures)} of {len(calls)} cuts:\n" + "\n".join(failures[:20])


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda one: one.name)
def test_a_sample_of_cuts_of_a_module(
    module_sweep: ModuleSweep, operation: ModuleOperation
) -> None:
    whole = module_sweep.prepare(operation)
    assert len(whole.record.calls) >= 3, whole.record.lines
    told = tracing.unflushed(whole.record, whole.whole)
    faults = [fault for fault in told if not any(one in fault for one in FORGIVEN)]
    assert not faults, "\n".join(faults)
    cut_all(module_sweep, whole, spread(whole.record.calls, SAMPLE))


@pytest.mark.sweep
@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda one: one.name)
def test_every_cut_of_a_module(module_sweep: ModuleSweep, operation: ModuleOperation) -> None:
    whole = module_sweep.prepare(operation)
    cut_all(module_sweep, whole, whole.record.calls)
