# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What an inventory asks of a GPU beside its identity: settings, health, fabric, peers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from simgpu_guest import state

NOT_SUPPORTED = "NVMLError_NotSupported"

HEALTH = """
def values(call, *arguments):
    try:
        return list(call(*arguments))
    except n.NVMLError as error:
        return type(error).__name__
def health(h):
    return {
        "modes": [answer(call, h) for call in (
            n.nvmlDeviceGetComputeMode, n.nvmlDeviceGetPersistenceMode,
            n.nvmlDeviceGetDisplayActive, n.nvmlDeviceGetDisplayMode)],
        "power": [answer(n.nvmlDeviceGetPowerManagementLimit, h),
                  answer(n.nvmlDeviceGetPowerManagementDefaultLimit, h),
                  values(n.nvmlDeviceGetPowerManagementLimitConstraints, h)],
        "clocks": [[answer(call, h, kind) for kind in (n.NVML_CLOCK_SM, n.NVML_CLOCK_MEM)]
                   for call in (n.nvmlDeviceGetClockInfo, n.nvmlDeviceGetMaxClockInfo)],
        "pcie": [answer(call, h) for call in (
            n.nvmlDeviceGetCurrPcieLinkGeneration, n.nvmlDeviceGetMaxPcieLinkGeneration,
            n.nvmlDeviceGetCurrPcieLinkWidth, n.nvmlDeviceGetMaxPcieLinkWidth)],
        "ecc": [values(n.nvmlDeviceGetEccMode, h),
                [answer(n.nvmlDeviceGetTotalEccErrors, h, kind, n.NVML_VOLATILE_ECC)
                 for kind in (0, 1)]],
        "remapped": values(n.nvmlDeviceGetRemappedRows, h),
        "gsp": [values(n.nvmlDeviceGetGspFirmwareMode, h),
                values(lambda: [n.nvmlDeviceGetGspFirmwareVersion(h).decode()])],
        "numa": answer(n.nvmlDeviceGetNumaNodeId, h),
    }
"""


def test_an_a100_as_it_comes(driver: Callable[[str], Any]) -> None:
    assert driver("dgx-a100").ask(HEALTH + "out = health(gpu())") == {
        "modes": [0, 1, 0, 0],
        "power": [400_000, 400_000, [100_000, 400_000]],
        "clocks": [[210, 1215], [1410, 1215]],
        "pcie": [4, 4, 16, 16],
        "ecc": [[1, 1], [0, 0]],
        "remapped": [0, 0, 0, 0],
        "gsp": [[1, 1], ["550.163.01"]],
        "numa": NOT_SUPPORTED,
    }


def test_a_geforce_knows_less(driver: Callable[[str], Any]) -> None:
    seen = driver("mixed-workstation").ask(HEALTH + "out = health(gpu(1))")
    assert seen["ecc"] == [NOT_SUPPORTED, [NOT_SUPPORTED] * 2]
    assert seen["remapped"] == NOT_SUPPORTED
    assert seen["gsp"] == [[0, 0], NOT_SUPPORTED]


def test_a_volta_retires_pages_and_has_no_gsp(driver: Callable[[str], Any]) -> None:
    seen = driver("dgx1-v100").ask(HEALTH + "out = health(gpu())")
    assert (seen["ecc"], seen["remapped"]) == ([[1, 1], [0, 0]], NOT_SUPPORTED)
    assert seen["gsp"] == [[0, 0], NOT_SUPPORTED]


@pytest.mark.parametrize(
    ("changes", "field", "wanted"),
    [
        ({"compute_mode": 3, "display_active": 1}, "modes", [3, 1, 1, 0]),
        ({"power_limit_mw": 250_000}, "power", [250_000, 400_000, [100_000, 400_000]]),
        ({"clock_sm": 1410}, "clocks", [[1410, 1215], [1410, 1215]]),
        ({"pcie_gen": 1, "pcie_width": 8}, "pcie", [1, 4, 8, 16]),
        ({"ecc_corrected": 7, "ecc_uncorrected": 2}, "ecc", [[1, 1], [7, 2]]),
        ({"ecc_pending": 0}, "ecc", [[1, 0], [0, 0]]),
        (
            {"remapped_corrected": 1, "remapped_uncorrected": 3, "remapped_pending": 1},
            "remapped",
            [1, 3, 1, 0],
        ),
        ({"remapped_failed": 1}, "remapped", [0, 0, 0, 1]),
    ],
)
def test_simgpu_set_changes_what_is_answered(
    driver: Callable[[str], Any], changes: dict[str, int], field: str, wanted: Any
) -> None:
    simulated = driver("dgx-a100")
    for key, value in changes.items():
        state.set_value(simulated.state, f"gpu.0.{key}", str(value))
    simulated.write()
    assert simulated.ask(HEALTH + f"out = health(gpu())[{field!r}]") == wanted


FABRIC = """
def fabric(h, kind):
    info = kind()
    call = n.nvmlDeviceGetGpuFabricInfo if kind is n.c_nvmlGpuFabricInfo_t else (
        n.nvmlDeviceGetGpuFabricInfoV)
    if kind is n.c_nvmlGpuFabricInfo_v3_t:
        info.version = n.nvmlGpuFabricInfo_v3
    result = answer(call, h, n.byref(info))
    return [result, info.state, info.status, info.cliqueId]
h = gpu()
out = [fabric(h, kind) for kind in (
    n.c_nvmlGpuFabricInfo_t, n.c_nvmlGpuFabricInfo_v2_t, n.c_nvmlGpuFabricInfo_v3_t)]
"""


def test_every_version_tells_the_same_of_the_fabric(driver: Callable[[str], Any]) -> None:
    simulated = driver("hgx-h100")
    assert simulated.ask(FABRIC) == [[0, 3, 0, 0]] * 3
    for key, value in (("state", "2"), ("status", "999"), ("clique", "5")):
        state.set_value(simulated.state, f"gpu.0.fabric_{key}", value)
    simulated.write()
    assert simulated.ask(FABRIC) == [[0, 2, 999, 5]] * 3
    assert [row[0] for row in driver("dgx-a100").ask(FABRIC)] == [NOT_SUPPORTED] * 3


PEERS = """
out = [answer(n.nvmlDeviceGetP2PStatus, gpu({}), gpu({}), capability) for capability in range(6)]
"""


@pytest.mark.parametrize(
    ("profile", "pair", "wanted"),
    [
        ("dgx1-v100", (0, 7), [0, 0, 0, 0, 0]),  # joined directly, across sockets
        ("dgx1-v100", (0, 4), [0, 0, 5, 0, 0]),  # no link: over PCIe
        ("mixed-workstation", (1, 2), [1, 1, 5, 1, 1]),  # GeForce: chipset not supported
    ],
)
def test_peers_by_every_capability(
    driver: Callable[[str], Any], profile: str, pair: tuple[int, int], wanted: list[int]
) -> None:
    assert driver(profile).ask(PEERS.format(*pair)) == [*wanted, "NVMLError_InvalidArgument"]


def test_peers_can_be_disabled_by_a_registry_key(driver: Callable[[str], Any]) -> None:
    simulated = driver("dgx1-v100")
    state.set_value(simulated.state, "gpu.4.p2p_status", "4")
    simulated.write()
    assert simulated.ask(PEERS.format(0, 4))[0] == 4
