# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""SIGKILL right before a system call that changes the disk: nothing is half, nothing is lost.

A spread sample runs with the other tests, every call in ``make sweep``.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Sequence

import pytest

from ansible_collections.steadygpu.host.tests.cuts import tracing, world
from ansible_collections.steadygpu.host.tests.cuts.sweep import (
    COUNTS,
    OPERATIONS,
    RESUME,
    UNDO,
    Operation,
    Prepared,
    Sweep,
    sample,
)

# How many cuts of each operation are in the sample, besides those that exchange a managed file.
SAMPLE = {"undo": 8, "begin": 5}
REST = 3


def prepared(sweep: Sweep, operation: Operation) -> Prepared:
    """The whole run, which must have something to cut."""
    found = sweep.prepare_resume() if operation is RESUME else sweep.prepare(operation)
    assert len(found.record.calls) >= 5, found.record.lines
    return found


def cut_all(sweep: Sweep, whole: Prepared, calls: Sequence[tracing.Call]) -> None:
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
def test_a_sample_of_cuts(sweep: Sweep, operation: Operation) -> None:
    whole = prepared(sweep, operation)
    cut_all(sweep, whole, sample(whole.record.calls, SAMPLE.get(operation.name, REST)))
    faults = tracing.unflushed(whole.record, whole.whole)
    assert not faults, "\n".join(faults)


@pytest.mark.sweep
@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda one: one.name)
def test_every_cut(sweep: Sweep, operation: Operation) -> None:
    whole = prepared(sweep, operation)
    cut_all(sweep, whole, whole.record.calls)


def test_the_run_that_is_not_cut_brings_back_what_was(sweep: Sweep) -> None:
    """What the sweep compares with is right itself."""
    whole = prepared(sweep, UNDO)
    host = sweep.laid_out()
    left_alone = {world.FOREIGN, world.CONTAINERD}
    kept = world.CONFLICT + ".steadygpu-conflict"
    for path, wanted in host.items():
        if not path.startswith("/recorded") and path not in left_alone:
            assert whole.after[path] == wanted, path
    new = {path for path in set(whole.after) - set(host) if not path.startswith("/recorded")}
    assert new == {kept}
    assert whole.after[kept] == whole.before[world.CONFLICT]
    for path in left_alone:
        assert whole.after[path] == whole.before[path] != host[path]
    answer = whole.record.answer
    assert answer["changed"]
    assert answer["conflicts"] == [world.CONFLICT]
    told = {subject for subject, _reason in answer["left"]}
    assert left_alone <= told
    rest = world.recorded(whole.whole)
    assert rest["sysctls"] == {"kernel.sched_rt_runtime_us": "950000"}
    assert rest["units"]["docker.service"]["enabled"] == "enabled"
    assert rest["mig"]["gpus"][0]["mig"] is False
