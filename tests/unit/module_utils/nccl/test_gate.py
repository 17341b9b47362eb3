# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The gate: only bandwidth decides, and nobody's job pays for it."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.hardware.holders import Sight
from ansible_collections.steadygpu.host.plugins.module_utils.hardware.model import (
    Device,
    Holder,
    Mig,
)
from ansible_collections.steadygpu.host.plugins.module_utils.nccl import gate, users
from ansible_collections.steadygpu.host.plugins.module_utils.process import Completed
from ansible_collections.steadygpu.host.tests.unit.module_utils.nccl.fake_tests import program


def _free() -> None:
    return None


def _measure(path: str, busy=_free, deadline_s: float = 20.0) -> gate.Gate:
    return gate.measure(path, 4, "<system/>\n", busy, deadline_s, 3)


@pytest.mark.parametrize(
    ("after", "status"), [("58.7", "better"), ("41.9", "same"), ("41.0", "same"), ("30.1", "worse")]
)
def test_bandwidth_decides(tmp_path: Path, after: str, status: str) -> None:
    found = _measure(program(tmp_path, before="41.6", after=after))
    assert (found.status, found.before_gbs, found.after_gbs) == (status, 41.6, float(after))
    assert "41.60 GB/s without the file" in (found.reason or "")
    assert found.refuses == (status == "worse")


def test_it_runs_without_with_with_without(tmp_path: Path) -> None:
    _measure(program(tmp_path))
    calls = (tmp_path / "calls").read_text().splitlines()
    assert [line.split("|")[0] for line in calls] == ["", "<system/>", "<system/>", ""]
    assert all("-g 4" in line and "devices 0,1,2,3" in line for line in calls)


def test_a_gpu_in_use_ends_it_at_once(tmp_path: Path) -> None:
    found = _measure(program(tmp_path), busy=lambda: "GPU 3 is held by python (pid 7)")
    assert (found.status, found.reason) == ("not_measured", "GPU 3 is held by python (pid 7)")
    assert not (tmp_path / "calls").exists()


def test_a_job_that_starts_in_between_ends_it(tmp_path: Path) -> None:
    answers = iter([None, None, "GPU 0 is held by train (pid 8)"])
    found = _measure(program(tmp_path), busy=lambda: next(answers))
    assert found.status == "not_measured"
    assert len((tmp_path / "calls").read_text().splitlines()) == 2


def test_a_file_that_nccl_cannot_run_with_fails(tmp_path: Path) -> None:
    found = _measure(program(tmp_path, after="crash"))
    assert (found.status, found.refuses, found.before_gbs) == ("failed", True, 41.6)
    assert "internal error" in (found.reason or "")


def test_a_program_that_fails_anyway_says_nothing_of_the_file(tmp_path: Path) -> None:
    found = _measure(program(tmp_path, before="crash"))
    assert (found.status, found.refuses) == ("not_measured", False)
    assert "fails without the file as well" in (found.reason or "")


def test_a_run_that_hangs_is_killed(tmp_path: Path) -> None:
    begun = time.monotonic()
    found = _measure(program(tmp_path, after="hang"), deadline_s=1)
    assert found.status == "failed"
    assert "no answer in time" in (found.reason or "")
    assert time.monotonic() - begun < 20


@pytest.mark.parametrize(
    ("out", "said"),
    [
        ("", "no line 'Avg bus bandwidth'"),
        ("# Out of bounds values : 3 FAILED\n# Avg bus bandwidth    : 40 \n", "3 wrong values"),
        ("# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 0 \n", "did not end"),
    ],
)
def test_a_run_without_a_right_result_measured_nothing(out: str, said: str) -> None:
    with pytest.raises(gate.UnmeasuredError, match=said):
        gate.bandwidth(Completed(["all_reduce_perf"], 0, out, ""))


def test_the_program_is_found_by_itself_or_in_its_directory(tmp_path: Path) -> None:
    path = program(tmp_path / "build")
    assert gate.find(path) == path
    assert gate.find(str(tmp_path)) == path
    assert gate.find(str(tmp_path / "none")) is None


def test_a_program_that_is_gone_is_no_verdict(tmp_path: Path) -> None:
    found = _measure(str(tmp_path / "all_reduce_perf"))
    assert (found.status, found.refuses) == ("not_measured", False)


@pytest.mark.parametrize(
    ("kind", "held"),
    [
        ("process", True),
        ("display", True),
        ("container", True),
        ("granted", True),
        ("persistence", False),
        ("dcgm", False),
    ],
)
def test_who_counts_as_a_user(kind: str, held: bool) -> None:
    holder = Holder(7, "python", kind, "c" * 64 if kind == "container" else None)
    said = users.first_user({0: [], 3: [holder]})
    assert (said is not None) == held
    if said:
        assert said.startswith("GPU 3 is held by python (pid 7)")


@pytest.mark.parametrize(
    ("devices", "said"),
    [
        ([Device(0, minor=0)], "nothing is sent"),
        ([Device(0, minor=0), Device(1, minor=1, error="GPU is lost")], "GPU 1 is sick"),
        ([Device(0, minor=0), Device(1)], "GPU 1 has no known device node"),
        ([Device(0, minor=0, mig=Mig(True, True, True)), Device(1, minor=1)], "MIG mode"),
        ([Device(0, minor=0), Device(1, minor=1)], None),
    ],
)
def test_which_gpus_can_be_measured(devices: list[Device], said: str | None) -> None:
    found = users.unusable(devices)
    assert found is None if said is None else said in (found or "")


def test_without_a_driver_nothing_is_measured(tmp_path: Path) -> None:
    with pytest.raises(users.UnusableError, match="the driver is absent"):
        users.gpus(str(tmp_path))


@pytest.mark.parametrize(
    ("sight", "said"),
    [
        (Sight({0: [], 1: []}, complete=True), None),
        (Sight({0: [], 1: []}, complete=False), "use become"),
        (Sight({0: [], 1: [Holder(9, "train", "process", None)]}, complete=False), "train (pid 9)"),
    ],
)
def test_what_cannot_be_seen_counts_as_used(
    monkeypatch: pytest.MonkeyPatch, sight: Sight, said: str | None
) -> None:
    monkeypatch.setattr(users.holders, "look", lambda minors, root: sight)
    found = users.busy([Device(0, minor=4), Device(1, minor=5)])
    assert found is None if said is None else said in (found or "")
