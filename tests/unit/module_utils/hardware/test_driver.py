# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The state of the driver, from what was seen."""

from __future__ import annotations

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.hardware import driver, nvml
from ansible_collections.steadygpu.host.plugins.module_utils.hardware.nvml_reader import Answer

VERSION = "550.163.01"
GOOD = {
    "driver_version": VERSION,
    "library_version": VERSION,
    "cuda_version": "12.4",
    "devices": [],
    "error": None,
}


def failed(code: int, text: str) -> Answer:
    return Answer(
        report=dict(
            GOOD, driver_version=None, error={"code": code, "text": text}, cuda_version=None
        )
    )


def judge(module=VERSION, library=VERSION, answer=None, has_device=True):
    path = "/usr/lib64/libnvidia-ml.so.1" if library else None
    flavour = "open" if module else None
    return driver.judge(module, flavour, path, library, answer or Answer(), has_device)


def test_loaded():
    state = judge(answer=Answer(report=dict(GOOD)))
    assert (state.status, state.version, state.flavour) == ("loaded", VERSION, "open")
    assert (state.library_version, state.cuda_version) == (VERSION, "12.4")
    assert state.reason is None


def test_loaded_without_pynvml_says_why_details_are_missing():
    state = judge(answer=Answer(reason="no pynvml"))
    assert (state.status, state.reason) == ("loaded", "no pynvml")


def test_loaded_without_the_library():
    state = judge(
        library=None,
        answer=Answer(
            report=dict(
                GOOD,
                library_version=None,
                error={"code": nvml.LIBRARY_NOT_FOUND, "text": "NVML Shared Library Not Found"},
            )
        ),
    )
    assert state.status == "loaded"
    assert state.reason == "NVML: NVML Shared Library Not Found"


@pytest.mark.parametrize(
    ("library", "has_device", "status", "said"),
    [
        (None, False, "absent", "no NVIDIA GPU"),
        (None, True, "not_loaded", "on the PCI bus"),
        (VERSION, False, "not_loaded", "libnvidia-ml.so.1 is installed"),
        (VERSION, True, "not_loaded", "modprobe nvidia"),
    ],
)
def test_without_the_kernel_module(library, has_device, status, said):
    state = judge(module=None, library=library, has_device=has_device)
    assert state.status == status
    assert said in (state.reason or "")


def test_nvml_that_does_not_answer():
    state = judge(answer=Answer(reason="unresponsive: no answer in 20 s", unresponsive=True))
    assert (state.status, state.reason) == ("unresponsive", "unresponsive: no answer in 20 s")
    assert state.version == VERSION


def test_nvml_that_reports_its_own_timeout():
    assert judge(answer=failed(nvml.TIMEOUT, "Timeout")).status == "unresponsive"


def test_module_and_library_of_two_releases():
    state = judge(module="550.90.07")
    assert state.status == "mismatch"
    assert "550.90.07" in (state.reason or "")
    assert VERSION in (state.reason or "")
    assert "reboot" in (state.reason or "")


def test_nvml_that_notices_the_mismatch_itself():
    assert judge(answer=failed(nvml.LIBRARY_VERSION_MISMATCH, "mismatch")).status == "mismatch"


def test_a_module_in_proc_that_nvml_cannot_reach():
    state = judge(answer=failed(nvml.DRIVER_NOT_LOADED, "Driver Not Loaded"))
    assert state.status == "not_loaded"
    assert "/dev/nvidia" in (state.reason or "")
