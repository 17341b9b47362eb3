# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The joined inventory of recorded hosts."""

from __future__ import annotations

import json

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.hardware import (
    inventory,
    nvml,
    nvml_reader,
)
from ansible_collections.steadygpu.host.plugins.module_utils.hardware.model import as_facts
from ansible_collections.steadygpu.host.tests.unit.module_utils.hardware.fake_nvml import (
    GPU_IS_LOST,
    MISMATCH,
    FakeNvml,
    a100,
)

SWITCH = ["0000:20:00.0", "0000:21:00.0"]
FIRST = [*SWITCH, "0000:22:00.0", "0000:23:00.0"]
SECOND = [*SWITCH, "0000:22:01.0", "0000:24:00.0"]


def asked(library):
    return lambda _deadline_s: nvml_reader.Answer(report=nvml.read_all(library))


def never(_deadline_s):
    raise AssertionError("NVML must not be asked: as root it would load the kernel module")


@pytest.fixture
def two_gpus(host):
    host.pci(FIRST)
    host.pci(SECOND)
    host.driver()
    host.proc_gpu("0000:23:00.0", 0, "GPU-aaaa")
    host.proc_gpu("0000:24:00.0", 1, "GPU-bbbb")
    return host


def test_nvml_and_sysfs_meet_in_one_device(two_gpus):
    library = FakeNvml([a100("00000000:23:00.0", 0), a100("00000000:24:00.0", 1)])
    facts = as_facts(inventory.collect(two_gpus.root, ask_nvml=asked(library)))
    assert facts["source"] == "nvml"
    assert facts["driver"]["status"] == "loaded"
    assert facts["devices"][0]["pci_path"] == FIRST
    assert facts["devices"][0]["numa_node"] == 0
    assert facts["devices"][0]["memory_mib"]["total"] == 40960
    assert facts["links"] == [["X", "PIX"], ["PIX", "X"]]


def test_without_pynvml_the_devices_still_have_a_name_and_a_place(two_gpus):
    reason = nvml_reader.Answer(reason="no pynvml")
    facts = as_facts(inventory.collect(two_gpus.root, ask_nvml=lambda _d: reason))
    assert facts["source"] == "procfs"
    second = facts["devices"][1]
    assert (second["index"], second["minor"], second["uuid"]) == (1, 1, "GPU-bbbb")
    assert (second["pci_path"], second["cpus"]) == (SECOND, "0")
    assert second["memory_mib"] is None
    assert facts["links"] == [["X", "PIX"], ["PIX", "X"]]


def test_a_lost_gpu_keeps_its_identity(two_gpus):
    library = FakeNvml([a100("00000000:23:00.0", 0), GPU_IS_LOST])
    first, lost = inventory.collect(two_gpus.root, ask_nvml=asked(library)).devices
    assert first.error is None
    assert lost.error == "GPU is lost"
    assert (lost.uuid, lost.pci_address, lost.pci_path) == ("GPU-bbbb", "0000:24:00.0", SECOND)


def test_a_mismatch_falls_back_to_procfs(two_gpus):
    facts = inventory.collect(two_gpus.root, ask_nvml=asked(FakeNvml([], init=MISMATCH)))
    assert facts.driver.status == "mismatch"
    assert facts.source == "procfs"
    assert len(facts.devices) == 2


def test_a_gpu_without_driver_is_seen_on_the_bus_and_nvml_is_left_alone(host):
    host.pci(FIRST)
    facts = as_facts(inventory.collect(host.root, ask_nvml=never))
    assert facts["driver"]["status"] == "not_loaded"
    assert (facts["source"], facts["devices"], facts["links"]) == ("none", [], [])
    assert facts["pci"] == [
        {
            "address": "0000:23:00.0",
            "vendor": "10de",
            "device": "20b0",
            "class": "030200",
            "driver": None,
            "reason": None,
        }
    ]


def test_a_bare_host_is_all_there(host):
    facts = as_facts(inventory.collect(host.root, ask_nvml=never))
    assert facts["driver"]["status"] == "absent"
    assert facts["devices"] == facts["links"] == facts["pci"] == facts["nodes"] == []
    assert facts["modules"] == dict.fromkeys(facts["modules"], False)


def test_facts_are_json(two_gpus):
    link = {"state": 1, "type": 0, "bus_id": "00000000:24:00.0"}
    library = FakeNvml([a100("00000000:23:00.0", 0, NvLinks=[link])])
    facts = as_facts(inventory.collect(two_gpus.root, ask_nvml=asked(library)))
    assert json.loads(json.dumps(facts)) == facts
