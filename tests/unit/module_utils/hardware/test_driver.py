# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The state of the driver, from what was seen."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.hardware import driver
from ansible_collections.steadygpu.host.plugins.module_utils.hardware import nvml_library as nvml
from ansible_collections.steadygpu.host.plugins.module_utils.hardware.host_model import PciDevice
from ansible_collections.steadygpu.host.plugins.module_utils.hardware.nvml_reader import Answer
from ansible_collections.steadygpu.host.plugins.module_utils.hardware.procfs import Report

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


CARD = PciDevice("0000:03:00.0", "10de", "20b0", "030200")


def judge(module=VERSION, library=VERSION, answer=None, on_bus=(CARD,), closed=()):
    return driver.judge(
        driver.Seen(
            on_bus=on_bus,
            proc=Report(version=module, flavour="open" if module else None),
            library_path="/usr/lib64/libnvidia-ml.so.1" if library else None,
            library_version=library,
            answer=answer or Answer(),
            closed=closed,
        )
    )


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
    state = judge(module=None, library=library, on_bus=(CARD,) if has_device else ())
    assert state.status == status
    assert said in (state.reason or "")


def test_nvml_that_does_not_answer():
    state = judge(answer=Answer(reason="unresponsive: no answer in 20 s", unresponsive=True))
    assert (state.status, state.reason) == ("unresponsive", "unresponsive: no answer in 20 s")
    assert state.version == VERSION


def test_nvml_that_reports_its_own_timeout():
    assert judge(answer=failed(nvml.TIMEOUT, "Timeout")).status == "unresponsive"


@pytest.mark.parametrize(
    ("module", "library"),
    [
        pytest.param("510.73.05", "515.48.07", id="DR-002"),
        pytest.param("570.124.06", "570.124.04", id="DR-005"),
    ],
)
def test_module_and_library_of_two_releases(module, library):
    state = judge(module=module, library=library)
    assert state.status == "mismatch"
    assert (state.version, state.library_version) == (module, library)
    assert module in (state.reason or "")
    assert library in (state.reason or "")
    assert "reboot" in (state.reason or "")


def test_proc_that_does_not_answer():
    reason = "/proc/driver/nvidia: no answer in 5 s"
    state = driver.judge(driver.Seen(on_bus=(CARD,), proc=Report(reason=reason)))
    assert (state.status, state.reason, state.version) == ("unresponsive", reason, None)


def test_dr_015_nouveau_has_the_card():
    state = judge(module=None, library=None, on_bus=(replace(CARD, driver="nouveau"),))
    assert state.status == "not_loaded"
    assert "nouveau drives 0000:03:00.0" in (state.reason or "")
    assert "blacklist nouveau" in (state.reason or "")


@pytest.mark.parametrize("module", [None, VERSION])
def test_a_card_the_driver_refused_is_the_reason(module):
    card = replace(CARD, reason="not supported by the open kernel modules")
    state = judge(module=module, library=None, on_bus=(card,))
    assert state.reason == "0000:03:00.0: not supported by the open kernel modules"


def test_dr_018_hidden_gpus_are_no_broken_driver():
    hidden = ["/dev/nvidia0", "/dev/nvidia1"]
    state = judge(answer=failed(nvml.NO_PERMISSION, "Insufficient Permissions"), closed=hidden)
    assert (state.status, state.hidden) == ("loaded", hidden)
    assert "job scheduler" in (state.reason or "")


def test_nvml_that_notices_the_mismatch_itself():
    assert judge(answer=failed(nvml.LIBRARY_VERSION_MISMATCH, "mismatch")).status == "mismatch"


def test_a_module_in_proc_that_nvml_cannot_reach():
    state = judge(answer=failed(nvml.DRIVER_NOT_LOADED, "Driver Not Loaded"))
    assert state.status == "not_loaded"
    assert "/dev/nvidia" in (state.reason or "")
