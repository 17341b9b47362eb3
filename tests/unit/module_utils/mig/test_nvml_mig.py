# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""MIG layouts read through NVML: drivers of any age, sick ones, and GPUs of any kind."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ansible_collections.steadygpu.host.tests.unit.module_utils.mig.simulated import Host

ALL_ON = {"all": True}


@pytest.mark.parametrize("profile", ["dgx-a100", "hgx-h100"])
def test_a_driver_that_does_not_tell_names_gets_the_same(
    built: Callable[[str], Path], tmp_path: Path, profile: str
) -> None:
    host = Host(built(profile), tmp_path)
    host.apply({"0": True})
    told = host.view()["gpus"][0]["profiles"]
    made = host.view(old=True)["gpus"][0]["profiles"]
    assert [one["name"] for one in made] == [one["name"] for one in told]
    assert made == told


def test_the_driver_s_own_answer_is_the_table_s(host: Host) -> None:
    tables = host.view()["gpus"][0]["profiles"]
    host.apply({"0": True})
    told = {one["name"]: one for one in host.view()["gpus"][0]["profiles"]}
    assert tables
    for profile in tables:
        assert told[profile["name"]] == profile


def test_an_instance_shows_its_devices_with_places_and_uuids(host: Host) -> None:
    host.apply({"2": {"1c.3g.20gb": 2, "3g.20gb": 1}})
    instances = host.view()["gpus"][2]["instances"]
    assert [(one["start"], one["size"]) for one in instances] == [(0, 4), (4, 4)]
    devices = [device for one in instances for device in one["devices"]]
    assert sorted(one["profile"] for one in devices) == ["1c.3g.20gb", "1c.3g.20gb", "3g.20gb"]
    assert len({one["uuid"] for one in devices}) == 3
    assert all(one["uuid"].startswith("MIG-") for one in devices)


def test_gpus_without_mig_are_read_and_left_alone(
    built: Callable[[str], Path], tmp_path: Path
) -> None:
    host = Host(built("t4"), tmp_path)
    assert host.view()["gpus"][0]["mig"]["supported"] is False
    assert host.view()["gpus"][0]["profiles"] == []
    done = host.apply("all-disabled", options={"persist": False})
    assert (done["status"], done["changed"]) == ("unchanged", False)


@pytest.mark.parametrize(
    ("mode", "words"),
    [
        ("driver_not_loaded", "the NVIDIA driver is not loaded"),
        ("wrong_library", "different versions"),
    ],
)
def test_a_driver_that_cannot_be_asked_says_what_to_do(host: Host, mode: str, words: str) -> None:
    host.drop_state("fail ")
    host.set_state(f"fail {mode}")
    if mode == "wrong_library":
        host.drop_state("module ")
        host.set_state("module 550.54.15")
    assert words in host.do("apply", ALL_ON)["error"]
    assert words in host.view()["error"]


def test_a_driver_that_hangs_is_left_after_the_deadline(host: Host) -> None:
    host.drop_state("fail ")
    host.set_state("fail timeout")
    assert "no answer in 0.5 s" in host.do("apply", ALL_ON, options={"deadline_s": 0.5})["error"]


def test_a_lost_gpu_does_not_keep_the_others_from_their_layout(host: Host) -> None:
    host.set_state("gpu 2 lost 1")
    done = host.apply("all-2g.10gb", options={"persist": False})
    assert "GPU 2 was left alone: the GPU is lost" in " ".join(done["warnings"])
    gpus = host.view()["gpus"]
    assert [gpu["index"] for gpu in gpus] == [0, 1, 3, 4, 5, 6, 7]
    assert all(len(gpu["instances"]) == 3 for gpu in gpus)
