# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What nvidia-smi -q -x of real hosts says, in the shape of the facts."""

from __future__ import annotations

import json
import re
from dataclasses import fields
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.steadygpu.host.plugins.module_utils.hardware.model import Device
from ansible_collections.steadygpu.host.plugins.module_utils.topology import facts, smi_xml
from ansible_collections.steadygpu.host.plugins.module_utils.topology.model import TopologyError
from ansible_collections.steadygpu.host.tests.unit.module_utils.topology.recorded import DATA

FILES = sorted((DATA / "nvidia_smi_xml").glob("*.xml"))
IDS = [path.stem for path in FILES]


def text_of(name: str) -> str:
    return (DATA / "nvidia_smi_xml" / f"telegraf-{name}.xml").read_text(encoding="utf-8")


def device_of(name: str) -> dict[str, Any]:
    (found,) = smi_xml.parse(text_of(name))["devices"]
    return found


def gpu(inner: str, address: str = "00000000:17:00.0") -> str:
    return f'<gpu id="{address}"><product_name>NVIDIA A100-SXM4-40GB</product_name>{inner}</gpu>'


def test_all_twelve_files_are_here() -> None:
    assert len(FILES) == 12


@pytest.mark.parametrize("path", FILES, ids=IDS)
def test_every_file_has_the_shape_of_the_facts(path: Any) -> None:
    """v10 to v13: each key of a device is there, and a picture can be made of it."""
    text = path.read_text(encoding="utf-8")
    found = smi_xml.parse(text)
    assert found["devices"]
    for device in found["devices"]:
        assert set(device) == {one.name for one in fields(Device)}
        assert device["name"] == re.search("<product_name>(.*)</product_name>", text)[1]  # type: ignore[index]
        assert device["uuid"] == re.search("<uuid>(.*)</uuid>", text)[1]  # type: ignore[index]
        assert re.fullmatch(r"[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.0", device["pci_address"])
        assert device["memory_mib"]["total"] > 1000
        assert device["error"] is None
        assert device["errors"] == {}
    json.dumps(found)
    picture = facts.machine(found, smi_xml.SOURCE)
    assert picture.gpus[0].model == found["devices"][0]["name"]


def test_the_driver_is_told_where_the_log_has_it() -> None:
    assert smi_xml.parse(text_of("rtx-4000-sff-ada-v13"))["driver"] == {
        "status": "loaded",
        "version": "595.84",
        "flavour": None,
        "library_version": None,
        "cuda_version": "13.2",
        "reason": None,
    }
    assert smi_xml.parse(text_of("gtx-1070-ti"))["driver"]["status"] is None


def test_an_a100_with_four_mig_devices() -> None:
    found = device_of("a100-sxm4-v12")
    assert found["mig"]["current"] is True
    assert found["mig"]["pending"] is True
    assert [one["gpu_instance"] for one in found["mig"]["devices"]] == [3, 4, 5, 6]
    assert [one["memory_mib"] for one in found["mig"]["devices"]] == [19968] * 4
    assert found["memory_mib"] == {"total": 81920, "used": 50, "free": 80999, "reserved": 869}
    assert found["bar1_mib"] == {"total": 131072, "used": 1}
    assert found["ecc"] == {"current": True, "pending": True, "corrected": 0, "uncorrected": 0}
    assert found["power"] == {"limit_w": 500.0, "default_w": 500.0, "min_w": 100.0, "max_w": 500.0}
    assert found["fabric"]["state"] == "not_supported"
    # The log is of one of four GPUs, and does not say which.
    assert found["index"] is None
    assert found["minor"] == 1
    picture = facts.machine(smi_xml.parse(text_of("a100-sxm4-v12")), smi_xml.SOURCE)
    assert picture.gpus[0].mig == ("GI 3", "GI 4", "GI 5", "GI 6")
    assert picture.remarks == (
        "the source has some of the host's GPUs and no index: they are counted from 0 here",
    )


def test_a_v13_log_of_a_workstation() -> None:
    found = device_of("rtx-4000-sff-ada-v13")
    assert found["architecture"] == "ada"
    assert found["pcie"] == {"generation": 1, "generation_max": 4, "width": 16, "width_max": 16}
    assert found["clocks"] == {
        "sm_mhz": 210,
        "memory_mhz": 405,
        "sm_max_mhz": 3105,
        "memory_max_mhz": 7001,
    }
    assert found["remapped_rows"] == {
        "corrected": 0,
        "uncorrected": 0,
        "pending": False,
        "failed": False,
    }
    assert found["ecc"] == {
        "current": False,
        "pending": False,
        "corrected": None,
        "uncorrected": None,
    }
    assert (found["display"], found["persistence"], found["gsp"]) == (True, True, True)
    assert found["mig"] == {"supported": False, "current": False, "pending": False, "devices": []}


def test_what_a_v10_log_does_not_say_is_null() -> None:
    found = device_of("gtx-1070-ti")
    for key in ("mig", "ecc", "gsp", "bar1_mib", "power", "fabric", "holders", "minor"):
        assert found[key] is None
    assert found["pcie"] == {
        "generation": 1,
        "generation_max": None,
        "width": 16,
        "width_max": None,
    }


def test_processes_are_holders_by_kind() -> None:
    found = device_of("tesla-t4")
    assert [(one["name"], one["kind"], one["used_mib"]) for one in found["holders"]] == [
        ("Xorg", "display", 22),
        ("python", "process", 1005),
    ]
    assert device_of("a100-sxm4-v12")["holders"] == []


def netdata() -> list[tuple[str, dict[str, Any]]]:
    text = (DATA / "nvidia_smi_xml" / "netdata_facts.json").read_text(encoding="utf-8")
    return sorted(json.loads(text)["files"].items())


@pytest.mark.parametrize(
    "told", [told for _name, told in netdata()], ids=[n for n, _t in netdata()]
)
def test_recorded_facts_written_as_xml_are_read_back(told: dict[str, Any]) -> None:
    (one,) = told["gpus"]
    devices = "".join(
        "<mig_device><index>{index}</index><gpu_instance_id>{gpu_instance_id}</gpu_instance_id>"
        "<compute_instance_id>{compute_instance_id}</compute_instance_id><fb_memory_usage><total>"
        "{fb_memory_usage[total]}</total></fb_memory_usage></mig_device>".format(**mig)
        for mig in one["mig_devices"]
    )
    memory = "".join(
        f"<{key}>{one[f'fb_{key}']}</{key}>" for key in ("total", "reserved", "used", "free")
    )
    mode = one["mig_mode"]
    (found,) = smi_xml.parse(
        f"<nvidia_smi_log><driver_version>{told['driver']}</driver_version>"
        f'<gpu id="{one["pci"]}"><product_name>{one["name"]}</product_name><mig_mode>'
        f"<current_mig>{mode}</current_mig><pending_mig>{mode}</pending_mig></mig_mode>"
        f"<mig_devices>{devices or 'None'}</mig_devices><fb_memory_usage>{memory}</fb_memory_usage>"
        "</gpu></nvidia_smi_log>"
    )["devices"]
    assert found["name"] == one["name"]
    assert found["pci_address"] == one["pci"][4:].lower()
    assert found["mig"]["supported"] == (mode == "Enabled")
    assert len(found["mig"]["devices"]) == len(one["mig_devices"])
    total = one["fb_total"].split()
    assert (found["memory_mib"] or {}).get("total") == (int(total[0]) if total else None)


def test_mg_001_mig_on_without_devices() -> None:
    """MG-001 (NVIDIA/k8s-device-plugin#225): instances are gone after a reboot, the mode is not."""
    found = smi_xml.parse(
        gpu(
            "<mig_mode><current_mig>Enabled</current_mig><pending_mig>Enabled</pending_mig>"
            "</mig_mode><mig_devices>None</mig_devices>"
        )
    )
    assert found["devices"][0]["mig"] == {
        "supported": True,
        "current": True,
        "pending": True,
        "devices": [],
    }
    assert found["devices"][0]["pci_address"] == "0000:17:00.0"
    assert "there is no MIG device" in facts.machine(found).remarks[0]


def test_mg_002_a_mode_change_that_is_pending() -> None:
    """MG-002 (NVIDIA/gpu-operator#118): the change waits for the clients of the GPU."""
    found = smi_xml.parse(
        gpu(
            "<mig_mode><current_mig>Disabled</current_mig><pending_mig>Enabled</pending_mig>"
            "</mig_mode>"
        )
    )
    mig = found["devices"][0]["mig"]
    assert (mig["current"], mig["pending"], mig["devices"]) == (False, True, None)
    assert "will be on after the next reset" in facts.machine(found).remarks[0]


def test_two_pasted_gpus_without_a_root() -> None:
    text = "$ nvidia-smi -q -x\n" + gpu("") + "\n" + gpu("", "00010000:AB:00.0") + "\nthanks!"
    found = smi_xml.parse(text)["devices"]
    assert [one["pci_address"] for one in found] == ["0000:17:00.0", "10000:ab:00.0"]
    assert [one["index"] for one in found] == [0, 1]


def test_a_sick_gpu_says_so_by_field() -> None:
    """A GPU that needs a reset answers with words where values belong."""
    (found,) = smi_xml.parse(
        gpu(
            "<fb_memory_usage><total>GPU requires reset</total></fb_memory_usage>"
            "<clocks><sm_clock>[Unknown Error]</sm_clock></clocks>"
            "<gpu_recovery_action>Reset</gpu_recovery_action>"
        )
    )["devices"]
    assert found["memory_mib"] is None
    assert found["clocks"] is None
    assert found["errors"] == {
        "total": "GPU requires reset",
        "sm_clock": "Unknown Error",
        "gpu_recovery_action": "the driver asks for: Reset",
    }
    assert found["error"] == "GPU requires reset"


def test_the_mig_mode_of_a_lost_gpu_is_unknown_and_not_off() -> None:
    (found,) = smi_xml.parse(
        gpu(
            "<mig_mode><current_mig>GPU is lost</current_mig>"
            "<pending_mig>GPU is lost</pending_mig></mig_mode>"
        )
    )["devices"]
    assert (found["mig"], found["error"]) == (None, "GPU is lost")


def test_a_mode_is_unknown_where_the_word_is() -> None:
    (found,) = smi_xml.parse(gpu("<fabric><state>Melted</state></fabric>"))["devices"]
    assert found["fabric"]["state"] == "unknown"


@pytest.mark.parametrize(
    ("inner", "corrected", "uncorrected"),
    [
        (
            "<single_bit><total>7</total></single_bit><double_bit><total>1</total></double_bit>",
            7,
            1,
        ),
        (
            "<sram_correctable>1</sram_correctable><sram_uncorrectable>2</sram_uncorrectable>"
            "<dram_correctable>3</dram_correctable><dram_uncorrectable>4</dram_uncorrectable>",
            4,
            6,
        ),
        (
            "<sram_correctable>1</sram_correctable>"
            "<sram_uncorrectable_parity>2</sram_uncorrectable_parity>"
            "<sram_uncorrectable_secded>3</sram_uncorrectable_secded>"
            "<dram_correctable>N/A</dram_correctable><dram_uncorrectable>5</dram_uncorrectable>",
            1,
            10,
        ),
    ],
    ids=["v10", "v12", "v13"],
)
def test_ecc_errors_of_each_schema(inner: str, corrected: int, uncorrected: int) -> None:
    mode = (
        "<ecc_mode><current_ecc>Enabled</current_ecc><pending_ecc>Disabled</pending_ecc></ecc_mode>"
    )
    errors = f"<ecc_errors><volatile>{inner}</volatile></ecc_errors>"
    (found,) = smi_xml.parse(gpu(mode + errors))["devices"]
    assert found["ecc"] == {
        "current": True,
        "pending": False,
        "corrected": corrected,
        "uncorrected": uncorrected,
    }


@given(name=st.sampled_from(IDS), at=st.floats(0, 1), to=st.floats(0, 1), new=st.text(max_size=3))
def test_a_damaged_log_is_read_or_refused(name: str, at: float, to: float, new: str) -> None:
    text = (DATA / "nvidia_smi_xml" / f"{name}.xml").read_text(encoding="utf-8")
    first, last = sorted((int(len(text) * at), int(len(text) * to)))
    try:
        found = smi_xml.parse(text[:first] + new + text[last:])
    except TopologyError:
        return
    facts.machine(found)


def test_a_log_that_is_cut_off_is_refused_by_its_line() -> None:
    text = text_of("tesla-t4")
    with pytest.raises(TopologyError, match=r"line 213: unclosed token. The file is cut off"):
        smi_xml.parse(text[: len(text) // 2])
