# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A MIG change from beginning to end, on the lab's simulated driver."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.hardware import nvml
from ansible_collections.steadygpu.host.plugins.module_utils.mig import apply, change
from ansible_collections.steadygpu.host.tests.unit.module_utils.mig.simulated import Host

HALVES = {"0": {"3g.20gb": 2}}
MIXED = {"0": {"3g.20gb": 1, "2g.10gb": 1, "1g.5gb": 2}}
IN_USE, INSUFFICIENT_RESOURCES, GPU_IS_LOST = 19, 23, 15


@pytest.fixture
def job() -> Iterator[subprocess.Popen[bytes]]:
    """A process that lives as long as the test."""
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    yield process
    process.kill()
    process.wait()


# -- the straight way ----------------------------------------------------------------------


def test_check_mode_shows_steps_and_places_and_changes_nothing(host: Host) -> None:
    planned = host.do("foresee", HALVES)
    assert planned["actions"][:3] == [
        "GPU 0: enable MIG mode",
        "GPU 0: create GPU instance 3g.20gb at 0:4",
        "GPU 0: create compute instance 3g.20gb in 3g.20gb at 0:4",
    ]
    assert "MIG off" in planned["before"]
    assert "3g.20gb@4:4" in planned["after"]
    assert "places are those of our table" in planned["notes"][0]
    assert planned["warnings"] == []
    assert not planned["wrote"]
    assert not host.view()["gpus"][0]["mig"]["current"]
    assert not host.file("/etc/steadygpu/mig.json").exists()
    assert not host.file("/var/lib/steadygpu").exists()


def test_check_mode_on_a_bare_host_says_that_the_plan_is_not_known(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(nvml, "load", lambda: None)
    foreseen = apply.foresee(change.Options("all-1g.5gb", directory=str(tmp_path / "mig")))
    assert (foreseen.status, foreseen.changed) == ("unknown", True)
    assert "once the agent is installed" in foreseen.actions[0]
    assert not (tmp_path / "mig").exists()


def test_somebody_elses_boot_unit_is_a_refusal_before_the_first_change(host: Host) -> None:
    unit = host.file("/etc/systemd/system/steadygpu-mig.service")
    unit.parent.mkdir(parents=True)
    unit.write_text("[Unit]\nDescription=by hand\n")
    refused = host.do("apply", HALVES)
    assert "not of steadygpu.host" in refused["error"]
    assert not refused["wrote"]
    assert not host.view()["gpus"][0]["mig"]["current"]
    assert unit.read_text() == "[Unit]\nDescription=by hand\n"


def test_what_check_mode_says_is_what_is_done(host: Host) -> None:
    planned = host.do("foresee", MIXED)
    done = host.apply(MIXED)
    assert done["actions"] == planned["actions"]
    assert done["after"] == planned["after"]
    assert done["status"] == "applied"
    assert host.places() == ["2g.10gb@0", "1g.5gb@2", "1g.5gb@3", "3g.20gb@4"]


def test_a_second_run_changes_nothing_and_calls_nothing_that_could(host: Host) -> None:
    host.apply(MIXED)
    again = host.apply(MIXED)
    assert (again["status"], again["changed"], again["actions"]) == ("unchanged", False, [])
    assert not again["wrote"]
    assert again["sessions"] == 1
    assert not host.do("foresee", MIXED)["changed"]


def test_nvml_is_opened_as_rarely_as_the_change_allows(host: Host) -> None:
    # Read, switch the mode, read what is offered now, create, read back.
    assert host.apply(HALVES)["sessions"] == 5
    # Read, destroy and create, read back.
    assert host.apply(MIXED)["sessions"] == 3


def test_an_instance_that_may_stay_keeps_its_uuid(host: Host) -> None:
    host.apply(HALVES)
    before = host.uuids()
    host.apply(MIXED)
    assert host.uuids()["3g.20gb@4"] == before["3g.20gb@4"]


def test_gpus_that_the_layout_does_not_name_are_left_alone(host: Host) -> None:
    host.apply(HALVES)
    host.apply({"3": {"7g.40gb": 1}})
    assert host.places(0) == ["3g.20gb@0", "3g.20gb@4"]
    assert host.places(3) == ["7g.40gb@0"]


def test_undo_goes_back_to_the_same_devices_and_forth_again(host: Host) -> None:
    host.apply(HALVES)
    before = host.uuids()
    host.apply({"0": {"1g.5gb": 7}})
    after = host.uuids()
    host.apply(options={"previous": True})
    assert host.uuids() == before
    host.apply(options={"previous": True})
    assert host.uuids() == after


def test_undo_before_the_first_change_says_that_there_is_none(host: Host) -> None:
    assert "no layout to go back to" in host.do("apply", options={"previous": True})["error"]


def test_a_mig_parted_document_names_the_layout(host: Host) -> None:
    document = {
        "version": "v1",
        "mig-configs": {
            "mine": [{"devices": [2], "mig-enabled": True, "mig-devices": {"2g.10gb": 3}}]
        },
    }
    host.apply("mine", options={"configs": document})
    assert host.places(2) == ["2g.10gb@0", "2g.10gb@2", "2g.10gb@4"]
    # The role hands over only what is below mig-configs.
    assert not host.apply("mine", options={"configs": document["mig-configs"]})["changed"]


def test_hopper_changes_its_mode_without_a_reset(hopper: Host) -> None:
    assert hopper.apply({"0": {"1g.10gb": 7}})["status"] == "applied"
    assert len(hopper.places()) == 7


# -- somebody is in the way ----------------------------------------------------------------


def test_mg_002_a_holder_is_named_before_anything_is_changed(
    host: Host, job: subprocess.Popen[bytes]
) -> None:
    host.set_state(f"holder 5 {job.pid} python3")
    refused = host.do("apply", {"all": {"7g.40gb": 1}})
    assert f"(pid {job.pid})" in refused["error"]
    assert "GPU 5" in refused["error"]
    assert "Nothing was changed" in refused["error"]
    assert not refused["wrote"]
    assert not any(gpu["mig"]["pending"] for gpu in host.view()["gpus"])
    assert host.do("foresee", {"all": {"7g.40gb": 1}})["error"] == refused["error"]
    # The GPUs that nobody holds can be changed all the same.
    host.apply(HALVES)


SLEEP = {"gpu": 0, "name": "sleep"}


@pytest.mark.parametrize(
    "moment",
    [
        {"call": "nvmlDeviceGetCount", "nth": 1},
        # The driver does not know of an idle container and would let both calls pass.
        {"call": "nvmlInit", "nth": 2},
    ],
    ids=["while-reading", "after-the-check"],
)
@pytest.mark.parametrize("before", [HALVES, None], ids=["destroy", "mode"])
def test_a_job_that_starts_after_the_check_keeps_its_gpu(
    host: Host, moment: dict[str, Any], before: dict[str, Any] | None
) -> None:
    if before:
        host.apply(before)
    uuids = host.uuids()
    refused = host.do("apply", {"0": {"7g.40gb": 1}}, comes={**moment, **SLEEP})
    assert "sleep (pid 1) in container cccccccccccc: may open it at any time" in refused["error"]
    assert not refused["wrote"]
    assert host.uuids() == uuids
    assert not host.view()["unfinished"]


def test_a_job_that_starts_on_one_gpu_while_another_is_changed_keeps_its_gpu(host: Host) -> None:
    host.apply({"0": {"3g.20gb": 2}, "1": {"3g.20gb": 2}})
    uuids = host.uuids(0), host.uuids(1)
    comes = {"call": "nvmlGpuInstanceDestroy", "nth": 1, "gpu": 1, "name": "sleep"}
    failed = host.do("apply", {"0": {"7g.40gb": 1}, "1": {"7g.40gb": 1}}, comes=comes)
    assert "GPU 1" in failed["error"]
    assert "may open it at any time" in failed["error"]
    assert "The layout is as it was before" in failed["error"]
    assert (host.uuids(0), host.uuids(1)) == uuids


def test_a_job_that_starts_on_a_new_instance_keeps_it_when_a_later_step_fails(host: Host) -> None:
    host.apply({"0": {"7g.40gb": 1}})
    failed = host.do(
        "apply",
        HALVES,
        comes={"call": "nvmlGpuInstanceCreateComputeInstance", "nth": 2, **SLEEP},
        fail={"call": "nvmlGpuInstanceCreateComputeInstance", "nth": 2, "code": 23},
    )
    assert "no room for it" in failed["error"]
    assert "Going back to the layout before failed as well" in failed["error"]
    assert "may open it at any time" in failed["error"]
    assert host.places() == ["3g.20gb@0"]
    # What undo goes back to is not forgotten with that.
    assert host.view()["unfinished"]
    host.file("/granted.json").unlink()
    host.apply(options={"previous": True})
    assert host.places() == ["7g.40gb@0"]
    assert not host.view()["unfinished"]


def test_a_host_that_hides_processes_is_not_changed(host: Host) -> None:
    host.apply({"0": {"3g.20gb": 1}})
    refused = host.do("apply", {"0": {"7g.40gb": 1}}, unseen="processes that could not be seen")
    assert "processes that could not be seen" in refused["error"]
    assert not refused["wrote"]
    # To create an instance disturbs nobody, seen or not.
    assert "error" not in host.do("apply", HALVES, unseen="processes that could not be seen")


@pytest.mark.parametrize("start", [0, 4])
def test_an_instance_in_use_stays_where_it_can(
    host: Host, job: subprocess.Popen[bytes], start: int
) -> None:
    host.apply(HALVES)
    used = next(one for one in host.view()["gpus"][0]["instances"] if one["start"] == start)
    host.set_state(f"holder 0/{used['id']}/0 {job.pid} python3")
    host.apply({"0": {"3g.20gb": 1, "1g.5gb": 3}})
    assert f"3g.20gb@{start}" in host.places()


def test_an_instance_in_use_is_not_destroyed(host: Host, job: subprocess.Popen[bytes]) -> None:
    host.apply(HALVES)
    used = host.view()["gpus"][0]["instances"][0]["id"]
    host.set_state(f"holder 0/{used}/0 {job.pid} python3")
    refused = host.do("apply", {"0": {"7g.40gb": 1}})
    assert f"(pid {job.pid})" in refused["error"]
    assert host.places() == ["3g.20gb@0", "3g.20gb@4"]


def test_creating_beside_an_instance_in_use_is_allowed(
    host: Host, job: subprocess.Popen[bytes]
) -> None:
    host.apply({"0": {"3g.20gb": 1}})
    used = host.view()["gpus"][0]["instances"][0]["id"]
    host.set_state(f"holder 0/{used}/0 {job.pid} python3")
    host.apply(HALVES)
    assert len(host.places()) == 2


def drm_modeset(host: Host) -> None:
    """The display driver is loaded and drives the GPUs."""
    parameters = host.file("/sys/module/nvidia_drm/parameters")
    parameters.mkdir(parents=True)
    (parameters / "modeset").write_text("Y\n")


def test_mg_003_a_drm_driver_with_modeset_blocks_the_reset_of_an_ampere(host: Host) -> None:
    drm_modeset(host)
    refused = host.do("apply", HALVES)
    assert "kernel module nvidia_drm" in refused["error"]
    assert "modeset=0" in refused["error"]
    assert "stop: [module:nvidia_drm]" in refused["error"]
    assert not refused["wrote"]


def test_mg_003_a_hopper_needs_no_reset(hopper: Host) -> None:
    drm_modeset(hopper)
    hopper.apply({"0": {"3g.40gb": 2}})


@pytest.mark.parametrize("name", ["memory limits", "old driver"])
def test_what_the_driver_cannot_do_is_refused(host: Host, name: str) -> None:
    answers = {}
    if name == "memory limits":
        host.file("/etc/modprobe.d").mkdir()
        line = 'options nvidia NVreg_RegistryDwords="RmMemacctMode=1"\n'
        host.file("/etc/modprobe.d/nvidia.conf").write_text(line)
        words = "RmMemacctMode=1"
    else:
        answers["nvmlSystemGetDriverVersion"] = "418.67"
        words = "450.80.02"
    refused = host.do("apply", HALVES, answers=answers)
    assert words in refused["error"]
    assert not refused["wrote"]


# -- a mode that waits ---------------------------------------------------------------------


def test_mg_002_a_pending_mode_is_a_result_and_goes_on_after_the_reboot(host: Host) -> None:
    host.set_state("gpu 0 mig_reset reboot")
    waiting = host.apply(HALVES)
    assert waiting["status"] == "pending"
    assert waiting["changed"]
    assert waiting["needs"] in ("reset", "reboot")
    assert "GPU 0: MIG will be on after a" in waiting["reason"]
    again = host.apply(HALVES)
    assert (again["status"], again["changed"]) == ("pending", False)
    host.reboot()
    assert host.apply(HALVES)["status"] == "applied"
    assert host.places() == ["3g.20gb@0", "3g.20gb@4"]
    host.apply(options={"previous": True})
    assert host.places() == []


def test_a_pending_mode_can_be_taken_back(host: Host) -> None:
    host.set_state("gpu 0 mig_reset reboot")
    host.apply(HALVES)
    host.apply(options={"previous": True})
    assert not host.view()["gpus"][0]["mig"]["pending"]


# -- the stop set --------------------------------------------------------------------------


def test_the_stop_set_is_stopped_in_order_and_started_in_reverse(host: Host) -> None:
    host.set_units(
        {
            "dcgm.service": {"active": True, "RequiredBy": ["dcgm-exporter.service"]},
            "dcgm-exporter.service": {"active": True},
            "nvidia-persistenced.service": {"active": True},
            "idle.service": {"active": False},
        }
    )
    stop = ["dcgm.service", "nvidia-persistenced", "idle.service"]
    done = host.apply(HALVES, options={"stop": stop})
    assert host.log == [
        "stop dcgm-exporter.service",
        "stop dcgm.service",
        "stop nvidia-persistenced.service",
        "start nvidia-persistenced.service",
        "start dcgm.service",
        "start dcgm-exporter.service",
    ]
    assert [one for one in done["actions"] if ".service" in one and one.split()[0] != "write"][
        :3
    ] == host.log[:3]
    host.set_units({"dcgm.service": {"active": True}})
    host.apply(HALVES, options={"stop": stop})
    assert host.log == [], "a run without a change stopped a service"


@pytest.mark.parametrize(
    "entry",
    ["docker.service", "docker", "containerd.service", "kubelet.service", "crio.service",
     "podman.socket", "k3s-agent", "carrier.service"],
)  # fmt: skip
def test_the_engine_and_the_kubelet_are_never_stopped(host: Host, entry: str) -> None:
    host.set_units(
        {
            "docker.service": {"active": True},
            "carrier.service": {"active": True, "BoundBy": ["docker.service"]},
        }
    )
    refused = host.do("apply", HALVES, options={"stop": [entry]})
    assert "never stops or restarts a container engine" in refused["error"]
    assert host.log == []
    assert not refused["wrote"]


def test_a_service_that_does_not_stop_ends_the_change_and_the_others_come_back(
    host: Host,
) -> None:
    host.set_units(
        {
            "dcgm.service": {"active": True},
            "nvidia-persistenced.service": {"active": True, "refuses": "stop"},
        }
    )
    stop = ["dcgm.service", "nvidia-persistenced.service"]
    failed = host.do("apply", HALVES, options={"stop": stop})
    assert "nvidia-persistenced.service could not be stopped" in failed["error"]
    assert "no GPU was changed" in failed["error"]
    assert host.active == sorted(stop)
    assert not failed["wrote"]


# -- a step fails --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "nth"),
    [
        ("nvmlDeviceSetMigMode", 1),
        ("nvmlDeviceCreateGpuInstanceWithPlacement", 1),
        ("nvmlDeviceCreateGpuInstanceWithPlacement", 2),
        ("nvmlGpuInstanceCreateComputeInstance", 2),
    ],
)
def test_a_failed_step_brings_the_layout_before_back(host: Host, call: str, nth: int) -> None:
    host.apply({"0": {"7g.40gb": 1}})
    boot = host.file("/etc/steadygpu/mig.json").read_text()
    uuids = host.uuids(0)
    host.set_units({"dcgm.service": {"active": True}})
    layout = {"0": {"1g.5gb": 2}, "1": {"2g.10gb": 3}}
    failed = host.do(
        "apply",
        layout,
        options={"stop": ["dcgm.service"]},
        fail={"call": call, "nth": nth, "code": INSUFFICIENT_RESOURCES},
    )
    assert "no room for it" in failed["error"]
    assert "The layout is as it was before" in failed["error"]
    assert host.uuids(0) == uuids
    assert host.places(1) == []
    assert not host.view()["gpus"][1]["mig"]["pending"]
    assert host.active == ["dcgm.service"]
    assert host.file("/etc/steadygpu/mig.json").read_text() == boot
    assert not host.view()["unfinished"]


def test_a_gpu_that_is_lost_on_the_way_is_not_taken_for_done(host: Host) -> None:
    host.apply({"0": {"7g.40gb": 1}})
    # Eight GPUs are read first; the ninth question is the first of reading back.
    fail = {"call": "nvmlDeviceGetHandleByIndex", "nth": 9, "code": GPU_IS_LOST}
    failed = host.do("apply", HALVES, fail=fail)
    assert "a GPU was lost on the way. GPU 0 was left alone: the GPU is lost" in failed["error"]
    assert host.places() == ["7g.40gb@0"]


def test_a_gpu_that_cannot_be_read_does_not_keep_the_others_from_theirs(host: Host) -> None:
    fail = {"call": "nvmlDeviceGetHandleByIndex", "nth": 3, "code": 999}
    done = host.apply(HALVES, fail=fail)
    assert done["status"] == "applied"
    assert "GPU 2 was left alone" in done["warnings"][0]


def test_a_driver_that_is_lost_on_the_way_back_is_told_as_well(host: Host) -> None:
    host.apply({"0": {"7g.40gb": 1}})
    host.set_units({"dcgm.service": {"active": True}})
    failed = host.do(
        "apply",
        {"0": {"1g.5gb": 2}},
        options={"stop": ["dcgm.service"]},
        fail={"call": "nvmlGpuInstanceDestroy", "nth": 1, "code": GPU_IS_LOST},
    )
    assert "fell off the bus" in failed["error"]
    assert host.active == ["dcgm.service"]


def test_in_use_at_the_last_moment_names_who_is_seen_now(hopper: Host) -> None:
    failed = hopper.do(
        "apply",
        {"0": {"1g.10gb": 2}},
        fail={"call": "nvmlDeviceSetMigMode", "nth": 1, "code": IN_USE},
    )
    assert "No holder can be seen now" in failed["error"]
    assert "The layout is as it was before" in failed["error"]


# -- what is left behind -------------------------------------------------------------------


def test_two_runs_do_not_interleave(host: Host) -> None:
    directory = host.file("/var/lib/steadygpu/mig")
    directory.mkdir(parents=True)
    program = (
        "import fcntl, os, sys, time; f = open(sys.argv[1], 'w'); f.write(str(os.getpid())); "
        "f.flush(); fcntl.flock(f, fcntl.LOCK_EX); print('held', flush=True); time.sleep(600)"
    )
    command = [sys.executable, "-c", program, str(directory / "lock")]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        other.stdout.readline()
        refused = host.do("apply", HALVES, options={"deadline_s": 0.3})
        other.kill()
    assert f"process {other.pid}" in refused["error"]
    host.apply(HALVES)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"deadline_s": float("nan")}, "deadline_s is nan"),
        ({"deadline_s": float("inf")}, "deadline_s is inf"),
        ({"deadline_s": 0}, "deadline_s is 0"),
        ({"deadline_s": -1}, "deadline_s is -1"),
        ({"specification": {"path": "nvidia.yaml"}}, "an absolute path"),
    ],
    ids=["nan", "inf", "zero", "negative", "relative"],
)
@pytest.mark.parametrize("verb", ["apply", "foresee"])
def test_an_option_that_no_run_can_work_with_is_refused(
    host: Host, verb: str, options: dict[str, Any], words: str
) -> None:
    refused = host.do(verb, HALVES, options=options)
    assert words in refused["error"]
    assert refused["sessions"] == 0


def test_a_driver_that_hangs_at_boot_ends_the_run_in_time(hopper: Host) -> None:
    hopper.apply({"0": {"3g.40gb": 2}, "1": {"3g.40gb": 2}, "2": {"3g.40gb": 2}})
    hopper.reboot()
    start = time.monotonic()
    boot = {"boot": True, "deadline_s": 3}
    failed = hopper.do("apply", options=boot, hangs="nvmlDeviceSetMigMode", budget_s=2)
    assert "no answer in" in failed["error"]
    assert time.monotonic() - start < 6
    # What undo goes back to is not the empty GPU of the moment after the boot.
    hopper.apply({"0": {"3g.40gb": 2}, "1": {"3g.40gb": 2}, "2": {"3g.40gb": 2}})
    hopper.apply(options={"previous": True})
    assert not hopper.view()["gpus"][0]["mig"]["current"]


def test_mg_001_the_layout_comes_back_at_boot_with_the_same_uuids(host: Host) -> None:
    host.apply({"0": {"3g.20gb": 1, "1g.5gb": 3}, "4": {"1c.3g.20gb": 3}})
    uuids = host.uuids(0), host.uuids(4)
    host.reboot()
    assert host.uuids(0) == {}
    assert host.do("apply", options={"boot": True})["status"] == "applied"
    assert (host.uuids(0), host.uuids(4)) == uuids
    # What undo goes back to is not the empty GPU of the moment after the boot.
    host.apply(options={"previous": True})
    assert host.places(0) == []
    assert not host.view()["gpus"][0]["mig"]["current"]


def test_mg_001_a_hopper_forgets_its_mode_as_well(hopper: Host) -> None:
    hopper.apply({"1": {"3g.40gb": 2}})
    uuids = hopper.uuids(1)
    hopper.reboot()
    assert not hopper.view()["gpus"][1]["mig"]["current"]
    hopper.apply(options={"boot": True})
    assert hopper.uuids(1) == uuids


def test_a_gpu_that_is_gone_at_boot_does_not_keep_the_others_from_theirs(host: Host) -> None:
    host.apply(HALVES)
    path = host.file("/etc/steadygpu/mig.json")
    kept = json.loads(path.read_text())
    kept["gpus"].append({"uuid": "GPU-gone", "mig": True, "devices": {}, "instances": []})
    path.write_text(json.dumps(kept))
    host.reboot()
    failed = host.do("apply", options={"boot": True, "deadline_s": 0.5})
    assert "GPU-gone" in failed["error"]
    assert len(host.places(0)) == 2


def test_without_persist_nothing_comes_back(host: Host) -> None:
    host.apply(HALVES)
    link = host.file("/etc/systemd/system/multi-user.target.wants/steadygpu-mig.service")
    assert os.readlink(link) == "/etc/systemd/system/steadygpu-mig.service"
    done = host.apply(HALVES, options={"persist": False})
    assert done["changed"]
    assert not link.is_symlink()
    assert not host.file("/etc/steadygpu/mig.json").exists()
    assert not host.apply(HALVES, options={"persist": False})["changed"]


def test_a_file_of_ours_that_is_broken_is_named(host: Host) -> None:
    host.apply(HALVES)
    journal = host.file("/var/lib/steadygpu/mig/journal.json")
    journal.write_text("{")
    assert str(journal) in host.do("apply", HALVES)["error"]
    journal.unlink()
    host.apply(HALVES)
