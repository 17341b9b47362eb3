# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Facts of every simulated machine agree with the recorded one. One here, all in `make sweep`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from converged import ROOT

SAMPLE = "a100-pcie-bridge"


def _profile(path: Path) -> Any:
    marks = [] if path.stem == SAMPLE else [pytest.mark.sweep]
    return pytest.param(json.loads(path.read_text()), id=path.stem, marks=marks)


PROFILES = [_profile(path) for path in sorted((ROOT / "tests/simgpu/profiles").glob("*.json"))]


@pytest.mark.parametrize("profile", PROFILES)
def test_facts_agree_with_the_record(host, profile):
    host.sh("simgpu load " + profile["name"])
    gpu = host.module("gpu_facts")["ansible_facts"]["gpu_host"]["gpu"]
    models = [profile["models"][one["model"]] for one in profile["gpus"]]
    assert gpu["driver"]["status"] == "loaded"
    assert gpu["driver"]["flavour"] == profile["driver"]["flavour"]
    assert [device["name"] for device in gpu["devices"]] == [model["name"] for model in models]
    assert [device["memory_mib"]["total"] for device in gpu["devices"]] == [
        model["memory_mib"] for model in models
    ]
    assert [device["numa_node"] for device in gpu["devices"]] == [
        one["slot"] // 4 for one in profile["gpus"]
    ]
    levels = profile["levels_in_lab"]
    assert gpu["links"] == [
        [levels.get(level, level) for level in row] for row in profile["recorded"]["matrix"]
    ]


@pytest.mark.sweep
@pytest.mark.parametrize("profile", PROFILES)
def test_the_proof_holds_for_the_first_and_the_last_device(host, profile):
    host.sh("simgpu load " + profile["name"])
    host.module("cdi_spec")
    devices = host.module("gpu_facts")["ansible_facts"]["gpu_host"]["gpu"]["devices"]
    for device in {device["uuid"]: device for device in (devices[0], devices[-1])}.values():
        arguments = {
            "device": f"nvidia.com/gpu={device['index']}",
            "expect_node": f"/dev/nvidia{device['minor']}",
            "accept_simulated": True,
        }
        result = host.module("gpu_verify", arguments)
        assert not result.get("failed"), result["msg"]
