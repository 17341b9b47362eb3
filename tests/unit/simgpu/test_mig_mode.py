# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The MIG mode of the simulated GPUs: what a change needs, what blocks it, what a reboot leaves."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest

IN_USE, RESET_REQUIRED = 19, 16

SWITCH = """
h = gpu()
status = answer(n.nvmlDeviceSetMigMode, h, {mode})
out = [status, n.nvmlDeviceGetMigMode(h)]
"""
MODE = "out = n.nvmlDeviceGetMigMode(gpu())"


def held(what: str = "0", name: str = "python3") -> str:
    """A `holder` line's rest: this very process has it open."""
    return f"{what} {os.getpid()} {name}"


@pytest.mark.parametrize("profile", ["dgx-a100", "hgx-h100"])
def test_an_idle_gpu_changes_at_once(driver: Callable[[str], Any], profile: str) -> None:
    simulated = driver(profile)
    assert simulated.ask(MODE) == [0, 0]
    assert simulated.ask(SWITCH.format(mode=1)) == [0, [1, 1]]
    assert simulated.ask("out = n.nvmlDeviceGetMigMode(gpu(1))") == [0, 0]
    assert simulated.ask(SWITCH.format(mode=0)) == [0, [0, 0]]


def test_mg_002_a_held_ampere_stays_pending_until_it_is_idle(
    driver: Callable[[str], Any],
) -> None:
    simulated = driver("dgx-a100")
    simulated.state.holders = [held(name="nvidia-persistenced")]
    simulated.write()
    assert simulated.ask(SWITCH.format(mode=1)) == [IN_USE, [0, 1]]
    assert simulated.ask(SWITCH.format(mode=1)) == [IN_USE, [0, 1]]
    simulated.state.holders = []
    simulated.write()
    assert simulated.ask(MODE) == [0, 1], "becoming idle alone changes nothing"
    assert simulated.ask(SWITCH.format(mode=1)) == [0, [1, 1]]


def test_a_pending_change_can_be_taken_back(driver: Callable[[str], Any]) -> None:
    simulated = driver("dgx-a100")
    simulated.state.holders = [held()]
    simulated.write()
    simulated.ask(SWITCH.format(mode=1))
    assert simulated.ask(SWITCH.format(mode=0)) == [0, [0, 0]]


def test_a_held_hopper_refuses_and_nothing_is_pending(driver: Callable[[str], Any]) -> None:
    simulated = driver("hgx-h100")
    simulated.state.holders = [held()]
    simulated.write()
    assert simulated.ask(SWITCH.format(mode=1)) == ["NVMLError_InUse", [0, 0]]


def test_a_holder_of_another_gpu_or_a_dead_one_is_none(driver: Callable[[str], Any]) -> None:
    simulated = driver("dgx-a100")
    simulated.state.holders = [held("1"), "0 4194303 ghost"]
    simulated.write()
    assert simulated.ask(SWITCH.format(mode=1)) == [0, [1, 1]]


@pytest.mark.parametrize(
    ("profile", "answer"),
    [("dgx-a100", [IN_USE, [1, 0]]), ("hgx-h100", ["NVMLError_InUse", [1, 1]])],
)
def test_a_gpu_with_instances_is_not_switched_off(
    driver: Callable[[str], Any], profile: str, answer: list[Any]
) -> None:
    simulated = driver(profile)
    simulated.ask("h = gpu(); n.nvmlDeviceSetMigMode(h, 1); create(h, 19); out = 0")
    assert simulated.ask(SWITCH.format(mode=0)) == answer
    assert simulated.ask("out = len(instances(gpu()))") == 1


def test_a_passed_through_ampere_wants_a_reboot(driver: Callable[[str], Any]) -> None:
    simulated = driver("dgx-a100")
    simulated.state.gpus[0].values["mig_reset"] = "reboot"
    simulated.write()
    assert simulated.ask(SWITCH.format(mode=1)) == [RESET_REQUIRED, [0, 1]]
    simulated.state.settings["boot"] = "after"
    simulated.write()
    assert simulated.ask(MODE) == [1, 1]


def test_mg_001_a_reboot_keeps_the_ampere_mode_and_no_instance(
    driver: Callable[[str], Any],
) -> None:
    simulated = driver("dgx-a100")
    layout = "h = gpu(); out = [n.nvmlDeviceGetMigMode(h), instances(h), len(mig_devices(h))]"
    simulated.ask(
        "h = gpu(); n.nvmlDeviceSetMigMode(h, 1)\n"
        "n.nvmlGpuInstanceCreateComputeInstance(create(h, 9), 2); out = 0"
    )
    assert simulated.ask(layout) == [[1, 1], [[1, 9, 4, 4]], 1]
    simulated.state.settings["boot"] = "after"
    simulated.write()
    assert simulated.ask(layout) == [[1, 1], [], 0]


def test_a_reboot_ends_the_hopper_mode(driver: Callable[[str], Any]) -> None:
    simulated = driver("hgx-h100")
    simulated.ask(SWITCH.format(mode=1))
    simulated.state.settings["boot"] = "after"
    simulated.write()
    assert simulated.ask(MODE) == [0, 0]


def test_a_process_that_asks_before_and_after_the_reboot_sees_it(
    driver: Callable[[str], Any],
) -> None:
    simulated = driver("dgx-a100")
    code = "h = gpu()\ndef answer_to(mode):\n    return n.nvmlDeviceSetMigMode(h, mode)"
    look = "h = gpu()\ndef answer_to(_):\n    return [n.nvmlDeviceGetMigMode(h), instances(h)]"
    with simulated.talk(code) as change:
        change(1)
    simulated.ask("create(gpu(), 0); out = 0")
    with simulated.talk(look) as ask:
        assert ask(None) == [[1, 1], [[0, 0, 0, 8]]]
        simulated.state.settings["boot"] = "after"
        simulated.write()
        assert ask(None) == [[1, 1], []]


@pytest.mark.parametrize("profile", ["dgx1-v100", "mixed-workstation", "t4"])
def test_gpus_without_mig_say_so(driver: Callable[[str], Any], profile: str) -> None:
    seen = driver(profile).ask(
        "h = gpu(); out = [answer(n.nvmlDeviceGetMigMode, h), answer(n.nvmlDeviceSetMigMode, h, 1),"
        " n.nvmlDeviceGetMaxMigDeviceCount(h), answer(n.nvmlDeviceGetMigDeviceHandleByIndex, h, 0),"
        " answer(n.nvmlDeviceGetGpuInstanceProfileInfo, h, 0)]"
    )
    refused = "NVMLError_NotSupported"
    assert seen == [refused, refused, 0, refused, refused]


def test_while_mig_is_off_nothing_is_offered(driver: Callable[[str], Any]) -> None:
    seen = driver("dgx-a100").ask(
        """
h = gpu()
count, array = n.c_uint(), (n.c_nvmlGpuInstance_t * 8)()
out = [n.nvmlDeviceIsMigDeviceHandle(h).value, n.nvmlDeviceGetMaxMigDeviceCount(h),
       answer(n.nvmlDeviceGetMigDeviceHandleByIndex, h, 0)]
out += [answer(*call) for call in (
    (n.nvmlDeviceGetGpuInstanceProfileInfo, h, 0),
    (n.nvmlDeviceGetGpuInstanceProfileInfoById, h, 19),
    (n.nvmlDeviceGetGpuInstancePossiblePlacements, h, 19, None, n.byref(count)),
    (n.nvmlDeviceGetGpuInstanceRemainingCapacity, h, 19),
    (n.nvmlDeviceCreateGpuInstance, h, 19),
    (n.nvmlDeviceGetGpuInstances, h, 19, array, n.byref(count)),
    (n.nvmlDeviceGetGpuInstanceById, h, 7),
    (n.nvmlDeviceGetAttributes_v2, h),
)]
"""
    )
    assert seen == [0, 0, "NVMLError_NotFound", *["NVMLError_NotSupported"] * 8]


def test_a_mode_that_is_none_is_refused(driver: Callable[[str], Any]) -> None:
    assert driver("dgx-a100").ask(SWITCH.format(mode=2)) == ["NVMLError_InvalidArgument", [0, 0]]
