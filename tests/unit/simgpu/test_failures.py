# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Every way the simulated driver fails, as pynvml tells it."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from typing import Any

import pytest

INIT = "out = answer(n.nvmlInit)"


def test_before_init_everything_is_uninitialized(driver: Callable[[str], Any]) -> None:
    code = "n._LoadNvmlLibrary(); out = [answer(n.nvmlDeviceGetCount), answer(n.nvmlShutdown)]"
    assert driver("t4").ask(code) == ["NVMLError_Uninitialized", "NVMLError_Uninitialized"]


def test_after_the_last_shutdown_too(driver: Callable[[str], Any]) -> None:
    code = """
n.nvmlInit(); n.nvmlInit(); n.nvmlShutdown()
out = [answer(n.nvmlDeviceGetCount)]
n.nvmlShutdown()
out.append(answer(n.nvmlDeviceGetCount))
"""
    assert driver("t4").ask(code) == [1, "NVMLError_Uninitialized"]


def test_without_a_state_file_no_driver_is_loaded(driver: Callable[[str], Any]) -> None:
    simulated = driver("t4")
    simulated.path.unlink()
    assert simulated.ask(INIT) == "NVMLError_DriverNotLoaded"


def test_driver_not_loaded(driver: Callable[[str], Any]) -> None:
    simulated = driver("t4")
    simulated.state.settings["fail"] = "driver_not_loaded"
    simulated.write()
    assert simulated.ask(INIT) == "NVMLError_DriverNotLoaded"


def test_wrong_library(driver: Callable[[str], Any]) -> None:
    simulated = driver("t4")
    simulated.state.settings["module"] = "550.54.15"
    simulated.write()
    assert simulated.ask(INIT) == "NVMLError_LibRmVersionMismatch"


def test_timeout_hangs(driver: Callable[[str], Any]) -> None:
    simulated = driver("t4")
    simulated.state.settings["fail"] = "timeout"
    simulated.write()
    with pytest.raises(subprocess.TimeoutExpired):
        simulated.ask(INIT, timeout_s=1.5)


def test_not_supported_leaves_identity(driver: Callable[[str], Any]) -> None:
    simulated = driver("dgx-a100")
    simulated.state.settings["fail"] = "not_supported"
    simulated.write()
    seen = simulated.ask(
        """
n.nvmlInit()
h = n.nvmlDeviceGetHandleByIndex(0)
out = [answer(n.nvmlDeviceGetName, h), answer(n.nvmlDeviceGetMemoryInfo, h),
       answer(n.nvmlDeviceGetMigMode, h), answer(n.nvmlDeviceGetNvLinkState, h, 0),
       answer(n.nvmlDeviceGetTopologyCommonAncestor, h, h)]
"""
    )
    assert seen == ["NVIDIA A100-SXM4-40GB"] + ["NVMLError_NotSupported"] * 4


def test_a_lost_gpu_fails_and_the_others_do_not(driver: Callable[[str], Any]) -> None:
    simulated = driver("dgx-a100")
    simulated.state.gpus[2].values["lost"] = "1"
    simulated.write()
    seen = simulated.ask(
        """
n.nvmlInit()
out = [n.nvmlDeviceGetCount()] + [answer(n.nvmlDeviceGetHandleByIndex, i) for i in (1, 2, 3)]
"""
    )
    assert seen == [8, "object", "NVMLError_GpuIsLost", "object"]


def test_a_gpu_lost_later_fails_through_its_old_handle(driver: Callable[[str], Any]) -> None:
    simulated = driver("dgx-a100")
    seen = simulated.ask(
        f"""
import os
n.nvmlInit()
h, other = n.nvmlDeviceGetHandleByIndex(0), n.nvmlDeviceGetHandleByIndex(1)
text = open({str(simulated.path)!r}).read()
with open({str(simulated.path)!r} + ".new", "w") as stream:
    stream.write(text.replace("gpu 0 lost 0", "gpu 0 lost 1"))
os.replace({str(simulated.path)!r} + ".new", {str(simulated.path)!r})
out = [answer(n.nvmlDeviceGetUUID, h), answer(n.nvmlDeviceGetTopologyCommonAncestor, other, h),
       answer(n.nvmlDeviceGetIndex, other)]
"""
    )
    assert seen == ["NVMLError_GpuIsLost", "NVMLError_GpuIsLost", 1]


def test_bad_arguments(driver: Callable[[str], Any]) -> None:
    seen = driver("t4").ask(
        """
import ctypes
n.nvmlInit()
h = n.nvmlDeviceGetHandleByIndex(0)
def short():
    name = n._nvmlGetFunctionPointer("nvmlDeviceGetName")
    n._nvmlCheckReturn(name(h, ctypes.create_string_buffer(3), ctypes.c_uint(3)))
out = [answer(n.nvmlDeviceGetHandleByIndex, 1), answer(n.nvmlDeviceGetHandleByUUID, "GPU-none"),
       answer(n.nvmlDeviceGetHandleByPciBusId, b"0000:99:00.0"),
       answer(n.nvmlDeviceGetName, None), answer(short),
       answer(lambda: n.nvmlDeviceGetMemoryInfo(h, version=7)),
       answer(n.nvmlDeviceGetNvLinkState, h, 99), answer(n.nvmlDeviceGetNvLinkState, h, 0)]
"""
    )
    assert [name.removeprefix("NVMLError_") for name in seen] == [
        "InvalidArgument",
        "NotFound",
        "NotFound",
        "InvalidArgument",
        "InsufficientSize",
        "ArgumentVersionMismatch",
        "InvalidArgument",
        "NotSupported",
    ]


def test_a_gpu_whose_node_is_missing_is_not_counted(driver: Callable[[str], Any]) -> None:
    """On this machine there is no /dev/nvidia0, so a library that checks nodes finds no driver."""
    simulated = driver("t4")
    simulated.state.settings["check_nodes"] = "1"
    simulated.write()
    assert simulated.ask(INIT) == "NVMLError_DriverNotLoaded"


def test_a_link_that_is_down_is_down_at_both_ends(driver: Callable[[str], Any]) -> None:
    from simgpu_guest import state

    simulated = driver("a100-pcie-bridge")
    state.set_value(simulated.state, "link.0.3", "down")
    simulated.write()
    seen = simulated.ask(
        """
n.nvmlInit()
handles = [n.nvmlDeviceGetHandleByIndex(i) for i in (0, 1)]
out = [[answer(n.nvmlDeviceGetNvLinkState, h, link) for link in (2, 3)] for h in handles]
out.append(answer(n.nvmlDeviceGetNvLinkRemotePciInfo, handles[0], 3))
"""
    )
    assert seen == [[1, 0], [1, 0], "NVMLError_NotSupported"]
