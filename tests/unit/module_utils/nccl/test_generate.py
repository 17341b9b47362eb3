# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A topology file made from the host's own tree, and the trees that are not one."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.steadygpu.host.plugins.module_utils.nccl import (
    generate,
    host,
    judge,
    syntax,
)
from ansible_collections.steadygpu.host.plugins.module_utils.topology import (
    levels,
    nccl_machine,
    nccl_xml,
)
from ansible_collections.steadygpu.host.plugins.module_utils.topology.model import TopologyError
from ansible_collections.steadygpu.host.tests.unit.module_utils.nccl.fake_host import (
    TOPOLOGIES,
    FakeHost,
    recorded,
)


@pytest.fixture
def fake(tmp_path: Path) -> FakeHost:
    return FakeHost(tmp_path)


def test_a_machine_with_switches_is_written_down(fake: FakeHost) -> None:
    fake.dgx()
    seen = host.read(fake.root, "x86_64")
    system = syntax.read(generate.generate(seen))
    verdict = judge.judge(system, seen)
    assert (verdict.errors, verdict.warnings) == ((), ())
    one, other = system.named("cpu")
    assert one.attributes == {
        "numaid": "0",
        "affinity": "0000000f",
        "arch": "x86_64",
        "vendor": "AuthenticAMD",
        "familyid": "23",
        "modelid": "49",
    }
    (switch,) = other.named("pci")
    # NCCL leaves root ports out, and takes a switch's ports for the switch.
    assert switch.attributes["busid"] == "0000:81:00.0"
    ends = switch.named("pci")
    assert [end.attributes["busid"] for end in ends] == [
        "0000:83:00.0",
        "0000:84:00.0",
        "0000:85:00.0",
    ]
    # The NIC could do 32 GT/s, the switch port above it 16.
    assert ends[2].attributes["link_speed"] == "16.0 GT/s PCIe"
    assert ends[2].attributes["class"] == "0x020700"


@pytest.mark.parametrize("name", TOPOLOGIES)
def test_a_hidden_tree_is_not_guessed(fake: FakeHost, name: str) -> None:
    fake.as_in(recorded(name))
    with pytest.raises(TopologyError, match=r"hidden and cannot be guessed.*as content"):
        generate.generate(host.read(fake.root))


def _flat(fake: FakeHost, nodes: int, virtual: bool) -> None:
    """GPUs and a NIC, each below a root port of its own."""
    fake.cpus(48, nodes=range(nodes), virtual=virtual)
    for place in range(5):
        nic = place == 4
        fake.add(
            [f"0000:{place}0:01.0", f"0000:{place}1:00.0"],
            "020700" if nic else "030200",
            vendor="15b3" if nic else "10de",
            numa_node=place % nodes,
            rdma=nic,
        )
        fake.add([f"0000:{place}0:01.0"], "060400", vendor="8086", numa_node=place % nodes)


def test_tp_004_a_flat_virtual_machine_is_not_guessed(fake: FakeHost) -> None:
    _flat(fake, nodes=1, virtual=True)
    with pytest.raises(TopologyError, match=r"the PCIe tree is flat: NODE between all"):
        generate.generate(host.read(fake.root))


def test_a_virtual_machine_that_shows_numa_still_hides_switches(fake: FakeHost) -> None:
    _flat(fake, nodes=2, virtual=True)
    with pytest.raises(TopologyError, match="the PCIe tree is flat: NODE and SYS"):
        generate.generate(host.read(fake.root))


def test_a_real_machine_without_switches_has_sockets_to_write_down(fake: FakeHost) -> None:
    _flat(fake, nodes=2, virtual=False)
    system = syntax.read(generate.generate(host.read(fake.root)))
    assert [len(list(cpu.below("pci"))) for cpu in system.named("cpu")] == [3, 2]


def test_a_device_of_no_numa_node_is_not_placed(fake: FakeHost) -> None:
    fake.dgx()
    (node,) = Path(fake.root).glob("sys/devices/**/0000:83:00.0/numa_node")
    node.write_text("-1\n")
    with pytest.raises(TopologyError, match=r"no NUMA node with CPUs for 0000:83:00\.0"):
        generate.generate(host.read(fake.root))


def test_a_host_without_gpus_has_nothing_to_write(fake: FakeHost) -> None:
    with pytest.raises(TopologyError, match="no NVIDIA GPU"):
        generate.generate(host.read(fake.root))


def test_a_bridge_that_sysfs_does_not_show_is_named(fake: FakeHost) -> None:
    fake.dgx()
    bridge = generate.walked(host.read(fake.root).gpus[0].path)[0]
    Path(fake.root, "sys/bus/pci/devices", bridge).unlink()
    with pytest.raises(TopologyError, match=f"no function {bridge}"):
        generate.generate(host.read(fake.root))


@pytest.mark.parametrize(
    ("mask", "numbers"),
    [
        ("3", (0, 1)),
        ("00000001,00000003", (0, 1, 32)),
        ("", None),
        ("0-3", None),
        ("000000001", None),
        ("0x3", None),
        ("-1", None),
        ("1,", None),
    ],
)
def test_a_mask_is_read_from_its_last_word(mask: str, numbers: tuple[int, ...] | None) -> None:
    assert host.mask_numbers(mask) == numbers


@st.composite
def _hosts(draw: st.DrawFn) -> host.Host:
    """A real machine: sockets with root ports, below some of them switches with devices."""
    functions: dict[str, host.Function] = {}
    nodes = draw(st.integers(1, 2))
    bus = 0
    for node in range(nodes):
        for below in draw(st.lists(st.integers(1, 3), min_size=1, max_size=3)):
            port = (f"{node:04x}:{bus:02x}:01.0",)
            chains = [(*port, f"{node:04x}:{bus + 1:02x}:00.0")]
            if below > 1:
                up = chains[0]
                chains = [
                    (
                        *up,
                        f"{node:04x}:{bus + 2:02x}:{n:02x}.0",
                        f"{node:04x}:{bus + 3 + n:02x}:00.0",
                    )
                    for n in range(below)
                ]
            kinds = [draw(st.sampled_from(["030200", "020700"])) for _chain in chains]
            for chain, kind in zip(chains, kinds):
                for depth in range(1, len(chain)):
                    functions[chain[depth - 1]] = _function(chain[:depth], "060400", node)
                functions[chain[-1]] = _function(chain, kind, node)
            bus += 8
    masks = {node: f"{0xF << 4 * node:08x}" for node in range(nodes)}
    return host.Host(dict(sorted(functions.items())), frozenset(range(8)), masks)


def _function(path: tuple[str, ...], pci_class: str, node: int) -> host.Function:
    vendor = {"03": "10de", "02": "15b3"}.get(pci_class[:2], "1000")
    return host.Function(
        path[-1],
        pci_class,
        vendor,
        "20b0",
        link_speed="16.0 GT/s PCIe",
        link_width=16,
        numa_node=node,
        path=path,
        rdma=vendor == "15b3",
    )


def _paths(tag: syntax.Tag, above: tuple[str, ...] = ()) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for child in tag.named("pci"):
        path = (*above, child.attributes["busid"])
        found[path[-1]] = path
        found.update(_paths(child, path))
    return found


@pytest.mark.parametrize(
    ("path", "nodes"),
    [
        (["gpu"], ["gpu"]),
        (["root", "gpu"], ["gpu"]),
        (["root", "up", "down", "gpu"], ["up", "gpu"]),
        (["root", "up", "down", "up2", "down2", "gpu"], ["up", "up2", "gpu"]),
        (["root", "bridge", "gpu"], ["root", "gpu"]),
    ],
)
def test_nccl_counts_switches_not_ports(path: list[str], nodes: list[str]) -> None:
    assert list(generate.walked(path)) == nodes


@given(_hosts())
def test_a_generated_file_says_what_sysfs_says(seen: host.Host) -> None:
    if not seen.gpus or generate.hidden(seen):
        with pytest.raises(TopologyError):
            generate.generate(seen)
        return
    system = syntax.read(generate.generate(seen))
    verdict = judge.judge(system, seen)
    assert (verdict.errors, verdict.warnings) == ((), ())
    for cpu in system.named("cpu"):
        for address, path in _paths(cpu).items():
            assert path == generate.walked(seen.functions[address].path)
            assert str(seen.functions[address].numa_node) == cpu.attributes["numaid"]
    written = {tag.attributes["busid"] for tag in system.below("pci")}
    assert {one.address for one in [*seen.gpus, *seen.nics]} <= written


@given(_hosts())
def test_nccl_sees_the_levels_that_sysfs_shows(seen: host.Host) -> None:
    if not seen.gpus or generate.hidden(seen):
        return
    drawn = nccl_machine.machine(nccl_xml.parse(generate.generate(seen)))
    gpus = [seen.functions[gpu.pci_address or ""] for gpu in drawn.gpus]
    for one, row in zip(gpus, drawn.levels):
        for other, level in zip(gpus, row):
            if one is not other:
                wanted = levels.pcie_level(one.path, other.path, one.numa_node, other.numa_node)
                # A file has no host bridges, so PHB and NODE are one to NCCL.
                assert (level or "").replace("NODE", "PHB") == wanted.replace("NODE", "PHB")
