# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What pynvml reads from the simulated library agrees with the profile and with itself."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

PROFILES = [
    "a100-pcie-bridge",
    "dgx-a100",
    "dgx1-v100",
    "hgx-h100",
    "mixed-workstation",
    "t4",
]

DEVICES = """
n.nvmlInit()
handles = [n.nvmlDeviceGetHandleByIndex(i) for i in range(n.nvmlDeviceGetCount())]
"""


@pytest.mark.parametrize("profile", PROFILES)
def test_devices_are_those_of_the_profile(driver: Callable[[str], Any], profile: str) -> None:
    simulated = driver(profile)
    seen = simulated.ask(
        DEVICES
        + """
out = []
for h in handles:
    memory, pci = n.nvmlDeviceGetMemoryInfo(h, version=n.nvmlMemory_v2), n.nvmlDeviceGetPciInfo(h)
    for again in (n.nvmlDeviceGetHandleByUUID(n.nvmlDeviceGetUUID(h)),
                  n.nvmlDeviceGetHandleByPciBusId(pci.busId),
                  n.nvmlDeviceGetHandleByPciBusId(pci.busIdLegacy.lower())):
        assert n.nvmlDeviceGetIndex(again) == n.nvmlDeviceGetIndex(h)
    assert memory.total == memory.free + memory.used + memory.reserved
    old = n.nvmlDeviceGetMemoryInfo(h)
    assert (old.total, old.used) == (memory.total, memory.used + memory.reserved)
    out.append({
        "index": n.nvmlDeviceGetIndex(h), "minor": n.nvmlDeviceGetMinorNumber(h),
        "name": n.nvmlDeviceGetName(h), "uuid": n.nvmlDeviceGetUUID(h),
        "mib": memory.total >> 20, "pci": pci.busIdLegacy, "id": pci.pciDeviceId,
        "cc": list(n.nvmlDeviceGetCudaComputeCapability(h)),
        "cpus": n.nvmlDeviceGetCpuAffinity(h, 1)[0],
        "nodes": n.nvmlDeviceGetMemoryAffinity(h, 1, 0)[0],
    })
"""
    )
    wanted = simulated.profile
    assert [gpu["index"] for gpu in seen] == list(range(len(wanted["gpus"])))
    assert len({gpu["uuid"] for gpu in seen}) == len(seen)
    for gpu, entry in zip(seen, wanted["gpus"]):
        model, slot = wanted["models"][entry["model"]], simulated.slots[entry["slot"]]
        assert re.fullmatch(r"GPU-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", gpu["uuid"])
        assert (gpu["name"], gpu["mib"], gpu["cc"]) == (
            model["name"],
            model["memory_mib"],
            model["compute_capability"],
        )
        assert gpu["pci"].lower() == slot.address
        assert gpu["id"] == int(model["pci_device_id"], 16) << 16 | 0x10DE
        assert (gpu["cpus"], gpu["nodes"]) == (1 << slot.numa_node, 1 << slot.numa_node)


@pytest.mark.parametrize("profile", PROFILES)
def test_links_are_symmetrical(driver: Callable[[str], Any], profile: str) -> None:
    simulated = driver(profile)
    seen = simulated.ask(
        DEVICES
        + """
out = []
for h in handles:
    ends = []
    for link in range(n.NVML_NVLINK_MAX_LINKS):
        if answer(n.nvmlDeviceGetNvLinkState, h, link) == 1:
            version = n.nvmlDeviceGetNvLinkVersion(h, link)
            assert version in (n.NVML_NVLINK_VERSION_2_0, n.NVML_NVLINK_VERSION_3_0,
                               n.NVML_NVLINK_VERSION_4_0)
            assert n.nvmlDeviceGetNvLinkCapability(h, link, n.NVML_NVLINK_CAP_P2P_SUPPORTED) == 1
            ends.append([n.nvmlDeviceGetNvLinkRemoteDeviceType(h, link),
                         n.nvmlDeviceGetNvLinkRemotePciInfo(h, link).busIdLegacy.lower()])
    out.append([n.nvmlDeviceGetPciInfo(h).busIdLegacy.lower(), ends])
"""
    )
    ends = {address: [tuple(end) for end in links] for address, links in seen}
    for address, links in ends.items():
        for kind, remote in links:
            if kind == 0:  # another GPU
                assert links.count((0, remote)) == ends[remote].count((0, address))
    assert {address: len(links) for address, links in ends.items()} == {
        gpu.values["pci"]: len(gpu.links) for gpu in simulated.state.gpus
    }


@pytest.mark.parametrize("profile", PROFILES)
def test_topology_is_the_recorded_matrix_as_far_as_the_tree_can_say_it(
    driver: Callable[[str], Any], profile: str
) -> None:
    simulated = driver(profile)
    seen = simulated.ask(
        DEVICES
        + """
def pair(a, b):
    return [answer(n.nvmlDeviceGetTopologyCommonAncestor, a, b),
            answer(n.nvmlDeviceGetP2PStatus, a, b, n.NVML_P2P_CAPS_INDEX_NVLINK)]
out = [[pair(a, b) for b in handles] for a in handles]
"""
    )
    levels = {10: "PIX", 20: "PXB", 30: "PHB", 40: "NODE", 50: "SYS"}
    substitutes = simulated.profile["levels_in_lab"]
    for i, row in enumerate(simulated.profile["recorded"]["matrix"]):
        for j, recorded in enumerate(row):
            level, nvlink = seen[i][j]
            if i == j:
                assert level == 0
            elif recorded.startswith("NV"):
                assert nvlink == 0
                peers = ("switch", simulated.state.gpus[j].values["pci"])
                links = simulated.state.gpus[i].links.values()
                ends = [link for link in links if link.kind in peers or link.remote in peers]
                assert len(ends) == int(recorded[2:])
            else:
                assert nvlink != 0
                assert levels[level] == substitutes.get(recorded, recorded)


def test_numa_nodes_are_the_recorded_ones_as_far_as_two_nodes_can_say_it(
    driver: Callable[[str], Any],
) -> None:
    for profile in PROFILES:
        simulated = driver(profile)
        for gpu, node in zip(simulated.state.gpus, simulated.profile["recorded"]["numa_affinity"]):
            if node is not None:
                assert gpu.values["numa_node"] == str(simulated.profile["numa_in_lab"][node])


def test_system_calls(driver: Callable[[str], Any]) -> None:
    version = driver("dgx-a100").ask(
        "n.nvmlInit(); out = [n.nvmlSystemGetDriverVersion(), n.nvmlSystemGetNVMLVersion(),"
        " n.nvmlSystemGetCudaDriverVersion(), n.nvmlSystemGetCudaDriverVersion_v2()]"
    )
    assert version == ["550.163.01", "12.550.163.01", 12040, 12040]


def test_modes_answer_by_model(driver: Callable[[str], Any]) -> None:
    code = (
        DEVICES
        + """
def modes(h):
    fabric = n.c_nvmlGpuFabricInfo_v2_t()
    return [answer(lambda: list(n.nvmlDeviceGetMigMode(h))),
            answer(lambda: list(n.nvmlDeviceGetEccMode(h))),
            answer(n.nvmlDeviceGetArchitecture, h),
            answer(n.nvmlDeviceGetSerial, h) != "NVMLError_NotSupported",
            answer(n.nvmlDeviceGetGpuFabricInfoV, h, n.byref(fabric)), fabric.state]
out = [modes(h) for h in handles]
"""
    )
    t4, geforce = driver("mixed-workstation").ask(code)[:2]
    assert t4 == ["NVMLError_NotSupported", [1, 1], 6, True, "NVMLError_NotSupported", 0]
    assert geforce == [
        "NVMLError_NotSupported",
        "NVMLError_NotSupported",
        8,
        False,
        "NVMLError_NotSupported",
        0,
    ]
    assert driver("hgx-h100").ask(code)[0] == [[0, 0], [1, 1], 9, True, 0, 3]
    assert driver("dgx-a100").ask(code)[0] == [[0, 0], [1, 1], 7, True, "NVMLError_NotSupported", 0]


def test_unknown_function_is_function_not_found(driver: Callable[[str], Any]) -> None:
    seen = driver("t4").ask(
        DEVICES + "out = answer(n.nvmlDeviceGetSupportedMemoryClocks, handles[0])"
    )
    assert seen == "NVMLError_FunctionNotFound"


def test_error_texts_are_the_real_ones(driver: Callable[[str], Any]) -> None:
    seen = driver("t4").ask(
        "n.nvmlInit(); out = [n.nvmlErrorString(c) for c in (1, 2, 3, 6, 9, 15, 999)]"
    )
    assert seen == [
        "Uninitialized",
        "Invalid Argument",
        "Not Supported",
        "Not Found",
        "Driver Not Loaded",
        "GPU is lost",
        "Unknown Error",
    ]


def test_library_needs_no_newer_c_library_than_the_oldest_guest(library: Path) -> None:
    symbols = subprocess.run(
        ["objdump", "-T", str(library)], capture_output=True, text=True, check=True
    ).stdout
    versions = {tuple(map(int, v.split("."))) for v in re.findall(r"GLIBC_([0-9.]+)", symbols)}
    assert versions
    assert max(versions) <= (2, 34)


def test_library_has_the_soname_callers_load(library: Path) -> None:
    dynamic = subprocess.run(
        ["objdump", "-p", str(library)], capture_output=True, text=True, check=True
    ).stdout
    assert re.search(r"SONAME\s+libnvidia-ml\.so\.1\n", dynamic)
    assert library.name == "libnvidia-ml.so.550.163.01"
