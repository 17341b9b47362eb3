# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""/proc/driver/nvidia and /proc/modules."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.steadygpu.host.plugins.module_utils.hardware import procfs

PROPRIETARY_470 = (
    "NVRM version: NVIDIA UNIX x86_64 Kernel Module  470.256.02  Thu May  2 14:37:44 UTC 2024\n"
    "GCC version:  gcc version 10.2.1 20210110 (Debian 10.2.1-6)\n"
)


def test_open_modules_name_themselves(host):
    host.driver()
    assert procfs.read_version(host.root) == ("550.163.01", "open")


def test_proprietary_modules_of_an_older_release(host):
    host.driver(PROPRIETARY_470)
    assert procfs.read_version(host.root) == ("470.256.02", "proprietary")


def test_no_module_no_version(host):
    assert procfs.read_version(host.root) == (None, None)
    assert procfs.read_gpus(host.root) == []


def test_gpus_come_in_address_order(host):
    host.proc_gpu("0000:43:00.0", 1, "GPU-b")
    host.proc_gpu("0000:23:00.0", 0, "GPU-a")
    assert [(gpu.pci_address, gpu.minor, gpu.uuid) for gpu in procfs.read_gpus(host.root)] == [
        ("0000:23:00.0", 0, "GPU-a"),
        ("0000:43:00.0", 1, "GPU-b"),
    ]


def test_an_uninitialised_gpu_has_no_uuid_yet(host):
    host.proc_gpu("0000:23:00.0", 0, "GPU-????????-????-????-????-????????????")
    (gpu,) = procfs.read_gpus(host.root)
    assert gpu.uuid is None
    assert gpu.name == "NVIDIA A100-SXM4-40GB"


def test_modules_are_told_apart_by_their_whole_name(host):
    host.write("proc/modules", "nvidia_uvm 4952064 0 - Live 0x0\nnvidiafb 1 0 - Live 0x0\n")
    modules = procfs.read_modules(host.root)
    assert modules["nvidia_uvm"] is True
    assert modules["nvidia"] is False


@given(st.text())
def test_any_text_is_read_without_an_exception(text):
    procfs.parse_version(text)
    assert procfs.parse_information("0000:23:00.0", text).pci_address == "0000:23:00.0"
