# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""hwloc's files of real machines, XML and console text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.steadygpu.host.plugins.module_utils.topology import hwloc
from ansible_collections.steadygpu.host.plugins.module_utils.topology.model import (
    Node,
    TopologyError,
)
from ansible_collections.steadygpu.host.tests.unit.module_utils.topology.recorded import (
    DATA,
    by_name,
)

FILES = sorted((DATA / "hwloc_xml").iterdir())
IDS = [path.name for path in FILES]


def text_of(name: str) -> str:
    return (DATA / "hwloc_xml" / name).read_text(encoding="utf-8")


def test_all_four_files_are_here() -> None:
    assert len(FILES) == 4


def test_dgx_2_has_the_levels_that_nvidia_smi_recorded() -> None:
    """Six links of each GPU end at NVSwitches, which hwloc lists as PCI devices."""
    found = hwloc.parse(text_of("nvidiaDGX2.xml"))
    assert [list(row) for row in found.levels] == by_name("DGX-2 16xV100").matrix
    assert found.nvswitches == 12
    assert found.title == "NVIDIA DGX-2H"
    assert found.gpus[0].model == "Tesla V100-SXM3-32GB-H"
    assert found.gpus[0].uuid == "GPU-d3977428-7a30-086b-2e20-5c1eeed647c6"
    assert [gpu.numa_nodes for gpu in found.gpus] == [(0,)] * 8 + [(1,)] * 8
    assert found.nodes == (Node(0, "0-1", 772699), Node(1, "24-25", 774133))


def test_dgx_2_without_nvlink_shows_its_pcie_tree() -> None:
    """Two GPUs a switch, four a root port, two root ports' host bridges a socket."""
    text = text_of("nvidiaDGX2.xml").replace("NVLinkBandwidth", "Something")
    found = hwloc.parse(text)
    assert found.levels[0][:10] == ("X", "PIX", "PXB", "PXB", *["NODE"] * 4, "SYS", "SYS")


def test_power8_joins_p100s_in_pairs_of_two_first_generation_links() -> None:
    """40 GB/s between two P100 are two links of 20; to the CPUs go the others."""
    found = hwloc.parse(text_of("power8gpudistances.xml"))
    assert found.levels == (
        ("X", "NV2", "SYS", "SYS"),
        ("NV2", "X", "SYS", "SYS"),
        ("SYS", "SYS", "X", "NV2"),
        ("SYS", "SYS", "NV2", "X"),
    )
    assert found.gpus[2].pci_path == ("000a:00:00.0", "000a:01:00.0")
    assert found.gpus[0].memory_mib == 16280
    assert found.remarks == ()


def test_gpu_memory_is_no_numa_node_of_the_host() -> None:
    """Power9 in console text: six GPUs, whose ids the file hides, on nodes 0 and 8."""
    found = hwloc.parse(text_of("nvidiagpunumanodes.console"))
    assert [gpu.numa_nodes for gpu in found.gpus] == [(0,)] * 3 + [(8,)] * 3
    assert [(node.number, node.memory_mib) for node in found.nodes] == [(0, 126976), (8, 131072)]
    assert found.nodes[1].cpus == "88-103"
    assert found.levels[0] == ("X", "NODE", "NODE", "SYS", "SYS", "SYS")
    assert found.title == "PowerNV 8335-GTW"


def test_a_gpu_memory_node_in_xml_is_left_out() -> None:
    text = text_of("power8gpudistances.xml").replace(
        '<object type="Package"',
        '<object type="NUMANode" subtype="GPUMemory" os_index="255" cpuset="0x03000003" '
        'nodeset="0x1" local_memory="17179869184"/><object type="Package"',
        1,
    )
    assert "GPUMemory" in text
    assert [node.number for node in hwloc.parse(text).nodes] == [0, 1]


def test_a_file_without_pci_devices_says_so() -> None:
    found = hwloc.parse(text_of("nvidia-dgx-gb10.xml"))
    assert found.gpus == ()
    assert found.nodes == (Node(0, "0-19", 122566),)
    assert found.remarks == (
        "no GPU in it: hwloc lists PCI devices only when asked, lstopo --whole-io",
    )


VERSION_1 = """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE topology SYSTEM "hwloc.dtd">
<topology>
  <object type="Machine" os_index="0" cpuset="0x000000ff" nodeset="0x00000003">
    <object type="NUMANode" os_index="0" cpuset="0x0000000f" nodeset="0x00000001"
        local_memory="8589934592">
      <object type="Socket" os_index="0" cpuset="0x0000000f" nodeset="0x00000001"/>
      <object type="Bridge" os_index="0" bridge_type="0-1" depth="0" bridge_pci="0000:[00-0a]">
        <object type="Bridge" os_index="32" bridge_type="1-1" depth="1" bridge_pci="0000:[03-03]"
            pci_busid="0000:00:02.0" pci_type="0604 [8086:0e04] [0000:0000] 04">
          <object type="PCIDev" os_index="12288" pci_busid="0000:03:00.0"
              pci_type="0302 [10de:1094] [10de:0982] a1">
            <object type="OSDev" name="cuda0" osdev_type="5"/>
          </object>
        </object>
        <object type="Bridge" os_index="48" bridge_type="1-1" depth="1" bridge_pci="0000:[04-04]"
            pci_busid="0000:00:03.0" pci_type="0604 [8086:0e08] [0000:0000] 04">
          <object type="PCIDev" os_index="16384" pci_busid="0000:04:00.0"
              pci_type="0280 [15b3:1003] [15b3:0006] 00">
            <object type="OSDev" name="ib0" osdev_type="2"/>
            <object type="OSDev" name="mlx4_0" osdev_type="3"/>
          </object>
        </object>
        <object type="PCIDev" os_index="4096" pci_busid="0000:0a:00.0"
            pci_type="0300 [102b:0534] [0000:0000] 00"/>
      </object>
    </object>
    <object type="NUMANode" os_index="1" cpuset="0x000000f0" nodeset="0x00000002"
        local_memory="8589934592"/>
  </object>
</topology>
"""


def test_version_1_nests_everything_below_its_numa_node() -> None:
    found = hwloc.parse(VERSION_1)
    assert [gpu.pci_address for gpu in found.gpus] == ["0000:03:00.0"]
    assert found.gpus[0].numa_nodes == (0,)
    assert [(nic.name, nic.rdma) for nic in found.nics] == [("mlx4_0", ("mlx4_0",))]
    assert found.nic_levels == (("PHB",),)
    assert found.nodes == (Node(0, "0-3", 8192), Node(1, "4-7", 8192))
    assert found.source == "hwloc 1"


CONSOLE = """$ lstopo -v
Machine (P#0 total=64GiB DMIProductName="R740")
  Package L#0
    NUMANode L#0 (P#0 local=32GiB total=32GiB)
    Core L#0 (P#0)
      PU L#0 (P#0)
      PU L#1 (P#2)
    HostBridge L#0 (buses=0000:[16-1a])
      PCIBridge L#1 (busid=0000:16:00.0 id=8086:2030 class=0604(PCI_B) buses=0000:[17-1a])
        PCIBridge L#2 (busid=0000:17:00.0 id=10b5:8764 class=0604(PCI_B) buses=0000:[18-1a])
          PCIBridge L#3 (busid=0000:18:00.0 id=10b5:8764 class=0604(PCI_B) buses=0000:[19-19])
            PCI L#0 (busid=0000:19:00.0 id=10de:1db4 class=0302(3D) link=15.75GB/s PCISlot=4)
              CoProc(NVML) L#0 "nvml0" (Backend=NVML)
          PCIBridge L#4 (busid=0000:18:01.0 id=10b5:8764 class=0604(PCI_B) buses=0000:[1a-1a])
            PCI L#1 (busid=0000:1a:00.0 id=15b3:1017 class=0207(InfiniBand))
              Network L#1 "ib0"
              OpenFabrics L#2 "mlx5_0"
  Package L#1
    NUMANode L#1 (P#1 local=32GiB total=32GiB)
    NUMANode(GPUMemory) L#2 (P#255 local=16GiB total=16GiB)
    Core L#1 (P#0)
      PU L#2 (P#1)
      PU L#3 (P#3)
depth 0:           1 Machine (type #0)
"""


def test_console_text_of_a_switch_with_a_gpu_and_a_nic() -> None:
    found = hwloc.parse(CONSOLE)
    assert found.gpus[0].pci_path == (
        *("0000:16:00.0", "0000:17:00.0", "0000:18:00.0", "0000:19:00.0"),
    )
    assert found.nics[0].rdma == ("mlx5_0",)
    assert found.nic_levels == (("PIX",),)
    assert found.nodes == (Node(0, "0,2", 32768), Node(1, "1,3", 32768))
    assert found.title == "R740"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no line that begins with Machine"),
        ("<topology>\n</topology>", "line 1: <topology> has no <object>"),
        ("<topology><object type='PCIDev'/></topology>", "line 1: a PCIDev has no pci_busid"),
        ("Machine (P#0)\nPackage L#0\n", "line 2: Package stands beside the machine"),
        ("Machine (P#0)\n  PCI L#0 (something)\n", "line 2: a PCI device without busid"),
    ],
    ids=["empty", "no-object", "no-busid", "no-indent", "short-console"],
)
def test_what_hwloc_does_not_write_is_refused(text: str, said: str) -> None:
    with pytest.raises(TopologyError) as raised:
        hwloc.parse(text)
    assert said in str(raised.value)


def test_a_console_text_nested_without_end_is_refused() -> None:
    text = "".join(f"{' ' * i}Machine\n" for i in range(400))
    with pytest.raises(TopologyError, match="line 202: objects are nested more than 200 deep"):
        hwloc.parse(text)


def test_numbers_that_no_machine_has_are_unknown() -> None:
    text = VERSION_1.replace("8589934592", "9" * 5000)
    assert [node.memory_mib for node in hwloc.parse(text).nodes] == [None, None]


@given(name=st.sampled_from(IDS), at=st.floats(0, 1), to=st.floats(0, 1), new=st.text(max_size=3))
def test_a_damaged_file_is_a_machine_or_an_error(name: str, at: float, to: float, new: str) -> None:
    text = text_of(name)
    first, last = sorted((int(len(text) * at), int(len(text) * to)))
    try:
        found = hwloc.parse(text[:first] + new + text[last:])
    except TopologyError:
        return
    assert all(len(row) == len(found.gpus) for row in found.levels)
