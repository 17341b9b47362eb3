# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A checkpoint's MIG layout comes back: the same devices, unless somebody is on them."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from ansible_collections.steadygpu.host.tests.unit.module_utils.mig.simulated import Host

HALVES = {"0": {"3g.20gb": 2}}
SEVEN = {"0": {"1g.5gb": 7}, "1": {"7g.40gb": 1}}


def kept(host: Host) -> list[dict[str, Any]]:
    gpus: list[dict[str, Any]] = host.do("targets")["gpus"]
    return gpus


def restore(host: Host, gpus: list[dict[str, Any]], **job: Any) -> dict[str, Any]:
    answer = host.do("restore", gpus=gpus, **job)
    return {key: answer[key] for key in ("changed", "left", "notes", "error") if key in answer}


def test_the_very_devices_come_back_on_every_gpu_and_once(host: Host) -> None:
    host.apply(HALVES)
    before, gpus = host.uuids(), kept(host)
    host.apply(SEVEN)
    assert restore(host, gpus) == {"changed": True, "left": [], "notes": []}
    assert (host.uuids(), host.places(1)) == (before, [])
    assert restore(host, gpus) == {"changed": False, "left": [], "notes": []}


def test_mig_that_was_off_is_off_again(host: Host) -> None:
    gpus = kept(host)
    host.apply(HALVES)
    assert restore(host, gpus)["changed"]
    assert not any(gpu["mig"]["pending"] for gpu in host.view()["gpus"])


def test_a_mode_that_waits_for_a_reboot_is_pending(host: Host) -> None:
    gpus = kept(host)
    host.apply(HALVES)
    host.set_state("gpu 0 mig_reset reboot")
    done = restore(host, gpus)
    ((reason, pending),) = done["left"]
    assert pending
    assert "MIG will be off after a" in reason


def test_what_comes_back_at_boot_is_left_to_the_files_of_the_checkpoint(host: Host) -> None:
    host.apply(HALVES)
    config = host.file("/etc/steadygpu/mig.json")
    text, gpus = config.read_text(), kept(host)
    host.apply(SEVEN, options={"persist": False})
    assert not config.exists()
    restore(host, gpus)
    assert not config.exists()
    config.write_text(text)
    host.apply(SEVEN, options={"persist": True})
    text = config.read_text()
    restore(host, gpus)
    assert config.read_text() == text


def test_a_layout_in_use_is_left_whole_and_its_holder_named(host: Host) -> None:
    gpus = kept(host)
    host.apply(SEVEN)
    after = host.uuids()
    used = host.view()["gpus"][1]["instances"][0]["id"]
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]) as job:
        try:
            host.set_state(f"holder 1/{used}/0 {job.pid} python3")
            done = restore(host, gpus)
        finally:
            job.kill()
    assert not done["changed"]
    ((reason, pending),) = done["left"]
    assert f"(pid {job.pid})" in reason
    assert pending
    assert host.uuids() == after
    host.drop_state("holder ")
    assert restore(host, gpus)["left"] == []
    assert host.places() == host.places(1) == []


def test_a_change_that_fails_on_the_way_is_an_error_and_undone(host: Host) -> None:
    host.apply(HALVES)
    gpus = kept(host)
    host.apply({"0": {"1g.5gb": 7}})
    after = host.uuids()
    failed = restore(host, gpus, fail={"call": "nvmlGpuInstanceDestroy", "nth": 3, "code": 999})
    assert "error" in failed
    assert host.uuids() == after


@pytest.mark.parametrize("gpus", [[], [{"uuid": "GPU-1"}]])
def test_what_is_no_layout_changes_nothing(host: Host, gpus: list[dict[str, Any]]) -> None:
    host.apply(HALVES)
    before = host.uuids()
    done = restore(host, gpus)
    assert "error" in done or not done["changed"]
    assert host.uuids() == before


def test_a_gpu_that_is_gone_is_named(host: Host) -> None:
    gpus = kept(host)
    gone = [{**gpus[0], "uuid": "GPU-gone"}]
    ((reason, pending),) = restore(host, gone)["left"]
    assert "GPU-gone" in reason
    assert pending


def test_a_specification_of_the_former_layout_names_no_device_that_is_not_there(host: Host) -> None:
    host.apply(HALVES)
    gpus, uuids = kept(host), host.uuids()
    host.apply(SEVEN)
    # The restore has put it back before, as it puts back all files first.
    devices = [{"name": uuid, "containerEdits": {}} for uuid in ["0", *uuids.values()]]
    spec = host.root / "spec.json"
    spec.write_text(
        json.dumps({"cdiVersion": "0.5.0", "kind": "nvidia.com/gpu", "devices": devices})
    )
    config = host.file("/etc/steadygpu/mig.json")
    settings = {"path": str(spec), "ctk": "no-such-tool", "socket": "/nowhere", "deadline_s": 5}
    config.write_text(json.dumps({**json.loads(config.read_text()), "cdi": settings}))
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]) as job:
        try:
            used = host.view()["gpus"][0]["instances"][0]["id"]
            host.set_state(f"holder 0/{used}/0 {job.pid} python3")
            done = restore(host, gpus, specification=str(spec))
        finally:
            job.kill()
    assert done["left"]
    assert any(f"remove {spec}" in note for note in done["notes"])
    assert not spec.exists()
