# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What NVML answers becomes plain values; what one GPU cannot answer stays its own."""

from __future__ import annotations

import sys

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.hardware import nvml, nvml_library
from ansible_collections.steadygpu.host.tests.unit.module_utils.hardware.fake_nvml import (
    DRIVER_NOT_LOADED,
    GPU_IS_LOST,
    NOT_SUPPORTED,
    FakeError,
    FakeNvml,
    a100,
)

SWITCH = {"state": 1, "type": 2, "bus_id": "00000000:C1:00.0"}


def test_an_a100_in_full():
    library = FakeNvml([a100("00000000:23:00.0", 0, NvLinks=[SWITCH, dict(SWITCH, state=0)])])
    report = nvml.read_all(library)
    assert report["error"] is None
    assert report["driver_version"] == report["library_version"] == "550.163.01"
    assert report["cuda_version"] == "12.4"
    (device,) = report["devices"]
    assert {key: value for key, value in device.items() if value is not None} == {
        "index": 0,
        "errors": {},
        "pci_address": "0000:23:00.0",
        "uuid": "GPU-00000000",
        "minor": 0,
        "name": "NVIDIA A100-SXM4-40GB",
        "architecture": "ampere",
        "memory_mib": {"total": 40960, "used": 5, "free": 40300, "reserved": 655},
        "mig": {"supported": True, "current": False, "pending": True},
        "mig_devices": [],
        "processes": [],
        "nvlink": {
            "count": 1,
            "version": 3,
            "peers": [
                {"link": 0, "type": "switch", "pci_address": "0000:c1:00.0", "state": "up"},
                {"link": 1, "type": "switch", "pci_address": "0000:c1:00.0", "state": "down"},
            ],
        },
    }


def test_nvml_is_closed_again():
    library = FakeNvml([a100("0000:23:00.0", 0)])
    nvml.read_all(library)
    assert not library.open


def test_what_a_gpu_does_not_have_is_no_error():
    library = FakeNvml([a100("0000:23:00.0", 0, MigMode=NOT_SUPPORTED, MemoryInfo=NOT_SUPPORTED)])
    (device,) = nvml.read_all(library)["devices"]
    assert device["error"] is None
    assert device["mig"] == {"supported": False, "current": False, "pending": False}
    assert device["memory_mib"] is None
    assert device["nvlink"] is None


def test_one_lost_gpu_does_not_hide_the_others():
    lost_late = a100("0000:43:00.0", 2, MemoryInfo=GPU_IS_LOST, UUID=GPU_IS_LOST)
    library = FakeNvml([a100("0000:23:00.0", 0), GPU_IS_LOST, lost_late])
    devices = nvml.read_all(library)["devices"]
    assert [device["error"] for device in devices] == [None, "GPU is lost", "GPU is lost"]
    assert devices[2]["name"] == "NVIDIA A100-SXM4-40GB"
    assert devices[2]["uuid"] is None


def test_a_driver_that_is_not_loaded_is_an_error_with_its_code():
    report = nvml.read_all(FakeNvml([], init=DRIVER_NOT_LOADED))
    assert report["error"] == {"code": nvml_library.DRIVER_NOT_LOADED, "text": "Driver Not Loaded"}
    assert report["devices"] == []
    assert report["library_version"] == "550.163.01"


def test_an_architecture_newer_than_this_code_is_unknown_not_wrong():
    library = FakeNvml([a100("0000:23:00.0", 0, Architecture=77)])
    assert nvml.read_all(library)["devices"][0]["architecture"] is None


def test_an_old_library_without_the_second_memory_structure():
    class Old(FakeNvml):
        def nvmlDeviceGetMemoryInfo(self, handle, version=None):  # noqa: N802
            if version is not None:
                raise FakeError(13, "Function Not Found")
            return handle["MemoryInfo"]

    (device,) = nvml.read_all(Old([a100("0000:23:00.0", 0)]))["devices"]
    assert device["memory_mib"] == {"total": 40960, "used": 5, "free": 40300, "reserved": None}
    assert device["error"] is None


@pytest.fixture
def no_pynvml(monkeypatch):
    """An interpreter without any pynvml of its own."""
    monkeypatch.setattr(sys, "path", [path for path in sys.path if "site-packages" not in path])
    monkeypatch.delitem(sys.modules, "pynvml", raising=False)
    yield
    sys.modules.pop("pynvml", None)


@pytest.mark.usefixtures("no_pynvml")
def test_the_installed_agent_lends_its_pynvml(tmp_path, monkeypatch):
    (tmp_path / "pynvml.py").write_text("ORIGIN = 'agent'\n")
    monkeypatch.setattr(nvml, "AGENT_GENERATION", str(tmp_path))
    before = list(sys.path)
    library = nvml.load()
    assert library is not None
    assert library.ORIGIN == "agent"
    assert sys.path == before


@pytest.mark.usefixtures("no_pynvml")
def test_no_pynvml_anywhere(tmp_path, monkeypatch):
    monkeypatch.setattr(nvml, "AGENT_GENERATION", str(tmp_path / "current"))
    assert nvml.load() is None
