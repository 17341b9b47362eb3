# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whatever a file of /proc or /sys holds, the facts are facts: JSON, and unknown is null."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.steadygpu.host.plugins.module_utils.hardware import (
    inventory,
    nvml_reader,
)
from ansible_collections.steadygpu.host.plugins.module_utils.hardware.model import as_facts
from ansible_collections.steadygpu.host.tests.unit.module_utils.hardware.recorded_host import Host

GPU = "0000:23:00.0"
CONTENTS = st.sampled_from(
    [
        b"",
        b"\n",
        b"\x00",
        b"\xff\xfe\x00",
        "²".encode(),  # isdigit() says yes, int() no
        b"-",
        b"-1",
        b"9" * 5000,  # more digits than int() takes
        b"0x",
        b"N/A",
        b"../..",
        b"a,b;c\n",
        b"Unknown",
        b"6,1,\xc2\xb2,-;NVRM: x\n",
        b"6,1,5,-;NVRM: Xid (PCI:zz:23:00): 79, x\n",
        b"NVRM version: NVIDIA 1.2.3 x",
        b"Device Minor: \xc2\xb2\nGPU UUID: \x00",
    ]
)
NAMES = st.sampled_from([b"\xff\xfe", "node²".encode(), b"0000:zz:00.0", b"9" * 200])


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A tree in which every reader finds what it looks for."""
    host = Host(tmp_path_factory.mktemp("whole"))
    host.dgx_a100()
    nic = host.pci(["0000:20:00.0", "0000:21:00.0", "0000:2f:00.0"], "15b3", "020700")
    for place in ("infiniband/mlx5_0", "infiniband_verbs/uverbs0"):
        host.link(f"sys/class/{place}/device", f"../../../../{host.function(nic)}")
    for name in ("current_link_speed", "max_link_speed"):
        host.write(f"{host.function(GPU)}/{name}", "16.0 GT/s PCIe\n")
    for name in ("current_link_width", "max_link_width"):
        host.write(f"{host.function(GPU)}/{name}", "16\n")
    host.write("sys/kernel/iommu_groups/3/type", "DMA\n")
    host.link(f"{host.function(GPU)}/iommu_group", "../3")
    host.write(f"{host.function('0000:20:00.0')}/config", "x" * 300)
    for node in (0, 1):
        directory = f"sys/devices/system/node/node{node}"
        host.write(f"{directory}/cpulist", "0-3\n")
        host.write(f"{directory}/meminfo", f"Node {node} MemTotal:   1024 kB\n")
        for name in ("nr_hugepages", "free_hugepages"):
            host.write(f"{directory}/hugepages/hugepages-2048kB/{name}", "4\n")
    host.write("proc/modules", "nvidia 1 2 - Live\n")
    host.write("proc/devices", "Character devices:\n195 nvidia\n234 nvidia-uvm\n")
    host.write("proc/12/comm", "python\n")
    host.write("proc/12/cgroup", f"0::/system.slice/docker-{'a' * 64}.scope\n")
    host.link("proc/12/ns/mnt", "mnt:[4026531841]")
    host.link("proc/12/fd/3", "/dev/nvidia0")
    host.write("proc/driver/nvidia-nvswitch/devices/0000:c1:00.0", "")
    host.write("run/nvidia-fabricmanager/nv-fabricmanager.pid", "12\n")
    host.write("run/nvidia-persistenced/nvidia-persistenced.pid", "12\n")
    host.write("sys/fs/cgroup/system.slice/nvidia-persistenced.service/cgroup.procs", "12\n")
    host.write(
        "sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c", "abcd\x01"
    )
    host.write("dev/kmsg", "6,1,5,-;NVRM: Xid (PCI:0000:23:00): 79, GPU has fallen off the bus.\n")
    host.write("usr/lib64/libnvidia-ml.so.1", "")
    return host.root


def read(root: str):
    answer = nvml_reader.Answer(reason="no pynvml")
    return as_facts(inventory.collect(root, ask_nvml=lambda _deadline_s: answer))


def places(root: str) -> list[str]:
    """Everything below ``root``, the root not."""
    return sorted(
        os.path.join(directory, name)
        for directory, names, files in os.walk(root)
        for name in [*names, *files]
    )


def remove(path: str) -> None:
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    else:
        os.unlink(path)


def mangle(root: str, data: st.DataObject) -> None:
    """One thing below ``root`` becomes something it should not be."""
    place = data.draw(st.sampled_from(places(root)))
    kind = data.draw(st.sampled_from(["content", "gone", "file", "directory", "loop", "more"]))
    if kind == "more":
        directory = place if os.path.isdir(place) else os.path.dirname(place)
        Path(directory, os.fsdecode(data.draw(NAMES))).write_bytes(data.draw(CONTENTS))
        return
    if kind == "content" and os.path.isfile(place):
        Path(place).write_bytes(data.draw(CONTENTS))
        return
    remove(place)
    if kind == "file":
        Path(place).write_bytes(data.draw(CONTENTS))
    elif kind == "directory":
        os.mkdir(place)
    elif kind == "loop":
        os.symlink(os.path.basename(place), place)


def test_the_whole_tree_is_read(whole: str) -> None:
    """Otherwise the next test would mangle what nobody reads."""
    facts = read(whole)
    assert facts["driver"]["version"] == "550.163.01"
    assert facts["devices"][0]["pcie"]["width"] == 16
    assert [one["xid"] for one in facts["devices"][0]["xids"]] == [79]
    assert facts["nics"][0]["uverbs"] == ["/dev/infiniband/uverbs0"]
    assert facts["iommu"]["groups"] == {GPU: 3}
    assert facts["numa_nodes"][1]["hugepages"] == [{"size_kib": 2048, "total": 4, "free": 4}]
    assert (facts["nvswitches"], facts["secure_boot"]) == (1, "enabled")
    assert facts["persistence_daemon"]["status"] == "running"
    assert facts["modules"]["nvidia"]


@settings(max_examples=30)
@given(data=st.data())
def test_a_mangled_tree_gives_facts_all_the_same(whole: str, data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        root = shutil.copytree(whole, os.path.join(scratch, "root"), symlinks=True)
        for _again in range(data.draw(st.integers(1, 3))):
            mangle(root, data)
        facts = read(root)
    assert json.loads(json.dumps(facts)) == facts


@pytest.mark.parametrize("content", ["²", "-", "9" * 5000, "", "\x00"])
def test_a_number_that_is_none_is_null(whole: str, tmp_path: Path, content: str) -> None:
    root = shutil.copytree(whole, tmp_path / "root", symlinks=True)
    slot = Path(root, "sys/bus/pci/devices", GPU)
    for path in (slot / "numa_node", slot / "current_link_width"):
        path.write_text(content)
    node = Path(root, "sys/devices/system/node/node0")
    for path in (node / "meminfo", node / "hugepages/hugepages-2048kB/free_hugepages"):
        path.write_text(content)
    facts = read(str(root))
    assert (facts["devices"][0]["numa_node"], facts["devices"][0]["pcie"]["width"]) == (None, None)
    assert facts["numa_nodes"][0]["memory_mib"] is None
    assert facts["numa_nodes"][0]["hugepages"][0]["free"] is None
