# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""GPU instances, compute instances and MIG devices of the simulated GPUs."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest

ON = "h = gpu(); n.nvmlDeviceSetMigMode(h, 1)\n"

#: id: name, compute slices, most instances, placements (start, size) as `nvidia-smi mig -lgipp`.
ONE, TWO, DOUBLE, HALF = range(7), (0, 2, 4), (0, 2, 4, 6), (0, 4)
A100 = {
    19: ("1g.5gb", 1, 7, ONE, 1),
    20: ("1g.5gb+me", 1, 1, ONE, 1),
    15: ("1g.10gb", 1, 4, DOUBLE, 2),
    14: ("2g.10gb", 2, 3, TWO, 2),
    9: ("3g.20gb", 3, 2, HALF, 4),
    5: ("4g.20gb", 4, 1, (0,), 4),
    0: ("7g.40gb", 7, 1, (0,), 8),
}
H100 = {
    19: ("1g.10gb", 1, 7, ONE, 1),
    20: ("1g.10gb+me", 1, 1, ONE, 1),
    15: ("1g.20gb", 1, 4, DOUBLE, 2),
    14: ("2g.20gb", 2, 3, TWO, 2),
    9: ("3g.40gb", 3, 2, HALF, 4),
    5: ("4g.40gb", 4, 1, (0,), 4),
    0: ("7g.80gb", 7, 1, (0,), 8),
}
TABLES = {"dgx-a100": A100, "a100-pcie-bridge": A100, "hgx-h100": H100}


@pytest.mark.parametrize("profile", sorted(TABLES))
def test_profiles_and_placements_are_those_of_the_real_gpu(
    driver: Callable[[str], Any], profile: str
) -> None:
    seen = driver(profile).ask(
        ON
        + """
out = []
for number in range(n.NVML_GPU_INSTANCE_PROFILE_COUNT):
    try:
        info = n.nvmlDeviceGetGpuInstanceProfileInfo(h, number)
    except n.NVMLError_NotSupported:
        continue
    old = n.nvmlDeviceGetGpuInstanceProfileInfo(h, number, version=1)
    by_id = n.nvmlDeviceGetGpuInstanceProfileInfoById(h, info.id)
    for field, _type in old._fields_:
        assert getattr(old, field) == getattr(info, field) == getattr(by_id, field)
    assert by_id.name == info.name
    assert info.memorySizeMB and info.multiprocessorCount
    assert n.nvmlDeviceGetGpuInstanceRemainingCapacity(h, info.id) == info.instanceCount
    out.append([info.id, info.name, info.sliceCount, info.instanceCount, placements(h, info.id)])
"""
    )
    assert {row[0]: row[1:] for row in seen} == {
        number: [f"MIG {name}", slices, most, [[start, size] for start in starts]]
        for number, (name, slices, most, starts, size) in TABLES[profile].items()
    }


def test_version_3_as_go_nvml_asks_and_a_foreign_version(driver: Callable[[str], Any]) -> None:
    seen = driver("hgx-h100").ask(
        ON
        + """
import ctypes
class V3(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint), ("id", ctypes.c_uint), ("slices", ctypes.c_uint),
                ("instances", ctypes.c_uint), ("rest", ctypes.c_uint * 6),
                ("memory", ctypes.c_ulonglong), ("name", ctypes.c_char * 96),
                ("capabilities", ctypes.c_uint)]
call = n._nvmlGetFunctionPointer("nvmlDeviceGetGpuInstanceProfileInfoV")
info = V3(version=ctypes.sizeof(V3) | 3 << 24)
out = [call(h, 2, ctypes.byref(info)), info.id, info.slices, info.name.decode()]
info.version = 7
out.append(call(h, 2, ctypes.byref(info)))
"""
    )
    assert seen == [0, 9, 3, "MIG 3g.40gb", 25]


def test_the_layout_of_the_mig_user_guide(driver: Callable[[str], Any]) -> None:
    """`nvidia-smi mig -cgi 19,14,5` without placements: the driver fills from the top."""
    simulated = driver("dgx-a100")
    seen = simulated.ask(ON + "for p in (19, 14, 5): create(h, p)\nout = instances(h)")
    assert seen == [[1, 5, 0, 4], [3, 14, 4, 2], [7, 19, 6, 1]]


def test_three_and_four_fill_all_memory_and_all_compute_slices(
    driver: Callable[[str], Any],
) -> None:
    seen = driver("dgx-a100").ask(
        ON
        + """
create(h, 5, 0), create(h, 9, 4)
out = [instances(h), answer(create, h, 19),
       [n.nvmlDeviceGetGpuInstanceRemainingCapacity(h, p) for p in offers(h)]]
"""
    )
    assert seen == [[[1, 5, 0, 4], [2, 9, 4, 4]], "NVMLError_InsufficientResources", [0] * 7]


@pytest.mark.parametrize(
    ("call", "error"),
    [
        ("create(h, 9, 2)", "NVMLError_InsufficientResources"),  # no place of the table
        ("create(h, 9, 4), create(h, 14, 4)", "NVMLError_InsufficientResources"),
        ("create(h, 20, 0), create(h, 20, 1)", "NVMLError_InsufficientResources"),
        ("create(h, 77, 0)", "NVMLError_NotSupported"),
        ("n.nvmlDeviceCreateGpuInstance(h, 77)", "NVMLError_NotSupported"),
        (
            "n.nvmlDeviceCreateGpuInstanceWithPlacement("
            "h, 9, n.byref(n.c_nvmlGpuInstancePlacement_t(0, 3)))",
            "NVMLError_InvalidArgument",
        ),
        ("n.nvmlDeviceGetGpuInstanceById(h, 3)", "NVMLError_NotFound"),
        ("n.nvmlDeviceGetGpuInstanceById(h, 99)", "NVMLError_NotFound"),
        ("n.nvmlDeviceGetGpuInstanceProfileInfo(h, 99)", "NVMLError_InvalidArgument"),
        ("n.nvmlGpuInstanceGetInfo(n.c_nvmlGpuInstance_t())", "NVMLError_InvalidArgument"),
        ("n.nvmlComputeInstanceDestroy(n.c_nvmlComputeInstance_t())", "NVMLError_InvalidArgument"),
    ],
)
def test_what_cannot_be_had_is_refused(driver: Callable[[str], Any], call: str, error: str) -> None:
    assert driver("dgx-a100").ask(ON + f"out = answer(lambda: ({call}))") == error


def test_one_instance_with_media_engines_leaves_the_plain_ones(
    driver: Callable[[str], Any],
) -> None:
    seen = driver("hgx-h100").ask(
        ON
        + "create(h, 20, 3)\n"
        + "out = [n.nvmlDeviceGetGpuInstanceRemainingCapacity(h, p) for p in (20, 19, 15, 9, 0)]"
    )
    assert seen == [0, 6, 3, 1, 0]


def test_an_id_is_free_again_and_says_nothing_of_the_place(driver: Callable[[str], Any]) -> None:
    seen = driver("dgx-a100").ask(
        ON
        + """
first, second = create(h, 19, 6), create(h, 19, 2)
n.nvmlGpuInstanceDestroy(first)
out = [instances(h), answer(n.nvmlGpuInstanceGetInfo, first)]
create(h, 19, 0)
out.append(instances(h))
"""
    )
    assert seen == [
        [[8, 19, 2, 1]],
        "NVMLError_InvalidArgument",
        [[7, 19, 0, 1], [8, 19, 2, 1]],
    ]


COMPUTE = """
def computes(gi):
    found = []
    for number in range(n.NVML_COMPUTE_INSTANCE_PROFILE_COUNT):
        try:
            info = n.nvmlGpuInstanceGetComputeInstanceProfileInfo(gi, number, 0)
        except n.NVMLError_NotSupported:
            continue
        old = n.nvmlGpuInstanceGetComputeInstanceProfileInfo(gi, number, 0, version=1)
        count = n.c_uint()
        call = n.nvmlGpuInstanceGetComputeInstancePossiblePlacements
        call(gi, number, None, n.byref(count))
        array = (n.c_nvmlComputeInstancePlacement_t * count.value)()
        call(gi, number, array, n.byref(count))
        for field, _type in old._fields_:
            assert getattr(old, field) == getattr(info, field)
        room = n.nvmlGpuInstanceGetComputeInstanceRemainingCapacity(gi, number)
        found.append([info.id, info.name, info.sliceCount, info.instanceCount, room,
                      [one.start for one in array]])
    return found
def part(gi, profile, start, size):
    place = n.c_nvmlComputeInstancePlacement_t(start, size)
    return n.nvmlGpuInstanceCreateComputeInstanceWithPlacement(gi, profile, n.byref(place))
"""


def test_compute_profiles_of_a_three_slice_instance(driver: Callable[[str], Any]) -> None:
    seen = driver("dgx-a100").ask(
        ON + COMPUTE + "gi = create(h, 9); n.nvmlGpuInstanceCreateComputeInstance(gi, 0)\n"
        "out = computes(gi)"
    )
    assert seen == [
        [0, "MIG 1c.3g.20gb", 1, 3, 2, [0, 1, 2]],
        [1, "MIG 2c.3g.20gb", 2, 1, 1, [0, 1]],
        [2, "MIG 3g.20gb", 3, 1, 0, [0]],
    ]


@pytest.mark.parametrize(
    ("profile", "slices"), [(19, [1]), (14, [1, 2]), (5, [1, 2, 4]), (0, [1, 2, 3, 4, 7])]
)
def test_compute_sizes_that_an_instance_can_be_cut_into(
    driver: Callable[[str], Any], profile: int, slices: list[int]
) -> None:
    seen = driver("dgx-a100").ask(
        ON + COMPUTE + f"out = [row[2] for row in computes(create(h, {profile}))]"
    )
    assert seen == slices


def test_compute_instances_share_the_slices_of_their_instance(
    driver: Callable[[str], Any],
) -> None:
    seen = driver("dgx-a100").ask(
        ON
        + COMPUTE
        + """
gi = create(h, 9)
two = part(gi, 1, 1, 2)
out = [answer(part, gi, 1, 0, 2), answer(part, gi, 0, 2, 1), answer(part, gi, 0, 9, 1),
       answer(part, gi, 0, 4294967295, 1), answer(part, gi, 0, 0, 2),
       answer(n.nvmlGpuInstanceCreateComputeInstance, gi, 2),
       answer(n.nvmlGpuInstanceCreateComputeInstance, gi, 3)]
one = n.nvmlGpuInstanceCreateComputeInstance(gi, 0)
info = n.nvmlComputeInstanceGetInfo(one)
count, array = n.c_uint(), (n.c_nvmlComputeInstance_t * 3)()
n.nvmlGpuInstanceGetComputeInstances(gi, 1, array, n.byref(count))
out += [[info.id, info.profileId, info.placement.start, info.placement.size],
        n.nvmlGpuInstanceGetInfo(info.gpuInstance).id, n.nvmlDeviceGetIndex(info.device),
        [n.nvmlComputeInstanceGetInfo(ci).id for ci in array[:count.value]],
        answer(n.nvmlGpuInstanceGetComputeInstanceById, gi, 5)]
"""
    )
    full, wrong = "NVMLError_InsufficientResources", "NVMLError_InvalidArgument"
    assert seen == [
        *[full] * 4,
        wrong,
        full,
        "NVMLError_NotSupported",
        [1, 0, 0, 1],
        1,
        0,
        [0],
        "NVMLError_NotFound",
    ]


def test_mig_devices_are_the_compute_instances_in_order(driver: Callable[[str], Any]) -> None:
    simulated = driver("dgx-a100")
    code = """
def describe(mig):
    attributes, memory = n.nvmlDeviceGetAttributes(mig), n.nvmlDeviceGetMemoryInfo(mig)
    again = n.nvmlDeviceGetHandleByUUID(n.nvmlDeviceGetUUID(mig))
    assert n.nvmlDeviceGetIndex(again) == n.nvmlDeviceGetIndex(mig)
    assert n.nvmlDeviceIsMigDeviceHandle(mig).value == 1
    assert n.nvmlDeviceGetIndex(n.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(mig)) == 0
    assert memory.total == attributes.memorySizeMB << 20 == memory.free
    return [n.nvmlDeviceGetIndex(mig), n.nvmlDeviceGetName(mig).replace("NVIDIA A100-", ""),
            n.nvmlDeviceGetGpuInstanceId(mig), n.nvmlDeviceGetComputeInstanceId(mig),
            attributes.memorySizeMB, attributes.multiprocessorCount,
            attributes.gpuInstanceSliceCount, attributes.computeInstanceSliceCount,
            n.nvmlDeviceGetBAR1MemoryInfo(mig).bar1Total >> 20]
"""
    seen = simulated.ask(
        ON
        + code
        + """
one, three = create(h, 19, 6), create(h, 9, 0)
for gi, compute in ((one, 0), (three, 1), (three, 0)):
    n.nvmlGpuInstanceCreateComputeInstance(gi, compute)
out = [describe(mig) for mig in mig_devices(h)]
"""
    )
    assert seen == [
        [0, "SXM4-40GB MIG 2c.3g.20gb", 1, 0, 20096, 28, 3, 2, 32768],
        [1, "SXM4-40GB MIG 1c.3g.20gb", 1, 1, 20096, 14, 3, 1, 32768],
        [2, "SXM4-40GB MIG 1g.5gb", 7, 0, 4864, 14, 1, 1, 8192],
    ]


def test_mig_uuids_are_unique_and_come_again(driver: Callable[[str], Any]) -> None:
    simulated = driver("dgx-a100")
    code = """
for index in range(8):
    h = gpu(index)
    n.nvmlDeviceSetMigMode(h, 1)
    for _ in range(7):
        n.nvmlGpuInstanceCreateComputeInstance(create(h, 19), 0)
out = [n.nvmlDeviceGetUUID(mig) for index in range(8) for mig in mig_devices(gpu(index))]
"""
    first = simulated.ask(code)
    assert len(set(first)) == 56
    for uuid in first:
        prefix, *groups = uuid.split("-")
        assert (prefix, [len(group) for group in groups]) == ("MIG", [8, 4, 4, 4, 12])
    simulated.state.settings["boot"] = "after"
    simulated.write()
    assert simulated.ask(code) == first


def test_what_a_mig_device_cannot_be_asked(driver: Callable[[str], Any]) -> None:
    seen = driver("dgx-a100").ask(
        ON
        + """
n.nvmlGpuInstanceCreateComputeInstance(create(h, 0), 4)
mig = mig_devices(h)[0]
out = [answer(call, mig) for call in (
    n.nvmlDeviceGetMinorNumber, n.nvmlDeviceGetPciInfo, n.nvmlDeviceGetMigMode,
    n.nvmlDeviceGetSerial, n.nvmlDeviceGetPersistenceMode)]
out.append(answer(n.nvmlDeviceGetGpuInstanceId, h))
out.append(answer(n.nvmlDeviceGetDeviceHandleFromMigDeviceHandle, h))
out.append(answer(n.nvmlDeviceGetHandleByUUID, "MIG-00000000-0000-0000-0000-000000000000"))
"""
    )
    assert seen == [
        *["NVMLError_NotSupported"] * 6,
        "NVMLError_InvalidArgument",
        "NVMLError_NotFound",
    ]


@pytest.mark.parametrize(
    ("held", "compute", "instance"),
    [
        ("0", 0, 0),  # a monitor with the whole GPU open is no user of the instance
        ("0/1", "NVMLError_InUse", "NVMLError_InUse"),
        ("0/1/0", "NVMLError_InUse", "NVMLError_InUse"),
        ("0/1/1", 0, "NVMLError_InUse"),
        ("0/2", 0, 0),
        ("1/1", 0, 0),
    ],
)
def test_a_used_instance_is_not_destroyed(
    driver: Callable[[str], Any], held: str, compute: object, instance: object
) -> None:
    simulated = driver("dgx-a100")
    simulated.ask(ON + "n.nvmlGpuInstanceCreateComputeInstance(create(h, 9), 2); out = 0")

    def under_hold(code: str) -> Any:
        simulated.state.holders = [f"{held} {os.getpid()} python3"]
        simulated.write()
        answer = simulated.ask(f"gi = n.nvmlDeviceGetGpuInstanceById(gpu(), 1)\n{code}")
        simulated.state.holders = []
        simulated.write()
        return answer

    part = "ci = n.nvmlGpuInstanceGetComputeInstanceById(gi, 0)\n"
    assert under_hold(part + "out = answer(n.nvmlComputeInstanceDestroy, ci)") == compute
    if compute != 0:
        again = "gi = n.nvmlDeviceGetGpuInstanceById(gpu(), 1)\n"
        simulated.ask(f"{again}{part}out = n.nvmlComputeInstanceDestroy(ci)")
    assert under_hold("out = answer(n.nvmlGpuInstanceDestroy, gi)") == instance


def test_an_instance_with_compute_instances_is_not_destroyed(driver: Callable[[str], Any]) -> None:
    seen = driver("dgx-a100").ask(
        ON
        + """
gi = create(h, 9)
ci = n.nvmlGpuInstanceCreateComputeInstance(gi, 2)
out = [answer(n.nvmlGpuInstanceDestroy, gi), n.nvmlComputeInstanceDestroy(ci),
       answer(n.nvmlComputeInstanceDestroy, ci), n.nvmlGpuInstanceDestroy(gi), instances(h)]
"""
    )
    assert seen == ["NVMLError_InUse", 0, "NVMLError_InvalidArgument", 0, []]


def test_running_processes_are_the_holders(driver: Callable[[str], Any]) -> None:
    simulated = driver("dgx-a100")
    simulated.ask(
        ON + "gi = create(h, 9); n.nvmlGpuInstanceCreateComputeInstance(gi, 1)\n"
        "n.nvmlGpuInstanceCreateComputeInstance(gi, 0); out = 0"
    )
    mine, parent = os.getpid(), os.getppid()
    simulated.state.holders = [
        f"0 {mine} python3",
        f"0/1/1 {mine} python3",
        f"0 {parent} Xorg",
        f"1 {mine} train",
    ]
    simulated.state.gpus[1].values["memory_used"] = "4096"
    simulated.write()
    seen = simulated.ask(
        """
def rows(device, graphics=False):
    kind = "Graphics" if graphics else "Compute"
    call = getattr(n, f"nvmlDeviceGet{kind}RunningProcesses")
    return [[p.pid, p.usedGpuMemory, p.gpuInstanceId, p.computeInstanceId] for p in call(device)]
h = gpu()
out = [rows(h), rows(h, True), [rows(mig) for mig in mig_devices(h)], rows(gpu(1)), rows(gpu(2))]
"""
    )
    none = 0xFFFFFFFF
    assert seen == [
        [[mine, None, 1, 1]],
        [[parent, None, none, none]],
        [[], [[mine, None, 1, 1]]],
        [[mine, 4096, none, none]],
        [],
    ]
