# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The picture: nothing missing, nothing twice, nothing on top of something else."""

from __future__ import annotations

import itertools
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.steadygpu.host.plugins.module_utils.topology.model import (
    Gpu,
    Machine,
    Nic,
)
from ansible_collections.steadygpu.host.tests.unit.agent import machines
from steadygpu_agent import topo_read
from steadygpu_agent.draw import fabric, layout, svg, tree
from steadygpu_agent.draw.geometry import Box, fit, text_width

CHECKOUT = Path(__file__).resolve().parents[3]
DATA = Path(__file__).parent / "data"
TICKETS = sorted(path.name for path in DATA.glob("*.txt"))
SVG = "{http://www.w3.org/2000/svg}"


def ticket(name: str) -> Machine:
    return topo_read.parse((DATA / name).read_text()).machine


def every() -> list[Any]:
    known = [pytest.param(make(), id=name) for name, make in machines.EVERY.items()]
    return known + [pytest.param(ticket(name), id=name) for name in TICKETS]


def scene_of(machine: Machine) -> layout.Scene:
    return layout.arrange(machine, fabric.read(machine))


def words(picture: str) -> list[str]:
    root = ElementTree.fromstring(picture)
    return [element.text or "" for element in root.iter(f"{SVG}text")]


# --- machines of any shape


@st.composite
def random_machines(draw: st.DrawFn) -> Machine:
    """With PCI paths or without, any number of NUMA nodes, NVLinks of any kind."""
    size = draw(st.integers(0, 18))
    nics = draw(st.integers(0, 12))
    paths = draw(st.booleans())
    ports = st.lists(st.sampled_from(["0000:00:01.0", "0000:01:00.0", "0000:40:01.0"]), max_size=4)
    node = st.sampled_from([(), (0,), (1,), (5,), (0, 1)])

    def path(number: int) -> tuple[str, ...]:
        return (*draw(ports), f"0000:{number + 16:02x}:00.0") if paths else ()

    word = st.sampled_from(["PIX", "PXB", "PHB", "NODE", "SYS", "NV1", "NV2", "NV12", "NV18", None])
    levels: list[list[str | None]] = [["X"] * size for _row in range(size)]
    uniform = draw(st.sampled_from([None, "NV12", "PHB"]))
    for i, j in itertools.combinations(range(size), 2):
        levels[i][j] = levels[j][i] = uniform or draw(word)
    return Machine(
        source="hypothesis",
        gpus=tuple(
            Gpu(
                f"GPU{i}",
                model=draw(st.sampled_from([None, "NVIDIA A30", "NVIDIA H100 80GB HBM3"])),
                pci_path=path(i),
                numa_nodes=draw(node),
                cpus=draw(st.sampled_from([None, "0-31", "1,3,5,7"])),
                mig=tuple(draw(st.lists(st.sampled_from(["1g.6gb", "2g.12gb"]), max_size=3))),
            )
            for i in range(size)
        ),
        levels=tuple(map(tuple, levels)),
        nics=tuple(
            Nic(f"mlx5_{i}", pci_path=path(64 + i), numa_nodes=draw(node)) for i in range(nics)
        ),
        nic_levels=tuple(tuple(draw(word) for _gpu in range(size)) for _nic in range(nics)),
        nvswitches=draw(st.sampled_from([0, 6])),
    )


def check_places(machine: Machine) -> None:
    scene = scene_of(machine)
    panels = [shape.box for shape in scene.panels]
    inner = [beam.box for beam in scene.bars] + [device.box for device in scene.devices]
    outer = [*panels, scene.nvswitch] if scene.nvswitch else panels
    for boxes in (outer, inner):
        for one, other in itertools.combinations(boxes, 2):
            assert not one.overlaps(other), (one, other)
    for box in inner:
        assert sum(panel.holds(box) for panel in panels) == 1
    canvas = Box(0, 0, scene.width, scene.height)
    assert all(canvas.holds(box) for box in [*outer, *inner])
    shown = sorted((device.leaf.nic, device.leaf.index) for device in scene.devices)
    assert shown == [
        *((False, index) for index in range(len(machine.gpus))),
        *((True, index) for index in range(len(machine.nics))),
    ]


@given(random_machines())
def test_of_any_machine_each_device_is_there_once_and_no_box_lies_on_another(machine):
    check_places(machine)
    picture = svg.render(machine)
    assert picture == svg.render(machine)
    ElementTree.fromstring(picture)


@pytest.mark.parametrize("machine", every())
def test_of_every_known_machine_each_device_is_there_once(machine):
    check_places(machine)
    shown = words(svg.render(machine))
    for gpu in machine.gpus:
        assert shown.count(gpu.name.replace("GPU", "GPU ")) == 1
    for nic in machine.nics:
        assert shown.count(nic.name) == 1


@st.composite
def meshes(draw: st.DrawFn) -> Machine:
    """GPUs wired to each other at random."""
    size = draw(st.integers(2, 10))
    nodes = draw(st.lists(st.integers(0, 3), min_size=size, max_size=size))
    levels: list[list[str | None]] = [["X"] * size for _row in range(size)]
    for i, j in itertools.combinations(range(size), 2):
        levels[i][j] = levels[j][i] = draw(st.sampled_from(["NV1", "SYS", "NV2", "SYS", "NV1"]))
    gpus = tuple(Gpu(f"GPU{i}", numa_nodes=(node,)) for i, node in enumerate(nodes))
    return Machine("hypothesis", gpus, tuple(map(tuple, levels)))


@given(meshes())
def test_two_wires_cross_but_never_run_on_top_of_each_other(machine):
    stretches = [
        (wire.link, *sorted((one, other)))
        for wire in scene_of(machine).wires
        for one, other in zip(wire.points, wire.points[1:])
    ]
    for (link, a, b), (other_link, c, d) in itertools.combinations(stretches, 2):
        if link == other_link:
            continue
        for along, across in ((0, 1), (1, 0)):
            on_one_line = a[across] == b[across] == c[across] == d[across]
            assert not (on_one_line and a[along] < d[along] and c[along] < b[along])


# --- what a picture says


def test_a_dgx_a100_has_its_switches_and_all_twelve_links_of_each_gpu():
    machine = machines.dgx_a100()
    scene = scene_of(machine)
    assert scene.nvswitch is not None
    assert [(ribbon.count, ribbon.expected) for ribbon in scene.ribbons] == [(12, 12)] * 8
    assert "6 × NVSwitch · 12 NVLinks to each GPU" in words(svg.render(machine))
    assert [beam.branch.kind for beam in scene.bars].count("switch") == 12
    assert svg.render(machine).count('class="link"') == 8 * 12


def test_a_hybrid_cube_mesh_has_each_of_its_wires_with_its_width():
    machine = ticket("dgx1-v100.txt")
    wires = scene_of(machine).wires
    assert len(wires) == 16
    shown = words(svg.render(machine))
    assert (shown.count("NV1"), shown.count("NV2")) == (8, 8)
    # Two of the four wires between the rows have nothing in the way and go straight.
    assert len([wire for wire in wires if len(wire.points) == 2]) >= 2


def test_lost_nvlinks_are_red_and_counted():
    machine = machines.b200_with_a_lost_gpu()
    picture = svg.render(machine)
    shown = words(picture)
    assert "0 of 18 NVLinks" in shown
    assert "12 of 18 NVLinks" in shown
    assert picture.count('class="sick"') == 18 + 6
    assert picture.count('class="sickcard"') == 2
    assert "18 NVLinks to each healthy GPU" in " ".join(shown)


def test_a_gpu_the_driver_calls_lost_is_red_and_says_so():
    picture = svg.render(machines.dgx_a100(), {3: "GPU is lost"})
    assert "GPU is lost" in words(picture)
    assert picture.count('class="sickcard"') == 1


def test_a_bridged_pair_beside_single_cards_has_lost_nothing():
    machine = machines.workstation()
    picture = svg.render(machine)
    assert "sickcard" not in picture.split("</style>")[1]
    assert words(picture).count("NV4") == 1


def test_mig_devices_are_as_wide_as_their_share():
    picture = svg.render(machines.with_mig())
    root = ElementTree.fromstring(picture)
    widths = [
        float(rect.get("width", "0"))
        for rect in root.iter(f"{SVG}rect")
        if rect.get("class") == "slice"
    ]
    assert len(widths) == 3 + 7
    gap = 1.5
    three, two, one = (width + gap for width in widths[:3])
    assert three == pytest.approx(3 * one, abs=0.3)
    assert two == pytest.approx(2 * one, abs=0.3)
    assert "1g.5gb" in picture  # its name, even where only 1g fits


def test_a_flat_machine_says_that_its_tree_is_hidden():
    shown = " ".join(words(svg.render(machines.flat_vm())))
    assert "hides its switches" in shown


def test_a_host_without_a_gpu_is_a_picture_too():
    shown = words(svg.render(Machine("this host", (), (), remarks=("no NVIDIA GPU",))))
    assert "No GPU" in shown
    assert "no NVIDIA GPU" in shown


def test_a_screen_reader_gets_the_machine_in_words():
    root = ElementTree.fromstring(svg.render(machines.dgx_a100()))
    assert root.get("role") == "img"
    named = {element.get("id"): element.text or "" for element in root}
    title, description = (named[name] for name in (root.get("aria-labelledby") or "").split())
    assert title == "8 × A100-SXM4-40GB"
    assert "NUMA node 3: GPU0, ibp0s0, GPU1, ibp1s0." in description
    assert "NVSwitch with 12 NVLinks to each GPU." in description


def test_what_a_hostile_ticket_names_stays_text():
    machine = machines.single_t4()
    gpu = Gpu('GPU0<script>"&\x00', model="<b>\ud800", uuid="'\"")
    picture = svg.render(Machine(machine.source, (gpu,), (("X",),), title="</title>&"))
    picture.encode()
    root = ElementTree.fromstring(picture)
    assert not list(root.iter(f"{SVG}script"))
    assert root.find(f"{SVG}title").text == "</title>&"  # type: ignore[union-attr]


def test_every_class_of_the_picture_has_its_rule():
    for make in machines.EVERY.values():
        picture = svg.render(make())
        root = ElementTree.fromstring(picture)
        style = root.findtext(f"{SVG}style") or ""
        used = {name for element in root.iter() for name in (element.get("class") or "").split()}
        assert {name for name in used if f".{name}" not in style} == set()


# --- the tree


def test_without_paths_only_what_the_words_prove_is_drawn():
    panels = tree.panels(ticket("dgx1-v100.txt"))
    assert [panel.title for panel in panels] == ["NUMA node 0", "NUMA node 1"]
    first = panels[0].children
    # mlx5_0 is PIX to GPU2 and GPU3; nothing is known of GPU0 and GPU1 but their node.
    assert [isinstance(part, tree.Leaf) for part in first] == [True, True, False]
    assert [leaf.rank for leaf in tree.leaves(first[2:])] == [(False, 2), (False, 3), (True, 0)]


def test_an_adapter_that_is_far_from_all_gpus_stands_apart():
    panels = tree.panels(ticket("dgx-a100.txt"))
    assert [panel.title for panel in panels] == [
        *(f"NUMA node {number}" for number in (3, 1, 7, 5)),
        "Far from every GPU",
    ]


def test_functions_of_one_card_are_not_a_switch():
    bars = [beam.branch for beam in scene_of(machines.workstation()).bars]
    assert [beam.label for beam in bars] == [
        "host bridge 0000:00",
        "PCIe switch 0000:01:00.0",
        "host bridge 0000:40",
    ]


# --- text that fits


@given(st.text(max_size=40), st.floats(5, 300))
def test_a_text_that_is_cut_fits(text, width):
    shown = fit(text, 12, width)
    assert shown == text or shown == "…" or text_width(shown, 12) <= width


# --- the pictures in the documentation

PICTURES = {
    "topology-dgx-a100.svg": ("dgx-a100.txt", "NVIDIA DGX A100"),
    "topology-dgx1-v100.svg": ("dgx1-v100.txt", "8 × V100 in a hybrid cube mesh"),
    "topology-mixed-workstation.svg": ("mixed-workstation.txt", "Workstation with five GPUs"),
}


@pytest.mark.parametrize("name", PICTURES)
def test_the_picture_in_the_documentation_is_what_the_command_draws(name):
    source, title = PICTURES[name]
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            f"import sys; sys.path[:0] = {sys.path!r}\n"
            "from steadygpu_agent.cli import main; sys.exit(main())",
            *("topo", "--from", str(DATA / source), "--title", title, "--svg", "-"),
        ],
        capture_output=True,
        check=True,
    )
    assert done.stdout == (CHECKOUT / "docs" / name).read_bytes()
