# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""NCCL's topology files: the shipped ones, and what a dump has that they leave out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.steadygpu.host.plugins.module_utils.topology import nccl_xml
from ansible_collections.steadygpu.host.plugins.module_utils.topology.model import (
    Machine,
    Node,
    TopologyError,
)
from ansible_collections.steadygpu.host.plugins.module_utils.topology.nccl_machine import machine
from ansible_collections.steadygpu.host.plugins.module_utils.topology.nccl_xml import (
    Cpu,
    Gpu,
    NcclTree,
    Net,
    Nic,
    NvLink,
    Pci,
)
from ansible_collections.steadygpu.host.tests.unit.module_utils.topology.recorded import DATA

FILES = sorted((DATA / "nccl_xml").glob("*-topo.xml"))
SHIPPED = [path.name for path in FILES]

PCIE_ONLY = "the file leaves NVLinks to NCCL, which asks the driver: the levels are those of PCIe"

DUMP = """<system version="1">
  <cpu host_hash="0x16fe256e956b115c" numaid="0"
       affinity="00ffffff" arch="x86_64" vendor="GenuineIntel"
       familyid="6" modelid="207">
    <pci busid="0000:16:00.0" class="0x060400" vendor="0x1000"
         device="0xc030" link_speed="32.0 GT/s PCIe" link_width="16">
      <pci busid="0000:18:00.0" class="0x030200" vendor="0x10de"
           device="0x2335" link_width="16">
        <gpu dev="0" sm="90" rank="0" gdr="1">
          <nvlink target="0000:07:00.0" count="9" tclass="0x068000"/>
          <nvlink target="0000:06:00.0" count="9" tclass="0x068000"/>
        </gpu>
      </pci>
      <pci busid="0000:19:00.0" class="0x020000" vendor="0x15b3"
           device="0x1021">
        <nic>
          <net name="mlx5_0" dev="0" speed="400000" port="1"
               latency="0.000000" guid="0xa8" maxconn="131072" gdr="1" net="1"/>
        </nic>
      </pci>
    </pci>
    <pci busid="0000:27:00.0" class="0x060400">
      <pci busid="0000:28:00.0" class="0x060400">
        <pci busid="0000:29:00.0" class="0x030200">
          <gpu dev="1" sm="90" rank="1" gdr="1">
            <nvlink target="0000:07:00.0" count="9" tclass="0x068000"/>
            <c2c bw="44712" count="5"/>
          </gpu>
        </pci>
      </pci>
    </pci>
  </cpu>
</system>
"""


def read(name: str) -> NcclTree:
    return nccl_xml.parse((DATA / "nccl_xml" / name).read_text(encoding="utf-8"))


def classes(picture: Machine) -> list[str]:
    """Each row as one text, to be read in a test."""
    return [" ".join(word or "-" for word in row) for row in picture.levels]


def test_all_shipped_files_are_here() -> None:
    assert len(FILES) == 7


@pytest.mark.parametrize("name", SHIPPED)
def test_a_rendered_file_is_the_same_tree(name: str) -> None:
    tree = read(name)
    text = nccl_xml.render(tree)
    assert nccl_xml.parse(text) == tree
    assert nccl_xml.render(nccl_xml.parse(text)) == text


def test_p4d_has_four_switches_of_two_gpus_and_a_nic() -> None:
    found = machine(read("aws-p4d-24xl-topo.xml"))
    first = "X PIX PHB PHB SYS SYS SYS SYS"
    assert classes(found)[0] == first
    assert classes(found)[7] == " ".join(reversed(first.split()))
    assert found.nic_levels[3] == ("SYS", "SYS", "SYS", "SYS", "PHB", "PHB", "PIX", "PIX")
    assert found.nodes == (Node(0, "0-23,48-71"), Node(1, "24-47,72-95"))
    assert found.gpus[0].pci_path == ("ffff:ff:01.0", "0000:10:1c.0")
    assert found.remarks == (PCIE_ONLY,)


def test_ndv4_counts_gpus_as_the_driver_does_and_not_as_the_file() -> None:
    """The file lists the GPUs 3, 4, 1, 2, d, e, b, c; CUDA counts them by address."""
    found = machine(read("azure-ndv4-topo.xml"))
    assert [gpu.pci_address[:4] for gpu in found.gpus if gpu.pci_address] == [
        *("0001", "0002", "0003", "0004", "000b", "000c", "000d", "000e")
    ]
    assert [gpu.numa_nodes for gpu in found.gpus] == [
        (1,),
        (1,),
        (0,),
        (0,),
        (3,),
        (3,),
        (2,),
        (2,),
    ]
    assert classes(found)[0] == "X PIX SYS SYS SYS SYS SYS SYS"
    assert len(found.nics) == 8


def test_ndv5_pairs_each_gpu_with_its_nic() -> None:
    found = machine(read("azure-ndv5-topo.xml"))
    for i, row in enumerate(found.nic_levels):
        assert [j for j, word in enumerate(row) if word == "PIX"] == [i]
    assert classes(found)[0] == "X PHB PHB PHB SYS SYS SYS SYS"


def test_ndv2_has_eight_gpus_at_two_cpus() -> None:
    found = machine(read("azure-ndv2-topo.xml"))
    assert classes(found)[4] == "SYS SYS SYS SYS X PHB PHB PHB"
    assert found.nic_levels == (("PHB",) * 4 + ("SYS",) * 4,)


def test_ncv4_links_each_gpu_to_itself_which_joins_nothing() -> None:
    found = machine(read("azure-ncv4-topo.xml"))
    assert classes(found) == ["X SYS SYS SYS", "SYS X SYS SYS", "SYS SYS X SYS", "SYS SYS SYS X"]
    assert found.remarks == ("the file has NVLinks from a GPU to itself; they join nothing",)


def test_g5_has_no_classes_until_the_host_gives_them() -> None:
    tree = read("aws-g5.48xl-topo.xml")
    (text,) = machine(tree).remarks
    assert text.startswith("9 PCI functions have no class in the file")
    host = {f"0000:00:{bus:02x}.0": "0x030200" for bus in range(0x16, 0x1E)}
    found = machine(tree, classes={**host, "0000:00:15.0": "0x020000"})
    assert classes(found)[0] == "X PHB PHB PHB SYS SYS SYS SYS"
    assert found.nic_levels == (("SYS",) * 4 + ("PHB",) * 4,)
    assert found.remarks == (PCIE_ONLY,)


def test_a_dump_counts_links_to_switches_by_their_class() -> None:
    found = machine(nccl_xml.parse(DUMP))
    assert found.levels == (("X", "NV9"), ("NV9", "X"))
    assert found.nvswitches == 2
    assert found.nics[0].rdma == ("mlx5_0",)
    assert found.nic_levels == (("PIX", "PHB"),)
    assert found.remarks == ()


def test_a_dump_is_read_and_written_whole() -> None:
    tree = nccl_xml.parse(DUMP)
    assert nccl_xml.render(tree).split() == DUMP.split()
    cpu = tree.cpus[0]
    assert (cpu.numaid, cpu.familyid, cpu.host_hash) == (0, 6, "0x16fe256e956b115c")
    assert cpu.functions[0].functions[0].gpus[0].nvlinks[0] == NvLink("0000:07:00.0", 9, "0x068000")
    assert cpu.functions[0].functions[1].nics[0].nets[0].extra == (("net", "1"),)


def test_a_gpu_of_one_dump_that_lost_its_links_is_told() -> None:
    """A GB300 rack whose dump had no NVLink for one of eight GPUs made every collective slow."""
    gpus = [
        Pci(
            f"0009:0{i}:00.0",
            "0x030200",
            children=(
                Gpu(dev=i, nvlinks=() if i == 1 else (NvLink("fffffff:ff:ff.0", 18, "0x068000"),)),
            ),
        )
        for i in range(4)
    ]
    found = machine(NcclTree(1, cpus=(Cpu(numaid=0, children=tuple(gpus)),)))
    assert found.levels[0] == ("X", "PHB", "NV18", "NV18")
    assert found.nvswitches == 0
    assert "GPU1 has no NVLink where the others have 18" in " ".join(found.remarks)


def test_two_hosts_of_one_dump_are_joined_by_nvlink_only() -> None:
    def host(name: str) -> Cpu:
        gpus = tuple(Pci(f"0000:0{i}:00.0", "0x030200") for i in range(2))
        return Cpu(host_hash=name, numaid=0, children=gpus)

    found = machine(NcclTree(1, cpus=(host("0x1"), host("0x2"))))
    assert classes(found)[0] in ("X - PHB -", "X PHB - -")
    assert sum(row.count(None) for row in found.levels) == 8


def test_a_graph_file_is_refused_in_a_clear_sentence() -> None:
    with pytest.raises(
        TopologyError, match=r"this is a graph file .*NCCL_GRAPH_FILE.*NCCL_TOPO_DUMP"
    ):
        read("azure-ncv4-graph.xml")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no <system> in the text"),
        (
            '<system version="1">\n<cpu numaid="0">\n<pci/>\n</cpu></system>',
            "line 3: <pci> has no busid",
        ),
        ('<system version="1">\n<cpu numaid="zero"/></system>', "line 2: numaid='zero' of <cpu>"),
        ('<system version="1">\n<cpu numaid="0">', "line 2: no element found"),
        (
            '<system><cpu><pci busid="1"><gpu>\n<nvlink count="2"/></gpu></pci></cpu></system>',
            "line 2: <nvlink> has no target",
        ),
    ],
    ids=["empty", "busid", "number", "cut-off", "target"],
)
def test_what_is_no_topology_file_is_refused(text: str, said: str) -> None:
    with pytest.raises(TopologyError) as raised:
        nccl_xml.parse(text)
    assert said in str(raised.value)


def test_a_number_is_read_from_its_beginning_as_nccl_does() -> None:
    text = '<system><cpu numaid="-1"><nic><net speed="25000.0" port="0x10"/></nic></cpu></system>'
    (cpu,) = nccl_xml.parse(text).cpus
    (nic,) = cpu.children
    assert isinstance(nic, nccl_xml.Nic)
    assert (cpu.numaid, nic.nets[0].speed, nic.nets[0].port) == (-1, 25000, 16)


def test_tags_that_are_not_known_are_named() -> None:
    tree = nccl_xml.parse('<system version="2"><cpu numaid="0"/><fabric/><fabric/></system>')
    assert tree.unread == ("fabric",)
    assert machine(tree).remarks == ("tags that were not read: fabric",)


def test_a_value_that_nccl_could_not_read_is_not_written() -> None:
    with pytest.raises(TopologyError, match="NCCL cannot read the attribute value"):
        nccl_xml.render(NcclTree(1, cpus=(Cpu(arch='x"86'),)))


words = st.text(alphabet="0123456789abcdef:.x_ -", max_size=12)
numbers = st.none() | st.integers(-1, 1 << 40)
links = st.builds(NvLink, words.filter(bool), numbers, st.none() | words)
nics = st.builds(
    Nic, nets=st.lists(st.builds(Net, st.none() | words, numbers), max_size=2).map(tuple)
)
gpus = st.builds(Gpu, numbers, numbers, nvlinks=st.lists(links, max_size=3).map(tuple))
functions = st.recursive(
    st.builds(Pci, words.filter(bool), children=st.lists(gpus | nics, max_size=2).map(tuple)),
    lambda below: st.builds(
        Pci, words.filter(bool), st.none() | words, children=st.lists(below, max_size=3).map(tuple)
    ),
    max_leaves=6,
)
cpus = st.builds(Cpu, numaid=numbers, children=st.lists(functions | nics, max_size=3).map(tuple))


@given(st.builds(NcclTree, numbers, cpus=st.lists(cpus, max_size=3).map(tuple)))
def test_every_tree_is_read_back_as_it_was_written(tree: NcclTree) -> None:
    assert nccl_xml.parse(nccl_xml.render(tree)) == tree
    found = machine(tree)
    assert all(len(row) == len(found.gpus) for row in found.levels)


@given(
    name=st.sampled_from(SHIPPED), at=st.floats(0, 1), to=st.floats(0, 1), new=st.text(max_size=3)
)
def test_a_damaged_file_is_a_tree_or_an_error(name: str, at: float, to: float, new: str) -> None:
    text = (DATA / "nccl_xml" / name).read_text(encoding="utf-8")
    first, last = sorted((int(len(text) * at), int(len(text) * to)))
    try:
        tree = nccl_xml.parse(text[:first] + new + text[last:])
    except TopologyError:
        return
    machine(tree)
