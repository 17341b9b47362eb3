# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The single fields of a GPU, its MIG devices, and what NVML says of pairs."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.hardware import (
    nvml,
    nvml_library,
    nvml_mig,
)
from ansible_collections.steadygpu.host.tests.unit.module_utils.hardware.fake_nvml import (
    FUNCTION_NOT_FOUND,
    GPU_IS_LOST,
    MIB,
    NO_PERMISSION,
    NOT_SUPPORTED,
    FakeError,
    FakeNvml,
    a100,
)

UNKNOWN_ERROR = FakeError(999, "Unknown Error")


def read(**answers):
    """The report of one GPU with these answers beside those of every A100."""
    (device,) = nvml.read_all(FakeNvml([a100("0000:23:00.0", 0, **answers)]))["devices"]
    return device


def test_a_pynvml_that_answers_with_bytes():
    device = read(
        Name=b"Tesla T4", UUID=b"GPU-1", PciInfo=SimpleNamespace(busId=b"00000000:23:00.0")
    )
    assert (device["name"], device["uuid"], device["pci_address"]) == (
        "Tesla T4",
        "GPU-1",
        "0000:23:00.0",
    )


def fabric(state, status=0, cluster=b"", clique=7):
    """An answer of nvmlDeviceGetGpuFabricInfoV, which fills the caller's structure."""

    def fill(reference):
        info = reference._obj
        info.state, info.status, info.cliqueId = state, status, clique
        info.clusterUuid[: len(cluster)] = list(cluster)

    return fill


def test_limits_clocks_and_link():
    device = read(
        BAR1MemoryInfo=SimpleNamespace(bar1Total=65536 * MIB, bar1Used=3 * MIB),
        ComputeMode=3,
        PersistenceMode=1,
        DisplayMode=0,
        DisplayActive=1,
        GspFirmwareMode=[1, 1],
        PowerManagementLimit=250_000,
        PowerManagementDefaultLimit=400_000,
        PowerManagementLimitConstraints=[100_000, 400_000],
        ClockInfo=lambda kind: {1: 210, 2: 1215}[kind],
        MaxClockInfo=lambda kind: {1: 1410, 2: 1215}[kind],
        CurrPcieLinkGeneration=1,
        MaxPcieLinkGeneration=4,
        CurrPcieLinkWidth=16,
        MaxPcieLinkWidth=16,
    )
    assert device["bar1_mib"] == {"total": 65536, "used": 3}
    assert device["compute_mode"] == "exclusive_process"
    assert (device["persistence"], device["display"], device["gsp"]) == (True, True, True)
    assert device["power"] == {"limit_w": 250, "default_w": 400, "min_w": 100, "max_w": 400}
    assert device["clocks"] == {
        "sm_mhz": 210,
        "memory_mhz": 1215,
        "sm_max_mhz": 1410,
        "memory_max_mhz": 1215,
    }
    assert device["pcie"] == {"generation": 1, "generation_max": 4, "width": 16, "width_max": 16}
    assert device["errors"] == {}


@pytest.mark.parametrize(
    ("active", "display"), [(0, False), (1, True), (FakeError(26, "Deprecated"), None)]
)
def test_a_headless_a100_has_no_display_whatever_its_mode_says(active, display):
    device = read(DisplayMode=1, DisplayActive=active)
    assert device["display"] is display
    assert device["errors"] == {}


def test_errors_of_the_memory():
    device = read(
        EccMode=[1, 0],
        TotalEccErrors=lambda kind, _counter: {0: 12, 1: 1}[kind],
        RemappedRows=(2, 1, 1, 0),
    )
    assert device["ecc"] == {"current": True, "pending": False, "corrected": 12, "uncorrected": 1}
    assert device["remapped_rows"] == {
        "corrected": 2,
        "uncorrected": 1,
        "pending": True,
        "failed": False,
    }


def test_ecc_that_is_off_has_no_counts_of_zero():
    device = read(EccMode=[0, 0])
    assert device["ecc"] == {
        "current": False,
        "pending": False,
        "corrected": None,
        "uncorrected": None,
    }


@pytest.mark.parametrize("answer", [NOT_SUPPORTED, FUNCTION_NOT_FOUND])
def test_what_this_gpu_or_driver_has_not_is_null_without_a_complaint(answer):
    device = read(EccMode=answer, PowerManagementLimit=answer, GpuFabricInfoV=FUNCTION_NOT_FOUND)
    assert device["ecc"] is device["power"] is device["fabric"] is None
    assert (device["error"], device["errors"]) == (None, {})


def test_what_only_root_is_told_says_so_and_is_no_sickness():
    device = read(EccMode=NO_PERMISSION, UUID=NO_PERMISSION)
    assert device["errors"] == {
        "ecc": "Insufficient Permissions: NVML tells this to root only",
        "uuid": "Insufficient Permissions: NVML tells this to root only",
    }
    assert device["error"] is None


def test_a_detail_that_fails_is_a_reason_and_no_sick_gpu():
    device = read(RemappedRows=UNKNOWN_ERROR)
    assert device["remapped_rows"] is None
    assert device["errors"]["remapped_rows"].startswith("Unknown Error: ")
    assert device["error"] is None


def test_a_gpu_that_is_lost_while_it_is_read():
    device = read(PersistenceMode=GPU_IS_LOST)
    assert device["error"] == "GPU is lost"
    assert "fallen off the bus" in device["errors"]["persistence"]


def test_tp_009_no_numa_node_of_its_own_is_the_rule_for_a_pcie_card():
    device = read(NumaNodeId=NOT_SUPPORTED)
    assert device["memory_node"] is None
    assert "memory_node" not in device["errors"]
    assert read(NumaNodeId=2)["memory_node"] == 2


def test_a_fabric_that_is_complete():
    device = read(GpuFabricInfoV=fabric(3, cluster=bytes(range(16))))
    assert device["fabric"] == {
        "state": "completed",
        "status": "Success",
        "cluster_uuid": "00010203-0405-0607-0809-0a0b0c0d0e0f",
        "clique_id": 7,
    }


def test_dr_010_a_fabric_that_never_gets_ready():
    device = read(GpuFabricInfoV=fabric(2))
    assert device["fabric"] == {
        "state": "in_progress",
        "status": None,
        "cluster_uuid": None,
        "clique_id": None,
    }


def test_a_gpu_without_fabric():
    assert read(GpuFabricInfoV=NOT_SUPPORTED)["fabric"]["state"] == "not_supported"


def test_processes_of_both_lists_once_each():
    device = read(
        ComputeRunningProcesses_v3=[
            SimpleNamespace(pid=10, usedGpuMemory=2048 * MIB),
            SimpleNamespace(pid=11, usedGpuMemory=None),
        ],
        GraphicsRunningProcesses_v2=[SimpleNamespace(pid=10, usedGpuMemory=2048 * MIB)],
    )
    assert device["processes"] == [{"pid": 10, "used_mib": 2048}, {"pid": 11, "used_mib": None}]


def test_an_old_library_under_a_new_pynvml_is_a_function_not_found():
    class NVMLLibraryMismatchError(Exception):
        """pynvml raises it for an unversioned call; it is no NVMLError."""

    def refuse(*_arguments):
        raise NVMLLibraryMismatchError("Unversioned function called")

    assert read(BAR1MemoryInfo=refuse)["bar1_mib"] is None
    with pytest.raises(ZeroDivisionError):
        read(BAR1MemoryInfo=lambda: 1 // 0)


def test_an_answer_of_another_form_spoils_one_field_only():
    device = read(GspFirmwareMode=1, ComputeMode=0)
    assert device["gsp"] is None
    assert "unknown form" in device["errors"]["gsp"]
    assert device["compute_mode"] == "default"


def mig_device(name, gpu_slices, compute_slices, memory_mib, instance):
    return {
        "UUID": f"MIG-{instance}",
        "Name": name,
        "GpuInstanceId": instance,
        "ComputeInstanceId": 0,
        "Attributes_v2": SimpleNamespace(
            gpuInstanceSliceCount=gpu_slices,
            computeInstanceSliceCount=compute_slices,
            memorySizeMB=memory_mib,
        ),
    }


class MigNvml(FakeNvml):
    """MIG devices by their number; GPU instance N begins at memory slice N."""

    def nvmlGpuInstanceGetInfo(self, instance):  # noqa: N802
        return SimpleNamespace(placement=SimpleNamespace(start=instance, size=4))


def with_mig(found, mode=(1, 1), **answers):
    def by_index(index):
        if index not in found:
            raise FakeError(6, "Not Found")
        return found[index]

    gpu = a100(
        "0000:23:00.0",
        0,
        MigMode=list(mode),
        MaxMigDeviceCount=7,
        MigDeviceHandleByIndex=by_index,
        **{"GpuInstanceById": lambda instance: instance, **answers},
    )
    (device,) = nvml.read_all(MigNvml([gpu]))["devices"]
    return device


def test_mig_devices_with_profile_and_placement():
    found = {
        0: mig_device("NVIDIA A100-SXM4-40GB MIG 3g.20gb", 3, 3, 19968, 0),
        2: mig_device("NVIDIA A100-SXM4-40GB", 3, 1, 19968, 4),
    }
    assert with_mig(found)["mig_devices"] == [
        {
            "index": 0,
            "uuid": "MIG-0",
            "profile": "3g.20gb",
            "gpu_instance": 0,
            "compute_instance": 0,
            "start": 0,
            "size": 4,
            "memory_mib": 19968,
        },
        {
            "index": 2,
            "uuid": "MIG-4",
            "profile": "1c.3g.20gb",
            "gpu_instance": 4,
            "compute_instance": 0,
            "start": 4,
            "size": 4,
            "memory_mib": 19968,
        },
    ]


def test_placements_that_only_root_is_told_are_unknown():
    found = {0: mig_device("NVIDIA A100-SXM4-40GB MIG 3g.20gb", 3, 3, 19968, 0)}
    (device,) = with_mig(found, GpuInstanceById=NO_PERMISSION)["mig_devices"]
    assert (device["profile"], device["start"], device["size"]) == ("3g.20gb", None, None)


def test_mg_001_mode_on_and_no_device():
    device = with_mig({})
    assert device["mig"] == {"supported": True, "current": True, "pending": True}
    assert device["mig_devices"] == []


def test_mg_002_a_change_that_is_pending():
    device = with_mig({}, mode=(0, 1))
    assert device["mig"] == {"supported": True, "current": False, "pending": True}
    assert device["mig_devices"] == []


@pytest.mark.parametrize(
    ("slices", "memory_mib", "total_mib", "name"),
    [
        (1, 4864, 40960, "1g.5gb"),
        (2, 9856, 40960, "2g.10gb"),
        (3, 20096, 40960, "3g.20gb"),
        (7, 40448, 40960, "7g.40gb"),
        (1, 9728, 81920, "1g.10gb"),
        (7, 81152, 81559, "7g.80gb"),
        (1, 5952, 24576, "1g.6gb"),
        (1, 17920, 146432, "1g.18gb"),
        (1, 36096, 146432, "1g.36gb"),
    ],
)
def test_a_profile_name_from_its_sizes(slices, memory_mib, total_mib, name):
    assert nvml_mig.compose(slices, slices, memory_mib, total_mib * MIB) == name


def pair(**answers):
    """Two GPUs; the first one answers for the pair."""
    return nvml.read_all(
        FakeNvml([a100("0000:23:00.0", 0, **answers), a100("0000:43:00.0", 1, **answers)])
    )


@pytest.mark.parametrize(
    ("code", "word"),
    [(0, "INTERNAL"), (10, "PIX"), (20, "PXB"), (30, "PHB"), (40, "NODE"), (50, "SYS")],
)
def test_the_common_ancestor_of_a_pair(code, word):
    report = pair(TopologyCommonAncestor=lambda _other: code)
    assert report["levels"] == [["X", word], [word, "X"]]


@pytest.mark.parametrize(
    ("status", "word"), [(0, "OK"), (1, "CNS"), (2, "GNS"), (3, "TNS"), (4, "DR"), (5, "NS")]
)
def test_tp_003_whether_a_pair_may_talk_directly(status, word):
    report = pair(P2PStatus=lambda _other, _capability: status)
    assert report["p2p"] == [["X", word], [word, "X"]]


def test_pairs_nvml_says_nothing_of():
    report = pair(TopologyCommonAncestor=NOT_SUPPORTED, P2PStatus=NOT_SUPPORTED)
    assert report["levels"] is None
    assert report["p2p"] is None


def test_a_lost_gpu_leaves_the_other_pairs():
    answers = {"TopologyCommonAncestor": lambda _other: 50}
    gpus = [a100(f"0000:{bus}:00.0", 0, **answers) for bus in (23, 43)]
    report = nvml.read_all(FakeNvml([gpus[0], GPU_IS_LOST, gpus[1]]))
    assert report["levels"] == [["X", None, "SYS"], [None, "X", None], ["SYS", None, "X"]]


def test_advice_never_replaces_the_words_of_nvml():
    assert nvml_library.RefusedError(15, "GPU is lost").reason.startswith("GPU is lost: ")
    assert nvml_library.RefusedError(24, "Something new").reason == "Something new"
